"""Sweeps: many training runs from one file, kept in one store, on one machine or on a cluster."""

"""Sweeps: many training runs from one file, kept in one store, on one machine or on a cluster.

What looks at a store needs few of these modules, so that nothing is loaded here.
"""

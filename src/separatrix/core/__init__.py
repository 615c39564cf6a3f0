"""Errors, progress, numbers, evidence and documents: what every room stands on."""

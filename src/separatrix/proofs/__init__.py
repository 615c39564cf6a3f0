"""Proof objects of constructions: rounding bounds, and the entries that state them."""

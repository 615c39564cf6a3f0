"""Separatrix: what a stack of attention layers provably cannot compute, what it provably can, and where training ends up in between."""

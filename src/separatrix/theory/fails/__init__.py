"""Theorems that say what a stack cannot compute."""

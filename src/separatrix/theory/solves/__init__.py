"""Theorems that say what a stack can compute, each with the sizes that its construction needs."""

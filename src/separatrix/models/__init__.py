"""The model, rounded caches, stored and exported models."""

"""Tasks: what a prompt asks, the oracle that answers it, and how many prefixes must be told apart."""

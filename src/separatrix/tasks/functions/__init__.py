"""Tasks made of functions: what several of them share."""

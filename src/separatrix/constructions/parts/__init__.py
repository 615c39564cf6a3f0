"""Parts that constructions are made of."""

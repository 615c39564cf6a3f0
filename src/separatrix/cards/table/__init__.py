"""The table of results, from its evidence alone: what writes and what checks it ask here."""

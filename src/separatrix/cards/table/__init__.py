"""The table of results: which stacks it compares, which evidence each cell must have, and its
whole text, derived from that evidence.

What writes a bundle and what checks one both ask here, so that a table cannot say more than its
records do.
"""

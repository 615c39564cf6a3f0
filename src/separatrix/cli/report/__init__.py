"""Faces of the evidence: the HTML report, the same table in the terminal, capability cards,
listings.
"""

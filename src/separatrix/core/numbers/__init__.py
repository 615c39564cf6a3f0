"""Numbers that can be trusted: bits, counts too large to write, certified comparisons,
intervals, and amounts as text.
"""

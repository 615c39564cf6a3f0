"""The inverse problem: given tasks, a context and a cache budget, which layouts can do it, and
which provably do?
"""

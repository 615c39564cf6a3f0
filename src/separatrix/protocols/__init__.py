"""Exact communication models of the theorems (theory.md, section 7): protocols that run,
adversaries that refute them, searches over all of them.

`fixed_query` (Theorem I'), `block_messages` (II), `one_reading` (III), `two_readings` (IV). Sizes
are numbers of values, b bits being 2^b of them: the proofs count values and need no whole bits. A
search over all protocols needs the extra `sat`.
"""

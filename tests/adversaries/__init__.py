"""Protocols, adversaries and searches that tests alone run: those of Theorems IV to VII, protocols
that break the rules (`trials` counts how many the adversaries catch), and searches over all
protocols of tiny sizes (python-sat), which `gap` compares with the theorems.

Three reading layers that compose z_1, z_2 and z_3, if a cache tells w all of z_3. One value fewer,
and Theorem VII's adversary finds the two functions that are confused:

    >>> from dataclasses import replace
    >>> from adversaries.many_readings import ManyReadingsSizes
    >>> from adversaries.many_solvers import enough_many, many_readings_solver
    >>> from adversaries.prices import Choice
    >>> from adversaries.vii_adversary import adversary_vii
    >>> from separatrix.protocols import side_by_side
    >>> silent = ManyReadingsSizes(m=2, branching=(1, 2), t=2, reads=(1,) * 3, caches=(1,) * 4)
    >>> full = enough_many(silent)
    >>> full.reads, full.caches
    ((3, 3, 3), (1, 1, 1, 256))
    >>> line = many_readings_solver(replace(full, caches=(1, 1, 1, 255)))
    >>> play = adversary_vii(line, Choice(contents=(2, 2)))
    >>> play.asserted.total(), play.left
    (41173, (1024, 2))
    >>> print(side_by_side(line, play.collision))
    z_3         z_2   z_1   z_0   w   right answer
    [2] 3 3 3   0 0   0 0   0     0   2
    [3] 3 3 3   0 0   0 0   0     0   3
    The last token gets the same from both prompts and answers 2, which is wrong on one of them.
"""

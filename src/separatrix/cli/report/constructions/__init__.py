"""The table of constructions: what each takes of a stack, on which sizes every input was run, and
how far each number format is proved to carry it.

`recorded` reads the figures that take long, which `make constructions` writes; `derived` derives
them; `listing` shows them.
"""

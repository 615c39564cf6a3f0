"""Practice: what training found, as tables in the package, read without torch.

Nothing here is proved. A table holds every seed of every run of an experiment, with what made it.
"""

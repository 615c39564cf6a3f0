"""Models that lie in files: how they are written and read, and how often one answers right.

Below the makers, so that what trains a model, what searches it and what checks it read one file in
one way.
"""

"""Evidence about an (architecture, task) pair: records, how they are written and read, and how
they are bundled.
"""

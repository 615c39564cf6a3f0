"""The parts of benchmarks/shape.py: what is measured of a source tree, a file for each view."""

"""The parts of benchmarks/fingerprints.py: what is hashed, a file for each kind of thing."""

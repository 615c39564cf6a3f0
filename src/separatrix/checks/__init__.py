"""Checks of evidence (`verify`) and searches for failures (`refute`); neither knows the other."""

"""What the composition tasks share."""

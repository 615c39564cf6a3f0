"""What the constructions share."""

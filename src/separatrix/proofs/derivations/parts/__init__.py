"""What the derivations share: reading a model's live parts, and evaluating them class by class."""

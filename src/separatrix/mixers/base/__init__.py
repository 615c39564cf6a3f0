"""What mixers are made of: the base class, heads, softmax attention, recurrences."""

"""The parts of mixers: the base class, maps of heads, softmax attention, recurrences."""

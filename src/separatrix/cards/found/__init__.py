"""What training found of stacks like the one on a card, a file for each kind of question."""

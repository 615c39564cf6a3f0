"""The commands of the terminal, a file for each subject."""

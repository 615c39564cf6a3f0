"""What training found, as tables in the package, read without torch: nothing of it is proved."""

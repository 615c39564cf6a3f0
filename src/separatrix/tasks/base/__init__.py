"""What every task has."""

"""Searches for the parameters of a proof. Floats propose them; exact arithmetic decides."""

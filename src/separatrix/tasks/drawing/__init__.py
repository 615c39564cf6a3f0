"""Samplers that several tasks draw with."""

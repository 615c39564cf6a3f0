"""Stacks of layers: what each mechanism declares, the spec language, model files and presets."""

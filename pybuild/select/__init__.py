"""Chooses the kernels of a model: costs, choice, shared constants."""

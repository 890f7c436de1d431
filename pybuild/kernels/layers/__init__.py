"""Layers as kernels of several cores see them: weights, geometry, known sums."""

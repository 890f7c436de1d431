"""Layers as the kernels of several cores see them: weights, geometry, accumulator
ranges.
"""

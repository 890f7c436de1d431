"""Layers of int8 weights and float32 inputs: before and behind their integer sums."""

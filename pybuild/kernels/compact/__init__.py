"""Kernels of little code, for --optimise size."""

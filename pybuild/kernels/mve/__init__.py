"""Kernels on vectors of 16 bytes: Cortex-M55 and its like."""

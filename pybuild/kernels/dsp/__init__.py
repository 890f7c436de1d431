"""Kernels on pairs of int16 in a word: Cortex-M4, M7, M33."""

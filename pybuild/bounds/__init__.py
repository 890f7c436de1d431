"""Proofs of built kernels, for any input: which bytes each can reach."""

"""Kernels for any core: layers with and without weights."""

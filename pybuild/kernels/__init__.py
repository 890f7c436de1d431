"""Kernels in Loop IR: one family per file, all of them in table.py."""

"""Decides which tensors share a buffer, and places buffers with live ranges."""

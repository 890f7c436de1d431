"""Which tensors share a buffer, and offsets for buffers with live ranges."""

"""Assigns buffers to regions of memory, and chooses the constants to copy to a fast
one."""

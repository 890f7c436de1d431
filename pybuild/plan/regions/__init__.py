"""Assigns blocks to memory regions, and chooses constants to copy to a fast one."""

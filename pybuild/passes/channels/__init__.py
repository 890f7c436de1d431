"""Channels whose integer never changes: found, folded, dropped."""

"""Functions that are looked up in tables."""

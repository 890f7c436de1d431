"""A model as C99 files."""

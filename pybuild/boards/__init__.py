"""A model on a board, simulated or real: compiled for it, run, counted."""

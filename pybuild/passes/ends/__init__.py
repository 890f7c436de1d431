"""Passes at the inputs and outputs of a graph: how images arrive, and in which type."""

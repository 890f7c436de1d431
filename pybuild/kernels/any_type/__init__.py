"""Operators in every type of element and any number of axes."""

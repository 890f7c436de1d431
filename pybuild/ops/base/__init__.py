"""The definition of an operator, and of the user's own functions."""

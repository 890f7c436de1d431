"""Functions of int16 on vectors."""

"""Functions of int16 by integer steps."""

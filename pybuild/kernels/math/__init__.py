"""Functions of real numbers as Loop IR: no library, the same bits on every core."""

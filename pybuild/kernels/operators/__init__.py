"""The kernels that serve an operator, and their common parts; a file an operator."""

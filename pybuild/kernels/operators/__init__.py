"""Which kernels serve an operator, and what they share; a file an operator."""

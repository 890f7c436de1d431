"""Kernels for RISC-V's vectors, of any length: a lane for each output channel."""

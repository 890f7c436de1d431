"""Kernels for machines with wide vectors: a lane for each output channel."""

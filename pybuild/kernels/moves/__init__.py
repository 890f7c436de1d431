"""Kernels that only move bytes, in words and vectors."""

"""Rolls unrolled steps of a sequence into one step and a loop, and back."""

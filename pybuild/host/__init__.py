"""Instances of a model on this machine: set, run, get."""

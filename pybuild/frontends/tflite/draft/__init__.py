"""Builds a graph from a .tflite file: everything known so far about it."""

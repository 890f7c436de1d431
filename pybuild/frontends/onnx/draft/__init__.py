"""Builds a graph from a .onnx file: everything known so far about it."""

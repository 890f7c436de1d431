"""Bytes of a .onnx file to a checked model in plain values."""

"""A Graph while it is being made of a .onnx file: what is known so far."""

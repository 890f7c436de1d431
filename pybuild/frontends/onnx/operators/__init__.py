"""ONNX operators as nodes of the Graph IR, a family a file."""

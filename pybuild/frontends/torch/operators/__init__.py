"""ATen operators as ONNX nodes, one family a file."""

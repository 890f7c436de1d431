"""ATen's operators as nodes of ONNX's, a family a file."""

"""The two languages: graphs of operators, and the loop IR of kernels; text and back."""

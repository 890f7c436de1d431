"""Live ranges of pieces of buffers, and offsets for them."""

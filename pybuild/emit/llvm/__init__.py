"""A model as one LLVM module, and as an object."""

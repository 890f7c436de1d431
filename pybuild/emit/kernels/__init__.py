"""Loop IR as text: C99, and LLVM IR."""

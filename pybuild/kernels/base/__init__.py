"""The building blocks of every kernel: builder, candidate, window, rows, intrinsics."""

"""The parts that every kernel is written with: builder, candidate, window, rows,
intrinsics."""

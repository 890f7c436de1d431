"""Mutations of sums that are the ends of layers, for mutate.py: its five fields."""

_ENDS = "tests/passes/test_sums.py"

ENDS = (
    (
        "a tensor that is read again is an end's",
        "pybuild/passes/sums.py",
        "len(readers[name]) > 1",
        "len(readers[name]) > 2",
        f"{_ENDS}::test_a_tensor_that_is_read_again_or_given_out_is_not_taken",
    ),
    (
        "a sum lies on what its layer still reads",
        "pybuild/kernels/operators/sums.py",
        "() if name in node.inputs[:-1] else",
        "() if not name else",
        f"{_ENDS}::test_kernels_equal_numpy",
    ),
    (
        "which operand of a difference is the layer's",
        "pybuild/kernels/operators/sums.py",
        "(made, other) if mine",
        "(made, other) if layer",
        f"{_ENDS}::test_kernels_equal_numpy",
    ),
    (
        "a layer's band lies on its working memory",
        "pybuild/kernels/operators/sums.py",
        "scratch=at + wrote.row_bytes,",
        "scratch=at + wrote.row_bytes - 4,",
        f"{_ENDS}::test_a_band_has_room",
    ),
)

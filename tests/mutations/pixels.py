"""Mutations of sums of four pixels on vectors, for mutate.py: its fields."""

_LAYERS = "tests/kernels/test_vector_kernels.py::test_llvm_equals_numpy[balanced]"
_PIXELS = "tests/kernels/test_vector_rounds.py::test_an_end_of_pixels_is_its_rule"

PIXELS = (
    (
        "the tie below zero of four pixels",
        "pybuild/kernels/mve/pixel_epilogue.py",
        "return epilogue.low >= epilogue.y_zero",
        "return True",
        f"{_PIXELS}[double]",
    ),
    (
        "a channel's numbers in a table of vectors",
        "pybuild/kernels/mve/pixel_epilogue.py",
        "across, along = (1, 4) if self.turned",
        "across, along = (4, 1) if self.turned",
        f"{_PIXELS}[single]",
    ),
    (
        "the order in which four channels are packed",
        "pybuild/kernels/mve/depthwise_pixels.py",
        "_PAIRS = ((0, 2), (1, 3))",
        "_PAIRS = ((0, 1), (2, 3))",
        _LAYERS,
    ),
    (
        "the last four pixels of a row",
        "pybuild/kernels/mve/depthwise_pixels.py",
        'minimum(ox, given["out_width"] - PIXELS)',
        "minimum(ox, ox)",
        _LAYERS,
    ),
    (
        "halves beyond int16 of C",
        "crt/include/crt/packs.h",
        "crt_max_int32(v.lane[i], INT16_MIN)",
        "v.lane[i]",
        f"{_PIXELS}[away]",
    ),
)

"""Mutations of convolutions of small images on cores that multiply one by one, and of
layers of few products, for mutate.py."""

_KERNELS = "tests/kernels/test_block_kernels.py -k equals_numpy"

SMALL_IMAGES = (
    (
        "a zero point that patches are without",
        "pybuild/kernels/scalar/conv.py",
        "wide = wide + layer.x_zero * kernels.sum(1, dtype=np.int64)",
        "wide = wide + 0 * kernels.sum(1, dtype=np.int64)",
        _KERNELS,
    ),
    (
        "weights of columns beside an image",
        "pybuild/kernels/scalar/conv_code.py",
        '"begin": begin + first * column',
        '"begin": begin + 0 * column',
        _KERNELS,
    ),
    (
        "weights between two rows of a window that is cut",
        "pybuild/kernels/scalar/conv_code.py",
        '"gap": self.row_weights - many * column',
        '"gap": self.row_weights - self.row_weights',
        _KERNELS,
    ),
    (
        "the price of windows that are cut",
        "pybuild/select/prices.py",
        "ends + turns_given(body)",
        "ends",
        "tests/kernels/test_block_kernels.py -k taps_on_padding",
    ),
    (
        "layers of many products by little code",
        "pybuild/kernels/dsp/conv.py",
        "_FEW = 1 << 14",
        "_FEW = 1 << 15",
        "tests/kernels/dsp/test_by_pairs.py",
    ),
)

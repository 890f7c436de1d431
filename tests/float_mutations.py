"""Mutations of float kernels that sum blocks, for mutate.py."""

_KERNELS = "tests/unit/test_float_kernels.py::test_llvm_equals_plain_kernels"

FLOATS = (
    (
        "float channels that are computed twice",
        "pybuild/kernels/conv_float.py",
        "starts = [min(c, outputs - n)",
        "starts = [c % max(1, outputs - n + 1)",
        _KERNELS,
    ),
    (
        "float columns outside the row",
        "pybuild/kernels/conv_float_code.py",
        "const(0.0, FLOAT32) if x is None",
        "const(1.0, FLOAT32) if x is None",
        _KERNELS,
    ),
    (
        "the last block of float pixels",
        "pybuild/kernels/conv_float_code.py",
        'ox = k.let("ox", minimum(block, g.out_width - n))',
        'ox = k.let("ox", minimum(block, g.out_width - n + 1))',
        _KERNELS,
    ),
    (
        "turns of a float window",
        "pybuild/kernels/conv_float_code.py",
        'k.arg("turns", layer.taps // layer.unrolled)',
        'k.arg("turns", layer.taps // layer.unrolled - 1)',
        _KERNELS,
    ),
)

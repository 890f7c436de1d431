"""Mutations of the general operators and of how front ends use them, for mutate.py."""

from tflite_mutations import LITE

_GENERAL = "tests/ops/test_general.py"
_MIXED = "tests/frontends/test_onnx_general.py"

GENERAL = (
    (
        "the sign that a shift to the right brings in",
        "pybuild/kernels/expressions.py",
        "return cast(select(outside, gone, shifted), kind)",
        "return cast(select(outside, shifted, shifted), kind)",
        _GENERAL,
    ),
    (
        "ties of float16",
        "pybuild/kernels/elements.py",
        "0xFFF + ((_KEPT >> 13) & 1)",
        "0x1000 + ((_KEPT >> 13) & 0)",
        _GENERAL,
    ),
    (
        "an index below 0",
        "pybuild/kernels/index.py",
        "select(at < 0, at + size, at)",
        "select(at < 0, at + size - 1, at)",
        _GENERAL,
    ),
    (
        "the last of equal extremes",
        "pybuild/kernels/accumulate.py",
        "behind <= ahead if last else behind < ahead",
        "behind < ahead if last else behind < ahead",
        _GENERAL,
    ),
    (
        "taps outside of the input of a convolution",
        "pybuild/kernels/contract.py",
        "select(where < 0, const(0, BOOL), where < window.x)",
        "select(where < 0, const(0, BOOL), where <= window.x)",
        _GENERAL,
    ),
    (
        "elements of 8 bytes on multiples of 8",
        "pybuild/plan/plan.py",
        "max((BLOCK_ALIGN, *(t.dtype.bytes for t in graph.tensors.values())))",
        "max((BLOCK_ALIGN, *(0 for t in graph.tensors.values())))",
        _GENERAL,
    ),
    (
        "comparisons without a sign",
        "pybuild/emit/llvm.py",
        "integers = BELOW if unsigned else SIGNED",
        "integers = SIGNED",
        _GENERAL,
    ),
    (
        "bytes of the file that are quantised bytes here",
        "pybuild/frontends/onnx/flow.py",
        "zeros = tuple(z + 128 for z in quant.zero_point)",
        "zeros = tuple(z + 127 for z in quant.zero_point)",
        _MIXED,
    ),
    (
        "a build for the values of the last run",
        "pybuild/backend.py",
        "if self._net is None or not same:",
        "if self._net is None:",
        _MIXED,
    ),
    *LITE,
)

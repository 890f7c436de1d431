"""Mutations of the general operators and of how front ends use them, for mutate.py."""

from tflite_mutations import LITE

_GENERAL = "tests/ops/test_general.py"
_MIXED = "tests/frontends/test_onnx_general.py"

_EXPORTED = "tests/frontends/test_exported.py"

GENERAL = (
    (
        "a place counted from the end of a list",
        "pybuild/frontends/onnx/sequences.py",
        "return at % places",
        "return at % (places + 1)",
        _MIXED,
    ),
    (
        "the last of the pieces of a list",
        "pybuild/frontends/onnx/sequences.py",
        "[*range(each, size, each), size]",
        "[*range(each, size, each), size - 1]",
        _MIXED,
    ),
    (
        "the axis of a stack of a list",
        "pybuild/frontends/onnx/sequences.py",
        "wide = (*shape[:axis], 1, *shape[axis:])",
        "wide = (1, *shape)",
        _MIXED,
    ),
    (
        "axes that lie apart joined",
        "pybuild/passes/views.py",
        "list(range(run[0], run[0] + len(run)))",
        "sorted(run)",
        "tests/unit/test_passes_transposes.py",
    ),
    (
        "the axis of a reduction that a transpose passes",
        "pybuild/passes/transposes.py",
        'made = node.with_attrs(axis=view.perm[int(node.attrs["axis"])])\n    return',
        'made = node.with_attrs(axis=int(node.attrs["axis"]))\n    return',
        "tests/unit/test_passes_transposes.py",
    ),
    (
        "where a tensor begins in a file beside the model",
        "pybuild/frontends/onnx/beside.py",
        "file.seek(offset)",
        "file.seek(0)",
        _EXPORTED,
    ),
    (
        "a file beside the model in its hash",
        "pybuild/entry.py",
        "for name in sorted(files):",
        "for name in ():",
        _EXPORTED,
    ),
    (
        "a link out of the folder of a model",
        "pybuild/frontends/onnx/beside.py",
        "path.resolve().is_relative_to(self.folder.resolve())",
        "path.absolute().is_relative_to(self.folder.absolute())",
        _EXPORTED,
    ),
    (
        "the sign that a shift to the right brings in",
        "pybuild/kernels/expressions.py",
        "return cast(select(outside, gone, shifted), kind)",
        "return cast(select(outside, shifted, shifted), kind)",
        _GENERAL,
    ),
    (
        "an argument that not all layers give alike",
        "pybuild/kernels/constant_args.py",
        "if len({*each}) == 1",
        "if len({*each}) <= 2",
        "tests/unit/test_constant_args.py",
    ),
    (
        "the greater share of two",
        "pybuild/kernels/softmax.py",
        "minimum(0 - less, const(INT8.high))",
        "minimum(0 - less, const(INT8.high - 1))",
        "tests/ops/test_backends.py -k softmax_two",
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

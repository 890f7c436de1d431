"""Mutations of what both front ends do alike, for mutate.py: its five fields."""

_TORCH = "tests/frontends/torch"
_QUANTISER = "tests/frontends/onnx/test_ort_quantiser.py"
_WEIGHTS = "tests/frontends/onnx/test_onnx_parameters.py"
_ERRORS = "tests/frontends/onnx/test_onnx_errors.py"
_SCALES = "tests/regression/test_far_scales.py"
_HISTORY = "tests/frontends/onnx/test_onnx_history.py"

FRONT = (
    (
        "how an old Resize computed",
        "pybuild/frontends/onnx/reader/read.py",
        'node.op_type == "Resize" and version < 11',
        'node.op_type == "Resize" and version < 1',
        _HISTORY,
    ),
    (
        "the nearest of an old Resize to less",
        "pybuild/frontends/onnx/operators/resize.py",
        'mode = "ceil" if scale < 1 else "floor"',
        'mode = "floor"',
        _HISTORY,
    ),
    (
        "an old Hardmax from an axis on",
        "pybuild/frontends/onnx/operators/elements.py",
        'not op.integer("flattened", 0)',
        "True",
        _HISTORY,
    ),
    (
        "numbers that only some activations take",
        "pybuild/frontends/onnx/operators/recurrent.py",
        "sum(other.lower() in takers for other in before)",
        "len(before)",
        _HISTORY,
    ),
    (
        "weights of a GRU that nobody reads",
        "pybuild/frontends/onnx/operators/recurrent.py",
        "first, last = (0, 2 * self.hidden)",
        "first, last = (0, 3 * self.hidden)",
        "tests/features/test_time_nets.py::test_steps_of_a_gru_are_all_steps_at_once",
    ),
    (
        "a type that QuantizeLinear is told",
        "pybuild/frontends/onnx/operators/quant.py",
        'not op.input(2) and op.integer("output_dtype", 0)',
        "not op",
        _HISTORY,
    ),
    (
        "a type that DequantizeLinear is told",
        "pybuild/frontends/onnx/operators/integer.py",
        "flow.cast(made, onnx_type(flow.op, told)) if told else made",
        "made",
        _HISTORY,
    ),
    (
        "a transposed convolution larger than its windows",
        "pybuild/frontends/onnx/operators/windows.py",
        "if total < 0:",
        "if total < -99:",
        _HISTORY,
    ),
    (
        "no axes are none",
        "pybuild/frontends/onnx/operators/fold.py",
        'not axes and op.integer("noop_with_empty_axes", 0)',
        "not op",
        _HISTORY,
    ),
    (
        "nothing is left of an input",
        "pybuild/frontends/onnx/draft/empty.py",
        "if 0 in made and",
        "if -1 in made and",
        _ERRORS,
    ),
    (
        "a window larger than its padded input",
        "pybuild/frontends/onnx/operators/windows.py",
        "if room < 0:",
        "if room < -99:",
        _ERRORS,
    ),
    (
        "cut more than there is",
        "pybuild/frontends/onnx/operators/windows.py",
        "end = max(size - max(-after, 0), 0)",
        "end = size - max(-after, 0)",
        _ERRORS,
    ),
    (
        "float32 beyond int64",
        "pybuild/ops/conv.py",
        "y = y.clip(-_INT32, _INT32).astype(np.int64)",
        "y = y.astype(np.int64)",
        _SCALES,
    ),
    (
        "an infinite scale",
        "pybuild/ops/conv.py",
        "if max(scales) == math.inf:",
        "if max(scales) == -1:",
        _SCALES,
    ),
    (
        "what is not bound is not pushed",
        "pybuild/host/native.py",
        "and slot in self.pushed.rows:",
        "and slot < 0:",
        "tests/regression/test_push_faults.py",
    ),
    (
        "what is computed of weights at import",
        "pybuild/frontends/onnx/draft/draft.py",
        "any(self.is_weight(n) for n in node.inputs)",
        "node.op in MOVING and self.is_weight(node.inputs[0])",
        _WEIGHTS,
    ),
    (
        "a piece of weights that the file takes",
        "pybuild/frontends/onnx/operators/fold.py",
        "ends = [c.indices(d) for",
        "ends = [slice(None).indices(d) for",
        _WEIGHTS,
    ),
    (
        "kernels' problems name nodes of the file",
        "pybuild/ir/graph.py",
        "if n in self.origins), own)",
        "if n in self.origins and not n), own)",
        "tests/failing",
    ),
    (
        "which gate of torch's LSTM is which of ONNX's",
        "pybuild/frontends/torch/operators/recurrent.py",
        '"LSTM": (0, 3, 1, 2)',
        '"LSTM": (0, 1, 2, 3)',
        _TORCH,
    ),
    (
        "weights that lie further on in their storage",
        "pybuild/frontends/torch/reader/archive.py",
        "reach >= flat.size",
        "reach > flat.size + 1",
        _TORCH,
    ),
    (
        "a buffer that is written in place is state",
        "pybuild/frontends/torch/operators/in_place.py",
        "    w.aliases[x] = value",
        "    w.aliases[call.name] = x",
        _TORCH,
    ),
    (
        "an axis of scales once weights are reshaped",
        "pybuild/frontends/onnx/draft/draft.py",
        "math.prod(shape[:place]) == before",
        "before >= 0",
        _QUANTISER,
    ),
    (
        "scales through what only moves values",
        "pybuild/frontends/onnx/operators/quant.py",
        "if op.domain or op.kind not in MOVED:",
        'if op.kind != "Gather":',
        _QUANTISER,
    ),
    (
        "the standard rounds halves to even",
        "pybuild/verify/standard.py",
        "np.rint(x.astype(np.float64) / wide)",
        "np.floor(x.astype(np.float64) / wide + 0.5)",
        "tests/verify/test_judgement.py",
    ),
)

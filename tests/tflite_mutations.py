"""Mutations of TensorFlow Lite's operators, for mutate.py: its five fields."""

_AT = "tests/frontends/test_tflite_operators.py::test_one_file_of_each_type"
_ELEMENTS, _MOVES, _LAYERS = (f"{_AT}[{n}]" for n in ("elements", "moves", "layers"))
_HERE = "pybuild/frontends/tflite"
_MICRO = "tests/frontends/test_tflite_micro.py"

_OWN = "tests/frontends/test_tflite_recurrent.py::test_"
_TFLM = f"{_OWN}files_are_computed_as_by_tflm[1]"

LITE = (
    (
        "the powers in the curve of a gate",
        "pybuild/kernels/curves16.py",
        "HIGH16(found, power))",
        "HIGH16(found, POWERS[0]))",
        _LAYERS,
    ),
    (
        "ties of what a cell keeps",
        "pybuild/kernels/recurrent.py",
        "kept, added = SHIFT_ROUND(kept, 15)",
        "kept, added = kept >> const(15)",
        _LAYERS,
    ),
    (
        "whose scale the output of an LSTM has",
        "pybuild/ops/recurrent.py",
        'if not tables and "hidden_scale"',
        'if tables and "hidden_scale"',
        _LAYERS,
    ),
    (
        "the last step of an LSTM is what it keeps",
        f"{_HERE}/recurrent.py",
        "flow.part(y, axis, y.shape[axis] - 1, y.shape[axis])",
        "flow.part(y, axis, 0, 1)",
        f"{_OWN}single_steps_are_one_run_of_all[int8]",
    ),
    (
        "a state of int8 with a zero point",
        "pybuild/kernels/svdf.py",
        "return q + zero",
        "return q",
        _TFLM,
    ),
    (
        "the curves of TFLM",
        "pybuild/passes/legalise.py",
        'reference="tflm" if',
        'reference="litert" if',
        _TFLM,
    ),
    (
        "a step of svdf in time",
        "pybuild/kernels/svdf.py",
        "load(before, m + 1)",
        "load(before, m)",
        _LAYERS,
    ),
    (
        "a quotient toward minus infinity",
        f"{_HERE}/elements.py",
        'flow.map("equal", rest, exact)',
        'flow.map("equal", rest, rest)',
        _ELEMENTS,
    ),
    (
        "bits before a square",
        f"{_HERE}/fixed.py",
        "lifted(flow, x, 7)",
        "lifted(flow, x, 6)",
        _ELEMENTS,
    ),
    (
        "the last step of Newton's method",
        f"{_HERE}/tables.py",
        "for _ in range(5):",
        "for _ in range(2):",
        _ELEMENTS,
    ),
    (
        "the order of blocks in a batch",
        f"{_HERE}/moves.py",
        "order += [n + 1 + i, i]",
        "order += [n + 1 + i, n - 1 - i]",
        _MOVES,
    ),
    (
        "places held within a tensor that is updated",
        f"{_HERE}/moves.py",
        "flow.const(room, starts)",
        "flow.const([r + 1 for r in room], starts)",
        _MOVES,
    ),
    (
        "the edge of a mirror",
        f"{_HERE}/moves.py",
        "-places - symmetric, places)",
        "-places, places)",
        _MOVES,
    ),
    (
        "what is left of nine bits",
        f"{_HERE}/asymmetric.py",
        "(centred - first)",
        "(first - first)",
        _LAYERS,
    ),
    (
        "ties of the average of uint8",
        f"{_HERE}/windows.py",
        "counts // 2",
        "(counts - 1) // 2",
        _LAYERS,
    ),
    (
        "the twin of a constant",
        f"{_HERE}/builder.py",
        "np.uint8(128)).view",
        "np.uint8(0)).view",
        _LAYERS,
    ),
    (
        "half a step of a logarithm",
        f"{_HERE}/logs.py",
        "flow.plus(made, 1 << 21)",
        "flow.plus(made, 1 << 20)",
        _LAYERS,
    ),
    (
        "the third power in a logarithm",
        "pybuild/kernels/logarithm.py",
        "_high(_high(q, square), CUBE)",
        "_high(_high(q, square), SQUARE)",
        "tests/ops/test_general.py",
    ),
    (
        "ties of a quotient of bytes",
        f"{_HERE}/quotient.py",
        "flow.add(flow.add(wide, half), sign)",
        "flow.add(wide, half)",
        _ELEMENTS,
    ),
    (
        "a scale for each row",
        f"{_HERE}/moves.py",
        "flow.gather(scale, rows, 0)",
        "flow.gather(scale, flow.map('multiply', rows, flow.const(0, rows)), 0)",
        _MOVES,
    ),
    (
        "sums beyond what 19 bits more leave",
        f"{_HERE}/fixed.py",
        "flow.const(1 << 12, made)",
        "flow.const(1 << 14, made)",
        _MICRO,
    ),
    (
        "where the running sum of TFLM begins",
        "pybuild/passes/reference.py",
        "if only not in (None, option):",
        "if only is not None:",
        _MICRO,
    ),
    (
        "the clip of TFLM",
        "pybuild/passes/reference.py",
        "elif unscaled == option:",
        "elif unscaled == 'litert':",
        _MICRO,
    ),
    (
        "what a branch assigns",
        f"{_HERE}/control.py",
        "    _merge(flow, condition, held)",
        "    _held(call.builder)",
        "tests/frontends/test_tflite_variables.py",
    ),
    (
        "turns after the last",
        f"{_HERE}/control.py",
        "            made = _chosen(flow, alive, made, carried)\n",
        "",
        "tests/frontends/test_tflite_control.py",
    ),
)

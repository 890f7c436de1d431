"""Mutations of TensorFlow Lite's operators, for mutate.py: its five fields."""

_AT = "tests/frontends/test_tflite_operators.py::test_one_file_of_each_type"
_ELEMENTS, _MOVES, _LAYERS = (f"{_AT}[{n}]" for n in ("elements", "moves", "layers"))
_HERE = "pybuild/frontends/tflite"

LITE = (
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
)

"""Mutations of what is proven to be rounding, for mutate.py: its five fields."""

_PROVEN = "tests/verify/test_roundings.py"

ROUNDED = (
    (
        "an integer is judged by its distance from a tie",
        "pybuild/verify/roundings.py",
        "if not (beyond <= room).all():",
        "if not (beyond <= room + 1).all():",
        _PROVEN,
    ),
    (
        "what is recorded is what was compared",
        "pybuild/verify/judgement.py",
        "same = all(have[n].tobytes() == gave[n].tobytes() for n in gave)",
        "same = True",
        _PROVEN,
    ),
    (
        "constants are folded by the build's rounding",
        "pybuild/passes/fold.py",
        "operator_of(node, graph).reference(rounds, graph, reads)",
        "operator_of(node, graph).reference(node, graph, reads)",
        _PROVEN,
    ),
    (
        "weights that a node turns are integers",
        "pybuild/frontends/onnx/operators/shape.py",
        "if op.input(0) in draft.sources:",
        "if False and op.input(0) in draft.sources:",
        _PROVEN,
    ),
    (
        "int16 is dequantised in one step",
        "pybuild/frontends/onnx/load.py",
        "either_scaled(quant.dequantize_linear, integer.dequantize)",
        "either(quant.dequantize_linear, integer.dequantize)",
        _PROVEN,
    ),
)

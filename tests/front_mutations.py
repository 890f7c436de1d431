"""Mutations of what both front ends do alike, for mutate.py: its five fields."""

_WEIGHTS = "tests/frontends/test_onnx_parameters.py"

FRONT = (
    (
        "what is computed of weights at import",
        "pybuild/frontends/onnx/draft.py",
        "any(self.is_weight(n) for n in node.inputs)",
        "node.op in MOVING and self.is_weight(node.inputs[0])",
        _WEIGHTS,
    ),
    (
        "a piece of weights that the file takes",
        "pybuild/frontends/onnx/fold.py",
        "ends = [c.indices(d) for",
        "ends = [slice(None).indices(d) for",
        _WEIGHTS,
    ),
    (
        "kernels' problems name nodes of the file",
        "pybuild/graph.py",
        "if n in self.origins), own)",
        "if n in self.origins and not n), own)",
        "tests/failing",
    ),
)

"""One-operator graphs from tests/ops/*.toml, for every back end to be tried on.

Everything a table does not give is drawn from a generator seeded by the case's name.
Knows no back end.
"""

from __future__ import annotations

import functools
import tomllib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Quant, Tensor, verify
from pybuild.ops import OPERATORS
from pybuild.ops.fixed_point.quant import real
from pybuild.ops.interpret import interpret
from pybuild.passes.legalise import rule_of

FOLDER = Path(__file__).resolve().parent
ROUNDINGS = ("litert", "tflm", "single", "onnx")
# these hand on integers as they are
_KEEPS_SCALE = (
    "max_pool2d", "pad", "concat", "reshape", "transpose", "slice", "copy",
)  # fmt: skip
_FIXED = {"softmax": (1 / 256, -128), "logistic": (1 / 256, -128), "tanh": (1 / 128, 0)}

# A TOML table is one case for each of its `types`:
#
#     [[case]]
#     name  = "..."                    of the case; its file names the family
#     op    = "conv2d"                 operator of the Graph IR
#     types = ["int8", "float32"]      of activations (default: both)
#     x     = [[1, 8, 8, 3]]           shape of each input
#     w     = [8, 3, 3, 3]             shape of constant weights; with `bias = false`
#                                      without a bias; `per_tensor = true`: one scale;
#                                      `w_scale = [low, high]` of the scales
#     const = [4]                      shape of a constant second operand
#     y     = [1, 192]                 output shape, where it is not inferred (reshape)
#     x_quant, y_quant = [scale, zero_point]    (x_quant: or a list of them; y_quant
#                                      = "x": that of x, whose integers are handed on)
#     y_type = "uint8"                 output type where it differs from the input's
#     bias_type = "int32"              of int16 layers, else int64
#     litert = false                   the format cannot say it
#     optimise = "speed"               built with it, all tensors whole
#     [case.attrs]                     attributes; "-" in a clamp: no bound


@dataclass(frozen=True, eq=False)
class Case:
    """One operator with one type of activations."""

    name: str
    dtype: DType
    spec: Mapping[str, Any]

    @property
    def op(self) -> str:
        return str(self.spec["op"])

    @property
    def in_litert(self) -> bool:
        return bool(self.spec.get("litert", True))

    @property
    def options(self) -> dict[str, str]:
        """What it is built with."""
        found = self.spec.get("optimise")
        return {"optimise": str(found), "plan": "whole"} if found else {}

    def graph(self, rounding: str = "litert") -> Graph:
        """The graph: one node, constants made from the case's name."""
        return with_rounding(_built(self), rounding)

    def is_changed_by(self, rounding: str, among: Sequence[str] = ROUNDINGS) -> bool:
        """Whether none of `among` before this one has the same rules."""
        wanted = [n.attrs.get("rounding") for n in self.graph(rounding).nodes]
        for earlier in among[: among.index(rounding)]:
            if wanted == [n.attrs.get("rounding") for n in self.graph(earlier).nodes]:
                return False
        return True

    def inputs(self, seed: int) -> dict[str, Array]:
        """Values of the inputs; seeds 0 to 2 are the lowest, highest, zero."""
        graph, rng = _built(self), np.random.default_rng((_seed(self.name), seed))
        return {n: _drawn(graph.tensor(n), rng, seed) for n in graph.inputs}


@functools.cache
def cases(family: str = "*") -> list[Case]:
    """Every case of every file (or of one), in a fixed order."""
    found = []
    for path in sorted(FOLDER.glob(f"{family}.toml")):
        for spec in tomllib.loads(path.read_text())["case"]:
            for kind in spec.get("types", ["int8", "float32"]):
                name = f"{path.stem}-{spec['name']}-{kind}"
                found.append(Case(name, DType(kind), spec))
    return found


def with_rounding(graph: Graph, rounding: str) -> Graph:
    """The rules that the build option `rounding` means, without any other pass."""
    nodes = []
    for node in graph.nodes:
        rule = _rule(node, graph, rounding)
        nodes.append(node if rule is None else node.with_attrs(rounding=rule))
    return replace(graph, nodes=tuple(nodes))


def _rule(node: Node, graph: Graph, rounding: str) -> str | None:
    """The rounding attribute that the build option means for this node."""
    types = {graph.tensor(n).dtype for n in (node.inputs[0], node.output)}
    if not types & {DType.INT8, DType.UINT8, DType.INT16}:
        return None
    if graph.tensor(node.output).dtype is DType.INT16:
        return rule_of(node, graph, rounding)
    match rounding:
        case "litert":
            return "away" if node.op == "dense" else "double"
        case "tflm":
            return "double"
        case "single":
            return "single"
        case "onnx":
            return "even"
    raise ValueError(rounding)


def _seed(text: str) -> int:
    return zlib.crc32(text.encode())


def _drawn(tensor: Tensor, rng: np.random.Generator, seed: int) -> Array:
    """Values of one input."""
    if tensor.dtype is DType.FLOAT32:
        real = rng.normal(0, 3, tensor.shape).astype(np.float32)
        return [real * 0 - 4, real * 0 + 4, real * 0][seed] if seed < 3 else real
    zero = tensor.zero_point if tensor.quant else 0
    low, high = tensor.dtype.low, tensor.dtype.high
    if seed < 3:
        return np.full(tensor.shape, (low, high, zero)[seed], tensor.dtype.numpy)
    return rng.integers(low, high + 1, tensor.shape).astype(tensor.dtype.numpy)


class _Maker:
    """A graph being made from one case."""

    def __init__(self, case: Case) -> None:
        self.case, self.spec = case, case.spec
        self.rng = np.random.default_rng(_seed(case.name))
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.inputs: list[str] = []

    def activations(self) -> list[str]:
        given = self.spec.get("x_quant")
        for index, shape in enumerate(self.spec["x"]):
            chosen = given
            if given is not None and isinstance(given[0], list):
                chosen = given[index]
            name = "x" if index == 0 else f"x{index}"
            quant = self.quant(chosen if given is not None else None)
            if self.case.op in _KEEPS_SCALE and index > 0:
                quant = self.tensors["x"].quant
            self.tensors[name] = Tensor(name, tuple(shape), self.case.dtype, quant)
            self.inputs.append(name)
        return list(self.inputs)

    def quant(self, given: list[float] | None, low: float = -6.0) -> Quant | None:
        """A quantisation as given, or one drawn for a range around 0."""
        if self.case.dtype is DType.FLOAT32 and given is None:
            return None
        if given is not None:
            return Quant((float(np.float32(given[0])),), (int(given[1]),))
        scale = np.float32(self.rng.uniform(0.02, 0.08))
        if self.case.dtype is DType.INT16:
            return Quant((float(scale / np.float32(256)),))
        return Quant((float(scale),), (int(self.rng.integers(-40, 40)),))

    def constant(self, name: str, value: Array, quant: Quant | None) -> str:
        self.tensors[name] = Tensor(name, value.shape, DType.of(value), quant)
        self.constants[name] = value
        return name

    def weights(self) -> list[str]:
        """w, and a bias in the scale of the accumulators."""
        if "w" not in self.spec:
            return []
        shape, op = tuple(self.spec["w"]), self.case.op
        axis = len(shape) - 1 if op == "depthwise_conv2d" else 0
        channels, biased = shape[axis], self.spec.get("bias", True)
        if self.case.dtype is DType.FLOAT32:
            w = self.rng.normal(0, 0.3, shape).astype(np.float32)
            bias = self.rng.normal(0, 1, channels).astype(np.float32)
            made = [self.constant("w", w, None)]
            return made + ([self.constant("bias", bias, None)] if biased else [""])
        count = 1 if self.spec.get("per_tensor") else channels
        low, high = self.spec.get("w_scale", (0.002, 0.02))
        scales = self.rng.uniform(low, high, count).astype(np.float32)
        scale = tuple(float(s) for s in scales)
        quant = Quant(scale, (0,), None if count == 1 else axis)
        w8 = self.rng.integers(-127, 128, shape).astype(np.int8)
        made = [self.constant("w", w8, quant)]
        if not biased:
            return [*made, ""]
        x = self.tensors["x"]
        sums = tuple(float(np.float32(s) * np.float32(x.scale)) for s in scale)
        span, kind = 3000, DType(self.spec.get("bias_type", "int32"))
        if self.case.dtype is DType.INT16:
            span, kind = 700000, DType(self.spec.get("bias_type", "int64"))
        b32 = self.rng.integers(-span, span, channels).astype(kind.numpy)
        quant = Quant(sums, (0,), None if count == 1 else 0)
        return [*made, self.constant("bias", b32, quant)]

    def second(self) -> list[str]:
        """A constant second operand."""
        if "const" not in self.spec:
            return []
        shape = tuple(self.spec["const"])
        if self.case.dtype is DType.FLOAT32:
            value = self.rng.normal(0, 2, shape).astype(np.float32)
            return [self.constant("c", value, None)]
        kind = self.case.dtype
        q = self.rng.integers(kind.low, kind.high + 1, shape).astype(kind.numpy)
        return [self.constant("c", q, self.quant(None))]


@functools.cache
def _built(case: Case) -> Graph:
    """The graph without a rounding rule."""
    maker = _Maker(case)
    names = maker.activations() + maker.weights() + maker.second()
    attrs = {k: _attr(v) for k, v in case.spec.get("attrs", {}).items()}
    node = Node(case.op, case.op, tuple(names), ("y",), attrs)
    kind = DType(case.spec.get("y_type", case.dtype.value))
    shape = tuple(case.spec.get("y", ()))
    maker.tensors["y"] = Tensor("y", shape, kind, _output_quant(case, maker, kind))
    graph = Graph(
        "one", f"{case.name}.toml", (node,), maker.tensors, tuple(maker.inputs),
        ("y",), maker.constants,
    )  # fmt: skip
    ((shape, dtype),) = OPERATORS[case.op].infer(node, graph)
    quant = maker.tensors["y"].quant
    maker.tensors["y"] = Tensor("y", shape, dtype, quant)
    if quant is None and dtype is not DType.FLOAT32:
        maker.tensors["y"] = replace(maker.tensors["y"], quant=_measured(graph))
    verify(graph)
    return graph


def _attr(value: Any) -> Any:
    """TOML lists as tuples, "-" as no bound."""
    if isinstance(value, list):
        return tuple(_attr(v) for v in value)
    return None if value == "-" else value


def _output_quant(case: Case, maker: _Maker, kind: DType) -> Quant | None:
    if kind is DType.FLOAT32:
        return None
    if case.spec.get("y_quant") == "x":
        return maker.tensors["x"].quant
    if "y_quant" in case.spec:
        return maker.quant(case.spec["y_quant"])
    if case.op in _FIXED and kind is DType.INT16:
        return Quant((2.0**-15,))
    if case.op in _FIXED:
        return maker.quant(list(_FIXED[case.op]))
    keeps = case.op in _KEEPS_SCALE or case.op == "avg_pool2d"
    return maker.tensors["x"].quant if keeps else None


def _measured(graph: Graph) -> Quant:
    """A scale that holds most results: from the same graph in float32."""
    tensors = {
        name: Tensor(name, t.shape, DType.FLOAT32) for name, t in graph.tensors.items()
    }
    reals = {n: _real(v, graph.tensor(n)) for n, v in graph.constants.items()}
    floats = replace(graph, tensors=tensors, constants=reals)
    rng = np.random.default_rng(7)
    inputs = {}
    for name in graph.inputs:
        tensor = graph.tensor(name)
        inputs[name] = _real(_drawn(tensor, rng, 3), tensor)
    y = interpret(floats, inputs)["y"]
    low, high = min(0.0, float(y.min())), max(0.1, float(y.max()))
    if graph.tensor("y").dtype is DType.INT16:
        return Quant((float(np.float32(max(-low, high) / 30000)),))
    scale = float(np.float32((high - low) / 235))
    return Quant((scale,), (int(np.clip(round(-128 - low / scale), -128, 127)),))


def _real(value: Array, tensor: Tensor) -> Array:
    return real(value, tensor).astype(np.float32)

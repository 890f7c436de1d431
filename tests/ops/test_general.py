"""Operators that take every type: numpy against LLVM and C (gcc, strict warnings, traps
on undefined behaviour), and both printers bit for bit.

The functions of map come from their table, so that none is without a case.
"""

from __future__ import annotations

import functools
import itertools
import math
import tomllib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.dtype import Array, DType, widened
from pybuild.emit.content import whole
from pybuild.host.cc import compile_shared, loaded
from pybuild.host.native import Net
from pybuild.install import host_library
from pybuild.ir.graph import Graph, Node, Tensor, verify
from pybuild.kernels.any_type.expressions import EXPRESSIONS
from pybuild.kernels.table import KERNELS
from pybuild.library import Library
from pybuild.model import Model
from pybuild.ops import OPERATORS
from pybuild.ops.base.signatures import SIGNATURES
from pybuild.ops.decide import DECIDE
from pybuild.ops.interpret import interpret
from pybuild.ops.map import FUNCTIONS, NUMBERS
from pybuild.ops.signal import SIGNAL
from pybuild.package.folder import write_beside
from tests.conftest import made_once
from tests.ops.cases import cases
from tests.ops.suite import units_of
from tests.toolchains import STRICT, require

DATA = Path(__file__).parent / "general" / "general.toml"
TRAPS = ("-O0", "-ffp-contract=off", "-fPIC", "-shared",
         "-fsanitize=undefined,float-cast-overflow",
         "-fsanitize-undefined-trap-on-error")  # fmt: skip
# where a function is defined, or where it is not too steep to be compared
REACH = {
    "acos": (-1, 1), "acosh": (1, 20), "asin": (-1, 1), "atanh": (-0.95, 0.95),
    "cosh": (-6, 6), "exp": (-20, 20), "log": (1e-3, 50), "power": (0.1, 3),
    "sinh": (-6, 6), "sqrt": (0, 90), "tan": (-1.4, 1.4),
}  # fmt: skip
# relative to the largest result
CLOSE = {"float32": 2e-6, "float64": 4e-15, "float16": 1e-3, "bfloat16": 8e-3}
SPECIAL = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -2.5])


def _drawn(tensor: Tensor, bounds: Any, seed: int) -> Array:
    rng = np.random.default_rng((zlib.crc32(tensor.name.encode()), seed))
    kind = tensor.dtype
    if kind is DType.BOOL:
        return rng.integers(0, 2, tensor.shape).astype(bool)
    if kind.is_float:
        low, high = bounds or (-4, 4)
        real = rng.uniform(low, high, tensor.shape)
        return (np.round(real) if seed == 1 and bounds is None else real).astype(
            kind.numpy
        )
    low, high = bounds or (kind.low, kind.high)
    low = max(low, kind.low)
    if seed == 1 and bounds is None:
        low, high = max(-3, kind.low), 3
    made = rng.integers(low, min(high, kind.high), tensor.shape, kind.numpy)
    return np.asarray(made)


class One:
    """A graph of nodes without a connection, and where its inputs lie."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: dict[str, Tensor] = {}
        self.bounds: dict[str, Any] = {}
        self.nodes: list[Node] = []

    def add(self, op: str, reads: list[tuple[DType, Any, Any]], attrs: Any) -> None:
        number = len(self.nodes)
        names = []
        for index, (kind, shape, bounds) in enumerate(reads):
            name = f"{self.name}_{number}_{index}"
            self.tensors[name] = Tensor(name, tuple(shape), kind)
            self.bounds[name] = bounds
            names.append(name)
        output = f"y{number}"
        node = Node(op, output, tuple(names), (output,), attrs)
        view = Graph("", self.name, (), self.tensors, (), ())
        self.tensors[output] = Tensor(output, (), DType.FLOAT32)
        ((shape, kind),) = OPERATORS[op].infer(node, view)
        self.tensors[output] = Tensor(output, shape, kind)
        self.nodes.append(node)

    def graph(self) -> Graph:
        outputs = tuple(node.output for node in self.nodes)
        graph = Graph(
            self.name, self.name, tuple(self.nodes), self.tensors,
            tuple(self.bounds), outputs,
        )  # fmt: skip
        verify(graph)
        return graph

    def inputs(self, seed: int) -> dict[str, Array]:
        return {n: _drawn(self.tensors[n], b, seed) for n, b in self.bounds.items()}


def _functions() -> Iterator[One]:
    """Every function of map in every type, whole and broadcast."""
    for name, function in FUNCTIONS.items():
        one = One(f"map_{name}")
        for kind in function.types:
            own = REACH.get(name) if kind.is_float else None
            if name.startswith("shift") and not kind.is_float:
                own = None
            shapes = [(3, 2, 5), (2, 1), (3, 1, 1)][: function.count]
            reads = [(kind, shape, own) for shape in shapes]
            if function.mixed:
                reads[0] = (DType.BOOL, (3, 1, 5), None)
                reads[1] = (kind, (3, 2, 5), None)
            if name.startswith("shift"):
                reads[1] = (kind, (2, 1), (-2, kind.bytes * 8 + 2))
            if name.startswith("requantize"):
                reads[1:] = [(kind, (2, 1), (0, kind.high)), (kind, (5,), (-30, 30))]
            for attrs in _attributes(name, kind):
                one.add("map", reads, {"fn": name, **attrs})
        yield one


def _attributes(name: str, kind: DType) -> list[dict[str, Any]]:
    if name == "bits":
        return [{"to": k.value} for k in NUMBERS if k.bytes == kind.bytes]
    if name == "cast":
        return [{"to": k.value} for k in (*NUMBERS, DType.BOOL)]
    return [{"shape": (4, 3, 2, 5)}] if name == "copy" else [{}]


def _data() -> Iterator[One]:
    """The cases of the file."""
    for spec in tomllib.loads(DATA.read_text())["case"]:
        one = One(spec["name"])
        each = spec.get("each", {})
        for kind, *chosen in itertools.product(spec["types"], *each.values()):
            reads = [
                (DType(kind if t == "T" else t), shape, (bounds or [None])[0])
                for t, shape, *bounds in spec["x"]
            ]
            attrs = {**spec.get("attrs", {}), **dict(zip(each, chosen, strict=True))}
            one.add(spec["op"], reads, {k: _tuple(v) for k, v in attrs.items()})
        yield one


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


@functools.cache
def _ones() -> tuple[One, ...]:
    return (*_functions(), *_data())


@functools.cache
def _library(name: str) -> Library:
    (one,) = (one for one in _ones() if one.name == name)
    model = Model(f"{name}.toml", one.graph(), "onnx", "0" * 64)
    # nodes without a connection have nothing to gain by rows, after a long search
    return model.build(None, name=name, input="keep", plan="whole")


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All as one shared library."""
    require("gcc")
    return made_once(tmp_path_factory, "general", _compile) / "general.so"


def _compile(folder: Path) -> None:
    found = {one.name: whole(_library(one.name).sources()) for one in _ones()}
    units = dict(units_of(found))
    files = {file: text for one in found.values() for file, text in one.items()}
    write_beside(folder, {**files, **units})
    sources = [str(folder / unit) for unit in units]
    made = folder / "general.so"
    compile_shared([*sources, str(host_library())], [folder], made, (*STRICT, *TRAPS))


@pytest.mark.parametrize("one", _ones(), ids=lambda one: one.name)
def test_numpy_llvm_and_c_agree(one: One, in_c: Path) -> None:
    library = _library(one.name)
    nets = library.host("llvm"), Net(library.plan, loaded(one.name, in_c, None))
    for seed in range(3):
        inputs = one.inputs(seed)
        expected = interpret(library.plan.graph, inputs)
        found = []
        for net in nets:
            net.run(**inputs)
            found.append(net.outputs())
        for name in library.plan.graph.outputs:
            _compare(found[0][name], expected[name], name)
            a, b = found[0][name], found[1][name]
            assert a.tobytes() == b.tobytes() or _equal(a, b), name


def _equal(a: Array, b: Array) -> bool:
    """But for the bits of what is not a number."""
    a, b = widened(a), widened(b)
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _compare(found: Array, expected: Array, name: str) -> None:
    kind = DType.of(found)
    if not kind.is_float:
        np.testing.assert_array_equal(found, expected, name)
        return
    found, expected = widened(found), widened(expected)
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    most = CLOSE[kind.value] * max(1.0, float(finite.max(initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=most, err_msg=name)


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_what_is_no_usual_number(kind: str) -> None:
    one = One(f"special_{kind}")
    text = "abs ceil floor round sign is_nan is_infinite exp log sqrt maximum minimum"
    names = f"{text} modulo remainder equal".split()
    size = len(SPECIAL)
    for name in names:
        count = FUNCTIONS[name].count
        shapes = [(size, 1), (1, size)][:count]
        one.add("map", [(DType(kind), s, None) for s in shapes], {"fn": name})
    library = Model("s.toml", one.graph(), "onnx", "0" * 64).build(None, name="special")
    inputs = {n: SPECIAL.astype(kind).reshape(one.tensors[n].shape) for n in one.bounds}
    expected = interpret(library.plan.graph, inputs)
    net = library.host("llvm")
    net.run(**inputs)
    for name in library.plan.graph.outputs:
        _compare(net.get_output(name), expected[name], name)


def test_float16_is_the_nearest_and_even_of_two() -> None:
    """Halfway between neighbours, and next to it, bit for bit as numpy has it."""
    steps = np.arange(0, 0x7BFF, 31, np.uint16)  # odd and even ones, subnormal too
    low, high = (s.view(np.float16).astype(np.float32) for s in (steps, steps + 1))
    ties = (low + high) / 2  # exact in float32
    near = [np.nextafter(ties, np.float32(to)) for to in (-np.inf, np.inf)]
    half = np.concatenate([ties, *near])
    values = np.concatenate([half, -half]).astype(np.float32)
    one = One("ties")
    one.add("map", [(DType.FLOAT32, values.shape, None)], dict(fn="cast", to="float16"))
    library = Model("t.toml", one.graph(), "onnx", "0" * 64).build(None, name="ties")
    net = library.host("llvm")
    net.run(**dict.fromkeys(one.bounds, values))
    found = net.get_output("y0").view(np.uint16)
    np.testing.assert_array_equal(found, values.astype(np.float16).view(np.uint16))


def test_every_operator_and_function_has_a_case() -> None:
    assert EXPRESSIONS.keys() == FUNCTIONS.keys()
    where = "a line in ops/__init__.py, ops/base/signatures.py and kernels/table.py"
    assert OPERATORS.keys() == KERNELS.keys() == SIGNATURES.keys(), where
    told = {case.op for case in cases()} | {n.op for one in _ones() for n in one.nodes}
    # these have tests of their own: user's functions, what is kept from run to run
    # (lstm and svdf: frontends/tflite/test_tflite_recurrent.py; sounds:
    # frontends/tflite/signal; decisions: ops/test_decide.py; norm: ops/test_norm.py;
    # repeat: passes/test_turns.py; dynamic range: frontends/tflite/hybrid)
    own = {"call", "assign", "lstm", "norm", "repeat", "svdf", "rfft"}
    own |= {*SIGNAL, *DECIDE, "quantize_dynamic"}
    own |= {name for name in OPERATORS if name.endswith("_sums")}
    assert OPERATORS.keys() - told <= own
    assert math.isclose(len(FUNCTIONS), len({o.name for o in _functions()}))

"""NaN: every operator does what ops/base/nan.py says; numpy, LLVM and C (gcc, strict
warnings, traps on undefined behaviour) do the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array, DType, widened
from pybuild.host.cc import compile_shared, loaded
from pybuild.host.native import Net
from pybuild.install import host_library
from pybuild.ir.graph import Graph, Node, Tensor, verify
from pybuild.library import Library
from pybuild.model import Model
from pybuild.ops import OPERATORS
from pybuild.ops.base.nan import (
    BY_FUNCTION,
    FUNCTION_RULES,
    INSIDE,
    MOVES,
    PROPAGATES,
    RULES,
    WHOLE,
    rule_of,
)
from pybuild.ops.interpret import interpret
from pybuild.ops.map import FUNCTIONS
from tests.conftest import made_once
from tests.ops.cases import cases
from tests.ops.test_general import TRAPS, _ones
from tests.toolchains import ROOT, STRICT, require

NAN = np.float32(np.nan)
FAR = (1e30, -1e30, 0.25)
# of small types what is as far
FARS = {"float16": (3e4, -3e4, 0.25)}
KINDS = (DType.FLOAT32, DType.FLOAT16)
PARTS = 4  # of few elements one is NaN
MOST_PLACES = 200


def _every() -> Iterator[tuple[str, Graph]]:
    """The cases with a float among their inputs, one operator each."""
    for case in cases():
        if case.dtype is DType.FLOAT32:
            yield case.name, case.graph()
    for one in _ones():
        graph = one.graph()
        for node in graph.nodes:
            reads = tuple(n for n in node.inputs if n in graph.inputs)
            # functions of float16 are those of float32
            kinds = KINDS[len(reads) == 1 and node.op == "map" :]
            if any(graph.tensor(n).dtype in kinds for n in reads):
                outputs = node.outputs
                yield (
                    f"{one.name}_{node.name}",
                    replace(graph, nodes=(node,), inputs=reads, outputs=outputs),
                )


@cache
def _graphs() -> dict[str, Graph]:
    """Two of each operator, function and way to end."""
    found: dict[str, Graph] = {}
    seen: dict[tuple[object, ...], int] = {}
    for name, graph in _every():
        (node,) = graph.nodes
        marks = (node.attrs.get(n) for n in ("fn", "join", "mode", "largest", "last"))
        ends = [end is None for end in node.attrs.get("clamp", (None, None))]
        kind = graph.tensor(node.inputs[0]).dtype
        key = (node.op, kind, *marks, *ends)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= (1 if node.op == "map" else 2):
            found[name] = graph
    return found


def _whole(comparing: bool = False) -> Graph:
    """All of them in one graph, or those that compare."""
    nodes: list[Node] = []
    tensors: dict[str, Tensor] = {}
    inputs: list[str] = []
    outputs: list[str] = []
    constants: dict[str, Array] = {}
    for number, graph in enumerate(_graphs().values()):
        mark = f"g{number}_"
        (node,) = graph.nodes
        if comparing and not _compares(node):
            continue
        names = {n for n in (*node.inputs, *node.outputs) if n}
        for name in names:
            tensors[mark + name] = replace(graph.tensor(name), name=mark + name)
        nodes.append(
            replace(
                node,
                name=mark + node.name,
                inputs=tuple(mark + n if n else n for n in node.inputs),
                outputs=tuple(mark + n for n in node.outputs),
            )
        )
        inputs += [mark + n for n in graph.inputs if n in names]
        outputs += [mark + n for n in node.outputs]
        constants |= {mark + n: v for n, v in graph.constants.items() if n in names}
    whole = Graph(
        "all", "all", tuple(nodes), tensors, tuple(inputs), tuple(outputs), constants
    )
    verify(whole)
    return whole


def _compares(node: Node) -> bool:
    """Whether its kernels compare twice, so that no NaN is lost."""
    name = node.attrs.get("fn", node.attrs.get("join"))
    by_name = name in ("min", "max", "minimum", "maximum") and node.op != "arg_reduce"
    return by_name or node.op in ("max_pool2d", "top_k")


@cache
def _library(nan: str) -> Library:
    model = Model("all.toml", _whole(nan == "ignore"), "litert", "0" * 64)
    return model.build(None, name=nan, input="keep", plan="whole", nan=nan)


def _drawn(tensor: Tensor, seed: int) -> Array:
    rng = np.random.default_rng((zlib.crc32(tensor.name.encode()), seed))
    if tensor.dtype is DType.BOOL:
        return rng.integers(0, 2, tensor.shape).astype(bool)
    if not tensor.dtype.is_float:
        return rng.integers(0, 3, tensor.shape).astype(tensor.dtype.numpy)
    return rng.uniform(-3, 3, tensor.shape).astype(tensor.dtype.numpy)


def _poisoned(graph: Graph, seed: int) -> dict[str, Array]:
    """Numbers, among them NaN of either sign and infinities."""
    found, readers = {}, graph.consumers()
    for name in graph.inputs:
        tensor = graph.tensor(name)
        value = _drawn(tensor, seed)
        reader = readers[name][0]
        # a weight under padding is left out
        spared = reader.op == "conv" and name == reader.inputs[1]
        if tensor.dtype.is_float and value.size and not spared:
            rng = np.random.default_rng((zlib.crc32(name.encode()), seed, 1))
            flat = value.reshape(-1)
            bad = [NAN, -NAN, NAN, np.inf, -np.inf][: 3 if seed == 0 else 5]
            for one in bad[: max(1, flat.size // PARTS)]:
                flat[rng.integers(flat.size)] = one
        found[name] = value
    return found


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    return made_once(tmp_path_factory, "nan", _compile) / "nan.so"


def _compile(folder: Path) -> None:
    folder.mkdir()
    files = []
    for file, text in _library("propagate").sources().items():
        (folder / file).write_text(text)
        files += [str(folder / file)] if file.endswith(".c") else []
    whole = folder / "nan.so"
    compile_shared([*files, str(host_library())], [folder], whole, (*STRICT, *TRAPS))


def test_every_operator_and_function_has_a_rule() -> None:
    where = "a line in pybuild/ops/base/nan.py, and what users see in docs/nan.md"
    assert RULES.keys() == OPERATORS.keys(), where
    assert FUNCTION_RULES.keys() <= FUNCTIONS.keys(), where
    page = (ROOT / "docs" / "nan.md").read_text()
    usual = {PROPAGATES, MOVES, WHOLE, INSIDE, BY_FUNCTION, "true", "false"}
    for rule in {PROPAGATES, *RULES.values(), *FUNCTION_RULES.values()} - usual:
        assert rule in page, rule


# operators whose NaN another test holds: frontends/tflite/test_tflite_recurrent.py,
# frontends/tflite/hybrid, ops/test_decide.py, magnitudes/test_rows.py; assign is the
# kernel of copy
ELSEWHERE = {"assign", "lstm", "moving_average", "norm", "scale_sums", "svdf"}


def test_every_operator_that_hands_nan_on_has_a_case() -> None:
    held = {graph.nodes[0].op for graph in _graphs().values()} | ELSEWHERE
    assert {op for op, rule in RULES.items() if rule in (PROPAGATES, MOVES)} <= held


@pytest.mark.parametrize("back_end", ["llvm", "c"])
def test_nan_and_infinity_come_out_where_numpy_has_them(
    back_end: str, request: pytest.FixtureRequest
) -> None:
    library = _library("propagate")
    if back_end == "c":
        found = loaded("propagate", request.getfixturevalue("in_c"), None)
        net = Net(library.plan, found)
    else:
        net = library.host("llvm")
    graph = library.plan.graph
    makers, wrong = graph.producers(), []
    for seed in range(3):
        inputs = _poisoned(graph, seed)
        expected = interpret(graph, inputs)
        net.run(**inputs)
        for name in graph.outputs:
            a, b = (widened(v) for v in (net.get_output(name), expected[name]))
            same = a == b
            if a.dtype.kind == "f":
                finite = np.isfinite(a) & np.isfinite(b)
                same |= finite | (np.isnan(a) & np.isnan(b))
            if not same.all():
                node = makers[name]
                few = f"{a[~same][:3]}, not {b[~same][:3]}"
                wrong.append(f"{node.op} {dict(node.attrs)}: {few}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", _graphs())
def test_what_a_result_is_made_of_makes_it_nan(name: str) -> None:
    """One element is NaN; results that depend on it are those that very different
    numbers there change."""
    graph = _graphs()[name]
    (node,) = graph.nodes
    if rule_of(node.op, str(node.attrs.get("fn", ""))) != PROPAGATES:
        return
    inputs = {n: _drawn(graph.tensor(n), 0) for n in graph.inputs}
    if node.op == "roi_align":  # the second corner of a box is beyond the first
        boxes = inputs[node.inputs[1]]
        inputs[node.inputs[1]] = np.sort(boxes.reshape(-1, 2, 2), 1).reshape(-1, 4)
    for number, given in enumerate(node.inputs):
        if given not in inputs or not graph.tensor(given).dtype.is_float:
            continue
        if number and node.op in ("prelu", "roi_align"):
            continue  # a slope that is not used; a box, which may have many samples
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        places = rng.permutation(inputs[given].size)[:MOST_PLACES]
        assert any(_propagates(graph, inputs, given, int(at)) for at in places)


def _propagates(graph: Graph, inputs: dict[str, Array], given: str, at: int) -> bool:
    """Whether any result depends on an element; all that do must be NaN with it."""
    made = []
    far = FARS.get(graph.tensor(given).dtype.value, FAR)
    with np.errstate(all="ignore"):
        for value in (*far, NAN):
            poisoned = inputs[given].copy()
            poisoned.reshape(-1)[at] = value
            one = interpret(graph, {**inputs, given: poisoned})
            made.append(widened(one[graph.outputs[0]]))
        *numbers, last = made
        differs = np.any([n != numbers[0] for n in numbers[1:]], axis=0)
    assert np.isnan(last)[differs].all(), graph.nodes[0]
    return bool(differs.any())


def test_what_ignores_nan_gives_the_same_of_numbers() -> None:
    """And of NaN places that there are."""
    library = _library("ignore")
    graph, net = library.plan.graph, library.host("llvm")
    for step in library.plan.steps:
        assert "_numbers" in step.candidate.func.name, step.node
    numbers = {name: _drawn(graph.tensor(name), 0) for name in graph.inputs}
    expected = interpret(graph, numbers)
    net.run(**numbers)
    for name in graph.outputs:
        np.testing.assert_array_equal(net.get_output(name), expected[name], name)
    net.run(**_poisoned(graph, 0))
    for node in graph.nodes:
        if node.op == "top_k":
            places, x = net.get_output(node.output), graph.tensor(node.inputs[0])
            assert -1 <= places.min() <= places.max() < max(x.shape)

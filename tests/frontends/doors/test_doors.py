"""A layer is one canonical graph, whether a .tflite, an ONNX or a .pt2 file spells it,
and costs the same; what differs is in a table, with its reason.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnxruntime
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.frontends.onnx.load import load
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.passes.spellings import Terms
from pybuild.select.choose import estimated
from tests.frontends.doors.layers import LAYERS, drawn, files, written
from tests.frontends.doors.spellings import SPELLINGS, cubic_gelu, fast_gelu, spelled
from tests.frontends.doors.writers import IMAGE, Onnx, first

# of int8: LiteRT's kernel has integers of its own, ONNX and torch compute in float32
# between quantize and dequantize, and each has the bits of its reference
APART = {
    ("sum of pixels", True): {"tflite": "LiteRT sums integers"},
    ("log softmax", True): {
        "tflite": "LiteRT has a table of exp and a logarithm of integers"
    },
    ("div", True): {"tflite": "LiteRT divides integers"},
    ("bilinear", True): {"tflite": "LiteRT has weights of integers"},
    ("prelu", True): {"tflite": "LiteRT scales both sides by multipliers of integers"},
}
# of instructions by estimate, where both have one graph: what a rule of rounding takes
MOST = 1.25
DEARER = {
    ("matmul", True): "ONNX's rule multiplies float32, by functions on a Cortex-M0",
    ("matmul, second turned", True): "as matmul",
    (
        "softmax of channels",
        True,
    ): "LiteRT's exp is of integers, on a Cortex-M55 dearer",
}
# nodes that stand at the ends of an ONNX file alone
_ENDS = ("quantize", "dequantize", "copy")


def canonical(graph: Graph) -> list[tuple[Any, ...]]:
    """Each node that computes or moves bytes: operator, function, shape, type."""
    found: list[tuple[Any, ...]] = []
    ends = {*graph.inputs, *graph.outputs}
    for node in graph.nodes:
        if node.op in _ENDS:
            ends |= {*node.inputs, *node.outputs}
    for node in graph.nodes:
        turned = node.op == "transpose" and ends & {*node.inputs, *node.outputs}
        if node.op in (*_ENDS, "reshape") or turned:
            continue
        y = graph.tensor(node.output)
        found.append((node.op, node.attrs.get("fn", ""), y.shape, y.dtype.value))
    return found


@pytest.mark.parametrize("int8", [False, True], ids=["float", "int8"])
def test_all_doors_give_one_graph(int8: bool) -> None:
    for name in LAYERS:
        found = {
            door: canonical(pybuild.load(data).lower())
            for door, data in files(name, int8).items()
        }
        apart = {door for door in ("tflite", "torch") if found[door] != found["onnx"]}
        assert apart == {*APART.get((name, int8), ())}, (name, found)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(2, 9))]
)
@pytest.mark.parametrize("int8", [False, True], ids=["float", "int8"])
def test_images_of_any_size_give_one_graph(int8: bool, seed: int) -> None:
    """.tflite and ONNX: what torch exports is stored, of one size."""
    for name in LAYERS:
        files_of = written(name, int8, drawn(seed))
        one, other = (canonical(pybuild.load(data).lower()) for data in files_of)
        apart = "tflite" in APART.get((name, int8), ())
        assert (one != other) == apart, (name, one, other)


def test_a_prelu_by_channel_is_of_integers() -> None:
    """Slopes [C,1,1], which a file of QDQ dequantises."""
    for door in ("onnx", "torch"):
        graph = pybuild.load(files("prelu", True)[door]).lower()
        assert {kind for *_, kind in canonical(graph)} == {"int8"}


@pytest.mark.parametrize("int8", [False, True], ids=["float", "int8"])
def test_a_layer_that_is_written_out_is_the_layer(int8: bool) -> None:
    for name, ways in SPELLINGS.items():
        wanted = sizes(canonical(pybuild.load(files(name, int8)["onnx"]).lower()))
        for number, spelling in enumerate(ways):
            graph = pybuild.load(spelled(name, spelling, int8)).lower()
            assert sizes(canonical(graph)) == wanted, (name, number)


def sizes(graph: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without axes of one element, which a reshape gives and takes."""
    return [(*node[:2], [n for n in node[2] if n > 1], node[3]) for node in graph]


def test_a_long_product_is_not_read_anew_from_each_of_its_nodes() -> None:
    """Many products of numbers take no more looks a node than few."""
    looks = []
    for count in (40, 80):
        o = Onnx(False)
        y = o.input((4, 32))
        for n in range(count):
            y = o.node("Mul", [y, o.plain(np.float32(1 + n / 8))])
        graph = load("long.onnx", o.file(y), {})
        terms = Counting(graph)
        for node in graph.nodes:
            terms.flat("mul", node.output)
        looks.append(terms.looks[0] / count)
    assert looks[1] < 1.2 * looks[0]


@pytest.mark.parametrize("kind", ["Max", "Min", "Mul"])
def test_numbers_that_are_not_finite_stay_as_they_are(kind: str) -> None:
    x = np.float32([[-np.inf, -1, 0, 2, np.inf]])
    for number in (np.nan, np.inf, -np.inf):
        o = Onnx(False)
        y = o.node(kind, [o.input(x.shape), o.plain(np.float32(number))])
        data = o.file(o.node("Max", ["x0", y]))
        graph = pybuild.load(data).lower()
        with np.errstate(all="ignore"):
            (want,) = onnxruntime.InferenceSession(data).run(None, {"x0": x})
            have = interpret(graph, {"x0": x})[graph.outputs[0]]
        np.testing.assert_array_equal(have, want)


class Counting(Terms):
    """Counts the tensors that are looked at."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, graph.producers())
        object.__setattr__(self, "looks", [0])

    def number(self, name: str) -> float | None:
        self.looks[0] += 1
        return super().number(name)


def test_a_mean_of_a_mean_keeps_the_axes_that_it_keeps() -> None:
    """Only the first one keeps its axis."""
    o = Onnx(False)
    x = o.input((2, 3, 4, 5))
    y = o.node("ReduceMean", [x, o.plain(np.int64([3]))], keepdims=1)
    data = o.file(o.node("ReduceMean", [y, o.plain(np.int64([2]))], keepdims=0))
    (given,) = (np.arange(120, dtype=np.float32).reshape(first((2, 3, 4, 5))),)
    graph = pybuild.load(data).lower()
    have = interpret(graph, {"x0": given})[graph.outputs[0]]
    np.testing.assert_allclose(have, given.mean(3, keepdims=True).mean(2), 1e-6)


def test_gelu_of_tanh_is_one_function() -> None:
    for spelling in (cubic_gelu, fast_gelu):
        graph = pybuild.load(spelled("gelu", spelling, False)).lower()
        assert canonical(graph)[1][1] == "gelu_tanh"


@pytest.mark.parametrize("name", ["relu6", "leaky relu", "abs", "gelu", "sigmoid",
                                  "mean of pixels"])  # fmt: skip
def test_what_is_written_out_is_what_onnx_runtime_computes(name: str) -> None:
    more = (cubic_gelu, fast_gelu) if name == "gelu" else ()
    x = np.random.default_rng(5).normal(0, 4, first(IMAGE)).astype(np.float32)
    for spelling in (*SPELLINGS[name], *more):
        data = spelled(name, spelling, False)
        session = onnxruntime.InferenceSession(data)
        (want,) = session.run(None, {session.get_inputs()[0].name: x})
        graph = pybuild.load(data).lower()
        have = interpret(graph, {"x0": x})[graph.outputs[0]]
        np.testing.assert_allclose(have, want, 1e-5, 1e-5)


@pytest.mark.parametrize("name", ["conv 3x3, relu", "dense as product and sum", "silu",
                                  "depth to space", "hard swish"])  # fmt: skip
def test_all_doors_give_one_result(name: str) -> None:
    """Of float32: the layers that are compared are the same layer."""
    found = []
    for door, data in files(name, False).items():
        graph, chance = pybuild.load(data).lower(), np.random.default_rng(4)
        given: dict[str, Array] = {}
        turn = door != "tflite"
        for x in graph.inputs:
            shape = graph.tensor(x).shape
            if turn and len(shape) == 4:
                shape = (shape[0], *shape[2:], shape[1])
            value = chance.normal(0, 2, shape).astype(np.float32)
            given[x] = _channels_first(value) if turn else value
        y = interpret(graph, given)[graph.outputs[0]]
        found.append(_channels_last(y) if turn else y)
    for one, other in itertools.pairwise(found):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def _channels_first(image: Array) -> Array:
    return image.transpose(0, 3, 1, 2) if image.ndim == 4 else image


def _channels_last(image: Array) -> Array:
    return image.transpose(0, 2, 3, 1) if image.ndim == 4 else image


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("int8", [False, True], ids=["float", "int8"])
def test_all_doors_cost_the_same(int8: bool, target: str) -> None:
    """By estimate, without what turns and converts the ends of an ONNX file."""
    for name in LAYERS:
        if (name, int8) in APART | DEARER:
            continue
        costs = []
        for data in files(name, int8).values():
            library = pybuild.load(data).build(target=target)
            steps = [
                (step.node, step.candidate)
                for step in library.plan.steps
                if step.node.op not in (*_ENDS, "transpose")
            ]
            costs.append(sum(estimated(steps, library.kernels)))
        assert max(costs) < MOST * min(costs), (name, costs)

"""Sums as the ends of layers: which, and the same bytes as both layers by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import pybuild.ways
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Quant, Tensor
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from pybuild.passes.sums import apart, with_sums
from tests.graphs.rows import model_of, row_graphs
from tests.plan.test_rows import inputs_of, must_equal, outputs_of, quick

_SHAPE = (1, 6, 5, 4)
TARGETS = ("cortex-m0", "cortex-m4", "cortex-m55")


class _Net:
    """Layers of one shape, each with another scale."""

    def __init__(self, dtype: str = "int8") -> None:
        self.net, self.int8 = GraphBuilder("ends"), dtype == "int8"
        self.chance, self.layers = np.random.default_rng(7), 0
        self.x = self.net.input("x", _SHAPE, dtype, **self.quant())

    def quant(self) -> dict[str, Any]:
        if not self.int8:
            return {}
        scale = round(float(self.chance.uniform(0.04, 0.09)), 4)
        return {"quant": (scale, int(self.chance.integers(-9, 9)))}

    def conv(self, x: Tensor, size: int = 3, **attrs: Any) -> Tensor:
        self.layers += 1
        name, shape = f"w{self.layers}", (4, size, size, 4)
        if self.int8:
            quant = Quant((0.004, 0.006, 0.005, 0.007), (0,) * 4, 0)
            values = self.chance.integers(-127, 128, shape).astype(np.int8)
            w = self.net.constant(name, values, quant)
        else:
            values = self.chance.normal(0, 0.3, shape).astype(np.float32)
            w = self.net.constant(name, values)
        pads = (size // 2,) * 4
        return self.net.op("conv2d", x, w, **self.quant(), pads=pads, **attrs)

    def add(self, a: Tensor, b: Tensor, op: str = "add", **attrs: Any) -> Tensor:
        return self.net.op(op, a, b, **self.quant(), **attrs)

    def graph(self, *outputs: Tensor) -> Graph:
        for tensor in outputs:
            self.net.output(tensor)
        return model_of(self.net.build()).lower()


def _ops(graph: Graph) -> list[str]:
    return [node.op for node in with_sums(graph).nodes]


def test_a_sum_is_the_end_of_the_layer_that_only_it_reads() -> None:
    n = _Net()
    graph = n.graph(n.add(n.conv(n.x), n.x))
    assert _ops(graph) == ["conv2d+add"]
    (node,) = with_sums(graph).nodes
    assert node.inputs[-1] == "x" and [one.op for one in node.of] == ["conv2d", "add"]
    assert apart(with_sums(graph)) == graph


def test_a_tensor_that_is_read_again_or_given_out_is_not_taken() -> None:
    n = _Net()
    made = n.conv(n.x)
    assert "conv2d+add" not in _ops(n.graph(n.add(made, n.x), made))
    n = _Net()
    made = n.conv(n.x)
    again = n.add(made, n.x)
    assert "conv2d+add" not in _ops(n.graph(n.add(n.add(again, made), n.x)))
    n = _Net()
    made = n.conv(n.x)
    assert "conv2d+add" not in _ops(n.graph(n.add(made, made)))


def test_a_sum_with_a_tensor_of_another_shape_is_no_end() -> None:
    n = _Net()
    one = n.net.op("avg_pool2d", n.x, kernel=(6, 5))
    assert "conv2d+add" not in _ops(n.graph(n.add(n.conv(n.x), one)))


def test_a_float_sum_with_limits_is_no_end() -> None:
    n = _Net("float32")
    graph = n.graph(n.add(n.conv(n.x), n.x, clamp=(0.0, None)))
    assert "conv2d+add" not in _ops(graph)


def test_of_two_layers_the_one_that_reads_less_is_last() -> None:
    n = _Net()
    small = n.net.op("max_pool2d", n.x, kernel=(1, 1), strides=(2, 2))
    main = n.conv(small)
    graph = n.graph(n.add(main, n.conv(n.x, 1, strides=(2, 2))))
    (joined,) = [node for node in with_sums(graph).nodes if node.of]
    assert joined.of[0].output == main.name


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends wherever there can be one, whatever they are worth."""
    monkeypatch.setattr(pybuild.ways, "is_better", lambda *_: True)


def _equal(library: Library, *backends: str) -> None:
    graph = library.plan.graph
    values = interpret(graph, inputs_of(graph))
    for backend in backends or ("llvm",):
        found = outputs_of(library, backend, poison=0x80)
        for a, b in zip(found, (values[n] for n in graph.outputs), strict=True):
            if b.dtype == np.float32:
                np.testing.assert_allclose(a, b, 1e-5, 1e-5)
            else:
                np.testing.assert_array_equal(a, b)


def _sums(kind: str) -> Graph:
    """Either side of a sum and of a difference; pointwise, and of its own input."""
    n = _Net(kind)
    a = n.add(n.conv(n.x), n.x)
    limits = {"clamp": (0.0, None)} if kind == "int8" else {}
    b = n.add(a, n.conv(a), "sub", **limits)
    c = n.add(n.conv(n.conv(b, 1)), n.conv(a, 1))
    return n.graph(n.add(c, n.conv(c)))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_kernels_equal_numpy(target: str, kind: str) -> None:
    graph = _sums(kind)
    library = model_of(graph).build(target=target, plan="whole")
    assert sum(len(step.node.of) == 2 for step in library.plan.steps) == 4
    _equal(library)


@pytest.mark.usefixtures("always")
def test_printed_c_equals_numpy() -> None:
    _equal(model_of(_sums("int8")).build(target="cortex-m4", plan="whole"), "c")


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("optimise", ["size", "speed"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.sweep
def test_all_kernels_equal_numpy(target: str, optimise: str) -> None:
    for kind in ("int8", "float32"):
        library = model_of(_sums(kind)).build(
            target=target, plan="whole", optimise=optimise
        )
        _equal(library, "llvm", "c")


def test_a_whole_tensor_less_is_held() -> None:
    n = _Net()
    a = n.conv(n.x)
    graph = n.graph(n.add(n.conv(n.conv(a)), a))
    plans = []
    for better in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pybuild.ways, "is_better", lambda *_, b=better: b)
            plans.append(model_of(graph).build(target="cortex-m4", plan="whole").plan)
    size = graph.tensor("x").bytes
    assert len(plans[0].steps) == len(plans[1].steps) + 1
    assert plans[0].lower_bound >= plans[1].lower_bound + size - 5 * 4 * 2


@pytest.mark.usefixtures("always")
def test_a_band_has_room() -> None:
    """Behind the layer's own working memory, whole."""
    plan = model_of(_sums("int8")).build(target="cortex-m4", plan="whole").plan
    for step in plan.steps:
        (wrote,) = step.candidate.outputs
        if step.node.of:
            values = dict(
                zip(step.candidate.func.args, step.candidate.args, strict=True)
            )
            begin = next(n for a, n in values.items() if a.name == "made_at")
            assert begin % 4 == 0
            assert step.candidate.scratch == begin + wrote.row_bytes


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4"])
@pytest.mark.sweep
def test_random_residual_nets_are_equal(target: str) -> None:
    @quick(60)
    @given(row_graphs("int8"))
    def equal(graph: Graph) -> None:
        by_rows = outputs_of(model_of(graph).build(target=target))
        must_equal(
            outputs_of(model_of(graph).build(target=target, plan="whole")), by_rows
        )

    equal()

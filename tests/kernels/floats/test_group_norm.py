"""Norms of float32, however a file spells them, are one node; what it costs, and that
it is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.select.choose import estimated
from pybuild.verify.check import check
from tests.frontends.onnx.models import NodeSpec
from tests.frontends.onnx.models import model as onnx_model

_C = 16
_X = np.zeros((1, 3, 12, 12), np.float32)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(0, 0.4, shape).astype(np.float32)


def onnx(kind: str) -> bytes:
    """Two convolutions with a norm and a ReLU between them."""
    shape = np.array([0, 4, -1]), np.array([1, _C, 12, 12])
    known = {"w": numbers(_C, 3, 3, 3), "v": numbers(4, _C, 1, 1),
             "s": numbers(_C), "b": numbers(_C),
             "s1": numbers(_C).reshape(-1, 1, 1), "b1": numbers(_C).reshape(-1, 1, 1),
             "one": np.ones(4, np.float32), "none": np.zeros(4, np.float32),
             "groups": shape[0], "image": shape[1]}  # fmt: skip
    norms: dict[str, list[NodeSpec]] = {
        "instance": [("InstanceNormalization", ["a", "s", "b"], ["n"], {})],
        "group": [("GroupNormalization", ["a", "s", "b"], ["n"], {"num_groups": 4})],
        "whole": [("GroupNormalization", ["a", "s", "b"], ["n"], {"num_groups": 1})],
        # as torch exports it
        "reshaped": [
            ("Reshape", ["a", "groups"], ["g"], {}),
            ("InstanceNormalization", ["g", "one", "none"], ["h"], {}),
            ("Reshape", ["h", "image"], ["i"], {}),
            ("Mul", ["i", "s1"], ["j"], {}),
            ("Add", ["j", "b1"], ["n"], {}),
        ],
    }
    nodes: list[NodeSpec] = [
        ("Conv", ["x", "w"], ["a"], {"pads": [1, 1, 1, 1]}),
        *norms[kind],
        ("Relu", ["n"], ["r"], {}),
        ("Conv", ["r", "v"], ["y"], {}),
    ]
    used = {name for _, reads, _, _ in nodes for name in reads}
    given = {name: value for name, value in known.items() if name in used}
    return onnx_model(nodes, {"x": _X}, ["y"], given, opset=21)


def channels_last(groups: int) -> Graph:
    """The same of means, as a .tflite file spells it."""
    b = pybuild.GraphBuilder("norm")
    x = b.input("x", (1, 12, 12, 3))
    w = b.constant("w", np.moveaxis(numbers(_C, 3, 3, 3), 1, -1))
    y = b.op("conv2d", x, w, pads=(1, 1, 1, 1))
    axes, shape = ((1, 2), None) if groups > 1 else ((1, 2, 3), None)
    if 1 < groups < _C:
        axes, shape = (1, 2, 4), (1, 12, 12, groups, _C // groups)
        y = b.op("reshape", y, shape=shape)
    away = b.op("sub", y, b.op("mean", y, axes=axes, keepdims=True))
    spread = b.op("mean", b.op("mul", away, away), axes=axes, keepdims=True)
    epsilon = b.constant("epsilon", np.float32(1e-5).reshape(()))
    root = b.op("map", b.op("add", spread, epsilon), fn="sqrt")
    y = b.op("map", away, root, fn="divide")
    if shape is not None:
        y = b.op("reshape", y, shape=(1, 12, 12, _C))
    y = b.op("mul", y, b.constant("s", numbers(_C)))
    y = b.op("add", y, b.constant("b", numbers(_C)), clamp=(0.0, None))
    v = b.constant("v", np.moveaxis(numbers(4, _C, 1, 1), 1, -1))
    b.output(b.op("conv2d", y, v), "y")
    return b.build()


def middle(graph: Graph) -> list[Any]:
    return [
        (n.op, graph.tensor(n.output).shape, n.attrs.get("view"), n.attrs.get("clamp"))
        for n in graph.nodes
        if n.op not in ("transpose", "reshape", "copy")
    ]


@pytest.mark.parametrize("kind", ["instance", "group", "reshaped", "whole"])
def test_a_norm_is_one_node_through_each_door(kind: str) -> None:
    model = pybuild.load(onnx(kind))
    groups = {"instance": _C, "whole": 1}.get(kind, 4)
    found = middle(model.lower())
    assert found == middle(pybuild.build(channels_last(groups)).plan.graph)
    view = (1, 144, groups, _C // groups)
    assert [op for op, *_ in found] == ["conv2d", "group_norm", "conv2d"]
    assert found[1][2:] == (view, (0.0, None))


@pytest.mark.parametrize("turned", [False, True])
def test_rows_stay_rows_where_all_factors_are_one(turned: bool) -> None:
    """More elements in a row than rows: both would have few factors otherwise."""
    nodes: list[NodeSpec] = [("LayerNormalization", ["t", "s", "b"], ["y"], {})]
    first = ("Transpose", ["x"], ["t"], {"perm": [0, 2, 1]})
    nodes.insert(0, first if turned else ("Relu", ["x"], ["t"], {}))
    shape = (1, 24, 5) if turned else (1, 5, 24)
    known = {"s": np.ones(24, np.float32), "b": np.zeros(24, np.float32)}
    data = onnx_model(nodes, {"x": numbers(*shape)}, ["y"], known, opset=17)
    (norm,) = [n for n in pybuild.load(data).lower().nodes if n.op == "group_norm"]
    assert norm.attrs["view"] == (5, 1, 1, 24)


def test_what_a_norm_takes() -> None:
    """It took 45 instructions an element, and 7 the ReLU behind it."""
    for kind, target, most in (
        ("instance", "cortex-m4", 15), ("reshaped", "cortex-m4", 18),
        ("instance", "cortex-m55", 5),
    ):  # fmt: skip
        library = pybuild.load(onnx(kind)).build(target=target)
        steps = [(step.node, step.candidate) for step in library.plan.steps]
        (norm,) = [one for one in steps if one[0].op == "group_norm"]
        assert sum(estimated([norm], library.kernels)) < most * 144 * _C
        # in place: two tensors of a convolution and its input's, not three
        assert library.report.ram.arena < 2 * 4 * 144 * _C


def test_it_is_the_norm_of_onnx() -> None:
    data = onnx("instance")
    net = pybuild.load(data).build().host("llvm")
    x = 5 + numbers(1, 3, 12, 12)
    pads = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    cells = np.lib.stride_tricks.sliding_window_view(pads, (3, 3), (2, 3))[0]
    a = np.einsum("chwij,ocij->ohw", cells, numbers(_C, 3, 3, 3))
    a = (a - a.mean((1, 2), keepdims=True)) / np.sqrt(
        a.var((1, 2), keepdims=True) + 1e-5
    )
    each, v = numbers(_C)[:, None, None], numbers(4, _C, 1, 1)[:, :, 0, 0]
    y = np.einsum("chw,oc->ohw", np.maximum(a * each + each, 0), v)
    np.testing.assert_allclose(net.run(x=x)["y"][0], y, 1e-4, 2e-5)


@pytest.mark.parametrize("back_end", ["llvm", "c"])
def test_it_is_numpys_in_every_form(back_end: str) -> None:
    """Of channels, groups, an image, and rows; on vectors as well."""
    for target in ("generic", "cortex-m55") if back_end == "llvm" else ("cortex-m55",):
        b = pybuild.GraphBuilder("forms")
        for n, view in enumerate([
            (1, 9, 16, 1), (2, 5, 13, 1), (1, 6, 4, 4), (1, 9, 1, 24), (2, 1, 3, 20),
            (1, 7, 2, 13), (6, 1, 1, 5), (1, 1, 1, 384), (4, 1, 1, 24),
        ]):  # fmt: skip
            # of the last but one a row is not a group, of the last one it is four
            shape = {7: (1, 4, 6, 16), 8: (1, 2, 4, 12)}.get(n, view)
            x = b.input(f"x{n}", shape)
            count = view[2] * view[3]
            each = [b.constant(f"{name}{n}", numbers(count)) for name in "fo"]
            y = b.op("group_norm", x, *each[: 2 - n % 3], epsilon=1e-3,
                     centred=n % 4 < 3, view=view)  # fmt: skip
            b.output(y, f"y{n}")
        graph = b.build()
        library = pybuild.build(graph, target=target)
        given = {x: 3 + 2 * numbers(*graph.tensor(x).shape) for x in graph.inputs}
        want: dict[str, Any] = dict(interpret(graph, given))
        found = library.host(back_end).run(**given)
        for name, value in found.items():
            np.testing.assert_allclose(value, want[name], 1e-5, 1e-5, err_msg=name)


def test_a_stream_keeps_norms_of_rows() -> None:
    """Of a frame alone; one of the whole window is computed of all of it."""
    b = pybuild.GraphBuilder("stream")
    x = b.input("x", (1, 8, 1, 6))
    y = b.op("group_norm", x, epsilon=1e-3, centred=True, view=(8, 1, 1, 6))
    b.output(y, "y")
    library = pybuild.build(b.build(), stream=["1"])
    assert library.plan.graph.tensor("y").shape == (1, 1, 1, 6)
    assert check("stream", library, ("llvm",), "numpy", 1).ok

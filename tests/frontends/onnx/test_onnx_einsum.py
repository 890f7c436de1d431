"""Einsum: equal to ONNX Runtime, and a product of matrices where it is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.onnx import load
from pybuild.ops.interpret import interpret
from tests.frontends.onnx.models import expected, model

Shapes = Sequence[tuple[int, ...]]
# equation, shapes, nodes that multiply and sum
EQUATIONS: tuple[tuple[str, Shapes, str], ...] = (
    ("bhid,bhjd->bhij", ((1, 4, 6, 5), (1, 4, 7, 5)), "matmul"),
    ("bhij,bhjd->bhid", ((1, 4, 6, 7), (1, 4, 7, 5)), "matmul"),
    ("bqhd,bkhd->bhqk", ((2, 6, 4, 5), (2, 7, 4, 5)), "matmul"),
    ("ij,jk->ik", ((3, 4), (4, 5)), "matmul"),
    ("jk , ij", ((4, 5), (3, 4)), "matmul"),
    ("...ij,...jk->...ik", ((2, 1, 3, 4), (2, 6, 4, 5)), "matmul"),
    ("bchw,cd->bdhw", ((2, 3, 4, 5), (3, 6)), "matmul"),
    ("i,i->", ((5,), (5,)), "matmul"),
    ("bij,bjk,bkl->bil", ((2, 3, 4), (2, 4, 5), (2, 5, 6)), "matmul matmul"),
    ("bn,anm,bm->ba", ((2, 3), (4, 3, 5), (2, 5)), "matmul matmul"),
    ("ij,kl->jl", ((3, 4), (5, 6)), "reduce reduce map"),
    ("abc,abc->ac", ((2, 3, 4), (2, 3, 4)), "matmul"),
    ("bij,bij,bij->b", ((2, 3, 4),) * 3, "map matmul"),
    ("iij,jk->ik", ((3, 3, 4), (4, 2)), "matmul"),
    ("ii->i", ((4, 4),), ""),
    ("ii", ((4, 4),), "reduce"),
    ("ij->ji", ((3, 4),), ""),
    ("i...->...", ((3, 4, 5),), "reduce"),
    ("i,j->ij", ((3,), (4,)), "map"),
    ("ij,ij->ij", ((3, 4), (3, 4)), "map"),
)  # fmt: skip


def _inputs(shapes: Shapes) -> dict[str, Array]:
    chance = np.random.default_rng(3)
    return {
        f"x{i}": chance.normal(size=shape).astype(np.float32)
        for i, shape in enumerate(shapes)
    }


def _net(equation: str, inputs: dict[str, Array], **weights: Array) -> bytes:
    names = [*inputs, *weights]
    node = ("Einsum", names, ["y"], {"equation": equation})
    return model([node], inputs, ["y"], weights)


def _agrees(data: bytes, inputs: dict[str, Array]) -> list[str]:
    """The kinds of nodes; the values are ONNX Runtime's."""
    graph = load("einsum.onnx", data, {})
    theirs = expected(data, inputs)["y"]
    ours = interpret(graph, inputs)["y"]
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * abs(theirs).max())
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize(("equation", "shapes", "kinds"), EQUATIONS)
def test_equations(equation: str, shapes: Shapes, kinds: str) -> None:
    inputs = _inputs(shapes)
    made = _agrees(_net(equation, inputs), inputs)
    assert [k for k in made if k in ("matmul", "map", "reduce")] == kinds.split()


def test_weights_are_a_dense_layer() -> None:
    inputs = _inputs([(1, 17, 32)])
    weights = np.random.default_rng(1).normal(size=(32, 48)).astype(np.float32)
    assert "dense" in _agrees(_net("bid,de->bie", inputs, w=weights), inputs)


def test_attention_takes_no_memory_for_its_products(tmp_path: Path) -> None:
    path = tmp_path / "attention.onnx"
    path.write_bytes(_net("bhid,bhjd->bhij", _inputs([(1, 4, 64, 16)] * 2)))
    library = pybuild.load(path).build(name="attention")
    assert library.plan.arena_bytes < 1.6 * 4 * 64 * 64 * 4  # with both inputs


@pytest.mark.parametrize("equation", ["ij,jk->iz", "ij,jk->iik"])
def test_equations_that_make_other_axes(equation: str) -> None:
    file = onnx.load_from_string(_net("ij,jk->ik", _inputs([(3, 4), (4, 5)])))
    file.graph.node[0].attribute[0].s = equation.encode()
    with pytest.raises(BuildError, match=r"einsum\.onnx"):
        load("einsum.onnx", file.SerializeToString(), {})

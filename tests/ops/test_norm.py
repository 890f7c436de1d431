"""norm of int8 and int16: numpy against real numbers, each kernel against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import check_types, interpret
from pybuild.ops.norm import MOST, bit_length, inverse_root, norm_parameters
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c

Shape = tuple[int, ...]
INT8, INT16 = DType.INT8, DType.INT16
EPSILON = 1e-5


def norm(shape: Shape, dtype: DType, centred: bool = True, **more: Any) -> Graph:
    chance, count = np.random.default_rng(shape[-1]), shape[-1]
    gamma = chance.uniform(-1.5, 1.5, count).astype(np.float32)
    beta = (0.2 * chance.standard_normal(count)).astype(np.float32)
    zeros = (3, -4) if dtype is INT8 else (0, 0)
    x = Quant((more.get("x_scale", 4 / dtype.high),), zeros[:1])
    y = Quant((more.get("y_scale", 5 / dtype.high),), zeros[1:])
    one = (count,)
    tensors = {"x": Tensor("x", shape, dtype, x), "y": Tensor("y", shape, dtype, y),
               "g": Tensor("g", one, DType.FLOAT32),
               "b": Tensor("b", one, DType.FLOAT32)}  # fmt: skip
    attrs = {"epsilon": more.get("epsilon", EPSILON), "centred": centred}
    node = Node("norm", "y", ("x", "g", "b"), ("y",), attrs)
    constants = {"g": gamma, "b": beta}
    return Graph("norm", "norm", (node,), tensors, ("x",), ("y",), constants)


def inputs(graph: Graph, spread: float) -> Array:
    """Rows of that deviation, in shares of the range, around a tenth of it."""
    x = graph.tensor("x")
    chance = np.random.default_rng(len(x.shape))
    rows = x.dtype.high * (0.1 + spread * chance.standard_normal(x.shape))
    return np.clip(np.rint(rows), x.dtype.low, x.dtype.high).astype(x.dtype.numpy)


def real(graph: Graph, given: Array) -> npt.NDArray[np.float64]:
    """What the integers should be, in float64."""
    x, y = graph.tensor("x"), graph.tensor("y")
    values = (given.astype(np.float64) - x.zero_point) * x.scale
    if graph.nodes[0].attrs["centred"]:
        values = values - values.mean(-1, keepdims=True)
    epsilon = float(graph.nodes[0].attrs["epsilon"])
    values = values / np.sqrt((values**2).mean(-1, keepdims=True) + epsilon)
    made = values * graph.constants["g"] + graph.constants["b"]
    whole = made / y.scale + y.zero_point
    return np.asarray(np.clip(whole, y.dtype.low, y.dtype.high), np.float64)


SHAPES: list[Shape] = [(3, 1), (2, 5, 7), (1, 4, 6, 16), (1, 9000)]


@pytest.mark.parametrize("dtype", [INT8, INT16])
@pytest.mark.parametrize("centred", [True, False])
def test_numpy_is_right_and_kernels_equal_it(
    dtype: DType, centred: bool, tmp_path: Path
) -> None:
    """Rows of half the range, of few steps, and all of one value."""
    jobs = []
    for shape in SHAPES:
        graph = norm(shape, dtype, centred)
        net = Model("norm", graph, "onnx", "0" * 64).build().host("llvm")
        for spread in (0.25, 0.001, 0.0):
            given = inputs(graph, spread)
            made = interpret(graph, {"x": given})["y"]
            # rows of 9,000 have 20 bits behind the point
            assert np.abs(real(graph, given) - made.astype(float)).max() < 0.56
            np.testing.assert_array_equal(net.run(x=given)["y"], made)
            (found,) = candidates(graph.nodes[0], graph, TARGETS["generic"])
            jobs += [
                Job(found, {"x": given}, {"y": made}, place) for place in (None, 0)
            ]
        net.close()
    for job, result in zip(jobs, run_c(jobs, tmp_path, "gcc"), strict=True):
        np.testing.assert_array_equal(result["y"], job.outputs["y"])


def test_the_greatest_rows() -> None:
    """The longest row, of the ends of int16; sums stay within what holds them."""
    graph = norm((1, MOST), INT16)
    net = Model("norm", graph, "onnx", "0" * 64).build().host("llvm")
    for row in (np.where(np.arange(MOST) % 2, 32767, -32768), np.full(MOST, -32768)):
        given = row.astype(np.int16)[None]
        made = interpret(graph, {"x": given})["y"]
        assert np.abs(real(graph, given) - made.astype(float)).max() < 0.6
        np.testing.assert_array_equal(net.run(x=given)["y"], made)
    net.close()


def test_a_large_epsilon() -> None:
    """As large as fits, it leaves beta; one that is larger is refused."""
    graph = norm((2, 24), INT16, epsilon=1e7)
    assert norm_parameters(graph.nodes[0], graph).more < 16
    given = inputs(graph, 0.25)
    made = interpret(graph, {"x": given})["y"]
    assert np.abs(real(graph, given) - made.astype(float)).max() < 0.51
    graph = norm((2, 24), INT16, epsilon=1e30)
    with pytest.raises(BuildError, match="too much for a scale"):
        norm_parameters(graph.nodes[0], graph)


def test_the_inverse_root() -> None:
    a = np.concatenate([np.arange(1 << 29, 1 << 31, 99_991), [(1 << 31) - 1]])
    wanted = 2.0**29 / np.sqrt(a / 2.0**31)
    assert np.abs(inverse_root(a) / wanted - 1).max() < 2.0**-23
    numbers = np.asarray([1, 2, 3, 2**31 - 1, 2**31, 2**53 + 1, 2**62 - 1])
    assert bit_length(numbers).tolist() == [int(n).bit_length() for n in numbers]


def test_what_is_refused() -> None:
    for graph, what in (
        (norm((1, MOST + 1), INT16), "at most 32767 elements"),
        (norm((1, 4), INT16, epsilon=-1.0), "epsilon is -1.0"),
    ):
        (found,) = check_types(graph)
        assert what in str(found)
    graph = norm((1, 4), INT16, y_scale=1e-12)
    with pytest.raises(BuildError, match="too small for its factors"):
        candidates(graph.nodes[0], graph, TARGETS["generic"])

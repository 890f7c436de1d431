"""Seeded input sets that reach the corners of a network, not only its middle.

Knows the inputs' types and quantisation, nothing of what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Tensor
from pybuild.records import dataclass

F64 = npt.NDArray[np.float64]
Inputs = Mapping[str, Array]

# each of these once, then uniform and structured ones in turn
KINDS = ("uniform", "gradient", "lowest", "stripes", "highest", "blobs", "zero")
VARIED = ("uniform", "blobs", "uniform", "stripes", "uniform", "gradient")
_MOVES = ("reshape", "transpose", "copy", "pad", "slice")


@dataclass(frozen=True)
class Sample:
    """One value for every input, and how it was made."""

    kind: str
    inputs: Inputs


def samples(graph: Graph, count: int, seed: int = 0) -> Iterator[Sample]:
    """`count` samples; the same for the same graph inputs and seed."""
    for index in range(count):
        extra = index - len(KINDS)
        kind = KINDS[index] if extra < 0 else VARIED[extra % len(VARIED)]
        yield sample(graph, kind, (seed, index))


def sample(graph: Graph, kind: str, seed: tuple[int, ...]) -> Sample:
    rng = np.random.default_rng(seed)
    made = {name: _value(graph, graph.tensor(name), kind, rng) for name in graph.inputs}
    return Sample(kind, made)


def example_inputs(graph: Graph) -> Inputs:
    """The one input set that stands in self-tests and examples."""
    return sample(graph, "uniform", (0, 0)).inputs


def _value(graph: Graph, tensor: Tensor, kind: str, rng: np.random.Generator) -> Array:
    """A tensor that spans the type's range: 0..1 patterns stretched onto it."""
    low, high = _range(graph, tensor)
    zero = 0.0 if tensor.dtype.is_float or tensor.quant is None else tensor.zero_point
    match kind:
        case "lowest":
            real = np.full(tensor.shape, low)
        case "highest":
            real = np.full(tensor.shape, high)
        case "zero":
            real = np.full(tensor.shape, float(zero))
        case _:
            real = low + _PATTERNS[kind](tensor.shape, rng) * (high - low)
    if not tensor.dtype.is_float:
        real = np.clip(np.rint(real), low, high)
    return np.asarray(real, tensor.dtype.numpy)  # numpy makes scalars of rank 0


def _range(graph: Graph, tensor: Tensor) -> tuple[float, float]:
    """The values an input takes: one that counts rows of a table (words of an
    embedding) has as many as there are, a float one that is quantised at once has its
    quantised range, any other float one -1..1.
    """
    if rows := _rows(graph, tensor.name):
        return 0.0, min(rows) - 1.0
    if not tensor.dtype.is_float:
        bits = min(8 * tensor.dtype.bytes, 16)
        whole = (tensor.dtype.low, tensor.dtype.high)
        return whole if bits < 16 else (-(2.0**15), 2.0**15 - 1)
    for name in _aliases(graph, tensor.name):
        for node in graph.consumers()[name]:
            if node.op == "quantize":
                made = graph.tensor(node.output)
                steps = (made.dtype.low, made.dtype.high)
                low, high = (made.scale * (q - made.zero_point) for q in steps)
                return low, high
    return -1.0, 1.0


def is_wide(graph: Graph, tensor: Tensor) -> bool:
    """True if an input may be any float: it counts no rows and is not quantised at
    once.
    """
    return tensor.dtype.is_float and _range(graph, tensor) == (-1.0, 1.0)


def _rows(graph: Graph, name: str) -> list[int]:
    """The sizes of what is gathered from by these numbers."""
    names = _aliases(graph, name, (*_MOVES, "map"))  # Keras counts from the end, too
    return [
        graph.tensor(node.inputs[0]).shape[int(node.attrs["axis"])]
        for node in graph.nodes
        if node.op == "gather" and node.inputs[1] in names
    ]


def _aliases(
    graph: Graph, name: str, moves: tuple[str, ...] = _MOVES
) -> dict[str, None]:
    """The tensor and what only moves its values."""
    names = {name: None}
    for node in graph.nodes:
        if node.op in moves and any(read in names for read in node.inputs):
            names |= dict.fromkeys(node.outputs)
    return names


def _uniform(shape: tuple[int, ...], rng: np.random.Generator) -> F64:
    return rng.random(shape)


def _gradient(shape: tuple[int, ...], rng: np.random.Generator) -> F64:
    """A ramp along a random direction."""
    ramp = np.zeros(shape)
    for axis, size in enumerate(shape):
        steps = np.linspace(0, 1, size) * rng.uniform(-1, 1)
        ramp += steps.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    spread = np.ptp(ramp)
    return (ramp - ramp.min()) / spread if spread else ramp


def _stripes(shape: tuple[int, ...], rng: np.random.Generator) -> F64:
    """Full contrast stripes of 1 to 4 elements along a random axis."""
    wide = [axis for axis, size in enumerate(shape) if size > 1]
    if not wide:
        return rng.random(shape)
    axis = int(rng.choice(wide))
    widest = min(4, shape[axis] // 2)
    stripe = (np.arange(shape[axis]) // int(rng.integers(1, widest + 1))) % 2
    order = [-1 if a == axis else 1 for a in range(len(shape))]
    return np.broadcast_to(stripe.reshape(order), shape).astype(np.float64)


def _blobs(shape: tuple[int, ...], rng: np.random.Generator) -> F64:
    """Three bright blobs on black."""
    grids = np.meshgrid(*(np.linspace(0, 1, s) for s in shape), indexing="ij")
    total = np.zeros(shape)
    for _ in range(3):
        middle = tuple(int(rng.integers(s)) for s in shape)
        far = sum(((g - g[middle]) ** 2 for g in grids), np.zeros(shape))
        total += np.exp(-far / 0.03)
    return np.minimum(total, 1.0)


_PATTERNS: dict[str, Callable[[tuple[int, ...], np.random.Generator], F64]] = {
    "uniform": _uniform,
    "gradient": _gradient,
    "stripes": _stripes,
    "blobs": _blobs,
}

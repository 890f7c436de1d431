"""Weights rounded to a layer's outputs, not each to itself.

What rounding one weight does to the outputs, the weights after it take back as far as
inputs go together on the samples. Source: Frantar et al., OPTQ (2023). The step of an
output channel is chosen likewise. Every machine rounds alike: sums over samples are
exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ops.conv import taps
from pybuild.passes.qdq import WEIGHTED
from pybuild.quantisation.execute import Execution
from pybuild.quantisation.products import gram, triangle
from pybuild.quantisation.ranges import Floats
from pybuild.quantisation.rewrite import CHANNEL_AXIS, least_scales
from pybuild.quantisation.samples import Samples
from pybuild.quantisation.scheme import Fitted, refused
from pybuild.records import dataclass

# weights of an output channel, above which moments take more than they give
_MOST = 2304
# of the mean square of the inputs: what none of the samples has shows in later ones
_DAMPING = 0.01
# scales that are tried for an output channel, around the least that clips no weight;
# fewer where it has many weights, of which all scales round some well and some badly
_TRIED, _AROUND, _WORK = 48, 0.25, 4096


@dataclass(frozen=True)
class Moments:
    """The second moments of a layer's inputs.

    Shapes  square [G,K,K]: sums of products, of each group of channels; rows: windows
    """

    square: Floats
    rows: int


def fitted(
    execution: Execution,
    samples: Samples,
    wide: Collection[str] = (),
    told: Callable[[float], None] = lambda share: None,
) -> dict[str, Fitted]:
    """int8 weights and their scales, by output of their layer.

    wide    layers of int16 activations: what they lose is in the weights alone, and so
            their scales are searched, too
    told    called with the share of the work that is done
    Time    one run over all samples, and the cube of the inputs of each output
    """
    graph = execution.graph
    no, users = refused(graph), graph.consumers()
    layers = [
        node
        for node in graph.nodes
        if node.op in WEIGHTED
        and node.output not in no
        and len(users[node.inputs[1]]) == 1
        and by_output(node, graph.constants[node.inputs[1]], graph).shape[2] <= _MOST
    ]
    found: dict[str, Moments] = {}
    chunks = -(-samples.count // execution.chunk)
    work = _Work(told, chunks * len(layers), sum(_cube(x, graph) for x in layers))
    for values in execution.over(samples):
        for node in layers:
            made = _moments(node, graph, values[node.inputs[0]])
            before = found.get(node.output, Moments(np.zeros(()), 0))
            both = before.square + made.square
            found[node.output] = Moments(both, before.rows + made.rows)
            work.observed()
    steps = {}
    for node in layers:
        own = node.output in wide
        steps[node.output] = _steps(node, graph, found[node.output], own)
        work.rounded(_cube(node, graph))
    return steps


def _cube(node: Node, graph: Graph) -> int:
    """The work of rounding a layer, to compare it with others."""
    groups, outputs, size = by_output(
        node, graph.constants[node.inputs[1]], graph
    ).shape
    return int(groups * size * size * (size + outputs))


class _Work:
    """Half of it is running samples, half is rounding layers."""

    def __init__(self, told: Callable[[float], None], runs: int, cubes: int) -> None:
        self._told, self._runs, self._cubes = told, max(runs, 1), max(cubes, 1)
        self._ran = self._cut = 0

    def observed(self) -> None:
        self._ran += 1
        self._told(0.5 * self._ran / self._runs)

    def rounded(self, cube: int) -> None:
        self._cut += cube
        self._told(0.5 + 0.5 * self._cut / self._cubes)


def by_output(node: Node, w: Array, graph: Graph) -> Array:
    """Weights as [G,O,K]: groups, output channels of each, inputs of each."""
    if node.op == "depthwise_conv2d":
        channels = graph.tensor(node.inputs[0]).shape[-1]
        return w.reshape(-1, w.shape[2]).T.reshape(channels, -1, w[..., 0].size)
    groups = int(node.attrs.get("groups", 1))
    return w.reshape(groups, w.shape[0] // groups, -1)


def _moments(node: Node, graph: Graph, x: Array) -> Moments:
    """The moments of samples [N,1,*shape], added one sample at a time, because windows
    are many."""
    square, rows = np.zeros(()), 0
    for one in x:
        windows = _windows(node, graph, one).astype(np.float64)
        square = square + gram(windows)
        rows += windows.shape[1]
    return Moments(square, rows)


def _windows(node: Node, graph: Graph, x: Array) -> Array:
    """[G,rows,K]: what each output position reads, in the order of the weights."""
    w = graph.tensor(node.inputs[1]).shape
    if node.op == "dense":
        return x.reshape(1, -1, w[-1])
    depthwise = node.op == "depthwise_conv2d"
    groups = x.shape[-1] if depthwise else int(node.attrs.get("groups", 1))
    seen = taps(node, graph, x, w[:2] if depthwise else w[1:3])
    rows, inputs = math.prod(seen.shape[:3]), math.prod(seen.shape[3:])
    parts = seen.reshape(rows, *seen.shape[3:5], groups, -1)
    return parts.transpose(3, 0, 1, 2, 4).reshape(groups, rows, inputs // groups)


def _steps(node: Node, graph: Graph, moments: Moments, searched: bool) -> Fitted:
    """With the least scale of each output channel, or the one whose outputs are
    nearest on the samples.
    """
    w = graph.constants[node.inputs[1]].astype(np.float64)
    whole = np.array(by_output(node, w, graph), np.float64)
    groups, outputs, size = whole.shape
    least = least_scales(w, CHANNEL_AXIS[node.op]).reshape(groups, outputs)
    spread = triangle(_damped(moments))
    scale, (steps, off) = least, _rounded(whole, least, spread)
    count = min(_TRIED, _WORK // size) if searched else 0
    for factor in np.linspace(1 - _AROUND, 1 + _AROUND, count):
        tried = (least * factor).astype(np.float32).astype(np.float64)
        other, error = _rounded(whole, tried, spread)
        better = error < off
        steps = np.where(better[..., None], other, steps)
        scale, off = np.where(better, tried, scale), np.minimum(error, off)
    if node.op == "depthwise_conv2d":
        steps = steps.reshape(-1, size).T
    return Fitted(np.asarray(steps.reshape(w.shape), np.int8), scale.reshape(-1))


def _rounded(whole: Floats, scale: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """[G,O,K] in steps of scale [G,O], and the mean square of what the outputs are off.

    Each sum is added up element by element: of all machines in one order.
    """
    steps, due = np.empty_like(whole), np.zeros_like(whole)
    error = np.zeros_like(scale)
    for i in range(whole.shape[2]):
        own = spread[:, i, i, None]
        want = whole[..., i] + due[..., i] / own
        steps[..., i] = np.clip(np.rint(want / scale), -127, 127)
        off = whole[..., i] - steps[..., i] * scale
        error += np.square(due[..., i] + off * own)
        due[..., i + 1 :] += off[..., None] * spread[:, i, None, i + 1 :]
    return steps, error


def _damped(moments: Moments) -> Floats:
    """[G,K,K]: how inputs go together in windows that were not seen, too.

    Few windows say little of it: the less, the more those count as going each by
    itself. With U of `triangle` the error of an output is the sum of the squares of
    errors @ U: weight i takes back, over U[i, i], what those before put into column i.
    """
    size = moments.square.shape[1]
    square = moments.square / moments.rows
    each = np.diagonal(square, axis1=1, axis2=2)
    mean = each.mean(1, keepdims=True)
    few = size / (size + moments.rows)
    damped = (1 - few) * square
    diagonal = np.arange(size)
    damped[:, diagonal, diagonal] += few * each + _DAMPING * np.where(mean > 0, mean, 1)
    return np.asarray(damped)

"""The table of operators and their kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.any_type import (
    accumulate,
    contract,
    detect,
    group_norm,
    index,
    resize,
)
from pybuild.kernels.base import external
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.specialise import specialise
from pybuild.kernels.hybrid import quantize, scale
from pybuild.kernels.layers.weights import PACKED, WEIGHTS16
from pybuild.kernels.moves import pad, shape
from pybuild.kernels.operators import (
    conv2d,
    convert,
    depthwise_conv2d,
    eltwise,
    extremes,
    pool,
    softmax,
    tables,
)
from pybuild.kernels.operators import mean as reduce
from pybuild.kernels.operators.hybrid import sums
from pybuild.kernels.operators.lstm import lstm
from pybuild.kernels.operators.matmul import matmul
from pybuild.kernels.operators.repeat import repeat
from pybuild.kernels.operators.sums import with_sum
from pybuild.kernels.operators.svdf import svdf
from pybuild.kernels.operators.turned import of_columns
from pybuild.kernels.portable import (
    attention,
    decide,
    halving_fft,
    image,
    norm,
    signal,
)
from pybuild.ops.hybrid import SUMS
from pybuild.targets.target import TARGETS, Target

KERNELS: dict[str, Callable[..., list[Candidate]]] = {
    "add": eltwise.eltwise,
    "arg_reduce": accumulate.arg_reduce,
    "avg_pool2d": pool.pool,
    "call": external.call,
    "clip": tables.unary,
    "concat": shape.concat,
    "conv": contract.conv,
    "conv2d": conv2d.conv2d,
    "copy": shape.copy,
    "assign": shape.assign,
    "cumulate": accumulate.cumulate,
    "dense": conv2d.dense,
    "depthwise_conv2d": depthwise_conv2d.depthwise_conv2d,
    "distinct": index.distinct,
    "dequantize": convert.dequantize,
    "gather": index.gather,
    "image": image.image,
    "leaky_relu": tables.unary,
    "logistic": tables.unary,
    "lookup": tables.lookup,
    "lstm": lstm,
    "map": extremes.element_map,
    "matmul": matmul,
    "max_pool2d": pool.pool,
    "mean": reduce.mean,
    "mul": eltwise.eltwise,
    "prelu": eltwise.eltwise,
    "norm": norm.norm,
    "group_norm": group_norm.group_norm,
    "pad": pad.pad,
    "places": index.places,
    "quantize_dynamic": quantize.quantize_dynamic,
    "quantize": convert.quantize,
    "reduce": accumulate.reduce,
    "resize_bilinear": resize.resize_bilinear,
    "reshape": shape.copy,
    "rfft": halving_fft.fft,
    "roi_align": detect.roi_align,
    "scale_sums": scale.scale_sums,
    "scatter": index.scatter,
    "shift": shape.shift,
    "slice": shape.strided_slice,
    "softmax": softmax.softmax,
    "attention": attention.attention,
    "suppress": detect.suppress,
    "sub": eltwise.eltwise,
    "svdf": svdf,
    "tanh": tables.unary,
    **dict.fromkeys(SUMS, sums),
    **decide.DECIDE,
    **signal.SIGNAL,
    "top_k": index.top_k,
    "transpose": shape.transpose,
}


def _repeated(
    node: Node, graph: Graph, target: Target, optimise: str
) -> list[Candidate]:
    """Return the candidates of `repeat`, from the kernels of its body."""
    return repeat(node, graph, lambda n, body: candidates(n, body, target, optimise))


KERNELS["repeat"] = _repeated
# what has kernels that are for one `optimise` alone, and so is told it
_WEIGHTED = ("conv2d", "dense", "depthwise_conv2d", "repeat", *SUMS)
# times the cost of a kernel of little code, beyond which others are left out
_SLOWER = 1.5
_INTEGERS = tuple(PACKED.values())
_PACKED = (*_INTEGERS, WEIGHTS16)
_FAR = 3  # times as many: kernels on vectors need whole bytes
# bytes of weights that are worth another kernel's code
_CODE = 512


def candidates(
    node: Node,
    graph: Graph,
    target: Target = TARGETS["generic"],
    optimise: str = "balanced",
) -> list[Candidate]:
    """Return the kernels that can compute the node, with their costs on the target.

    optimise  "balanced", "ram": kernels that layers can share; 4-bit weights two in a
              byte and float32 as equal float16, if that saves more flash than the code
              takes; "size": the same, however little it saves; "speed": first kernels
              with the layer's own constants, weights as bytes or float32
    Errors    BuildError naming the node if no kernel can compute it
    """
    found = _found(node, graph, target, optimise)
    if node.op != "repeat":  # those of its body are chosen
        found = _by_weights(found, _saved(node, graph), optimise)
    if optimise == "size":
        return _smallest(found)
    if optimise in ("balanced", "ram"):
        return found
    return [*(specialise(c) for c in found), *found]


def _found(node: Node, graph: Graph, target: Target, optimise: str) -> list[Candidate]:
    if node.of:
        return with_sum(
            node, graph, target, _found(node.of[0], graph, target, optimise)
        )
    if node.op not in KERNELS:
        raise BuildError(graph.where(node), "has no kernel")
    asked = (optimise,) if node.op in _WEIGHTED else ()

    def offers(node: Node, graph: Graph) -> list[Candidate]:
        return KERNELS[node.op](node, graph, target, *asked)

    return of_columns(node, graph, target, offers)


def _saved(node: Node, graph: Graph) -> int:
    """Return the bytes of flash saved if a layer's weights take half as much."""
    layer = node.of[0] if node.of else node
    return graph.tensor(layer.inputs[1]).bytes // 2 if len(layer.inputs) > 1 else 0


def _by_weights(found: list[Candidate], saved: int, optimise: str) -> list[Candidate]:
    """Return the candidates with packed weights, and others with less scratch that are
    slower, or take less by more bytes than are saved. If none are packed, or they save
    too little or are far slower, return all others."""
    packed = [c for c in found if _packs(c, *_INTEGERS)] or [
        c for c in found if _packs(c)
    ]
    others = [c for c in found if not _packs(c)]
    most = 0 if optimise == "size" else _CODE
    if not packed or saved < most or optimise == "speed":
        return others
    best = min(packed, key=lambda c: c.cost)
    fastest = min((c.cost for c in others), default=best.cost)
    if optimise != "size" and best.cost > _FAR * fastest:
        return others
    return [*packed, *_with_less_scratch(found, packed, best, saved)]


def _with_less_scratch(
    found: list[Candidate], packed: list[Candidate], best: Candidate, saved: int
) -> list[Candidate]:
    """Return slower kernels with less scratch than packed weights have, and those that
    take less than the best of these by more bytes than are saved: where only a plan
    that needs the memory has them, they count as slower."""
    least = min(c.scratch for c in packed)
    fewer = []
    for c in found:
        if c.scratch < least and c.cost > best.cost:
            fewer.append(replace(c, spare=True))
        elif not _packs(c) and c.scratch + saved <= best.scratch:
            fewer.append(replace(c, spare=True, cost=max(c.cost, best.cost + 1)))
    return fewer


def _smallest(found: list[Candidate]) -> list[Candidate]:
    """Return the compact candidates and those that are not much slower, as their tables
    may be smaller. If none is compact, return all."""
    least = min((c.cost for c in found if c.small), default=None)
    if least is None:
        return found
    return [c for c in found if c.small or c.cost <= _SLOWER * least]


def _packs(candidate: Candidate, *roles: str) -> bool:
    """Return True if the weights are packed, or have one of these roles."""
    return any(p.role in (roles or _PACKED) for p in candidate.constants)

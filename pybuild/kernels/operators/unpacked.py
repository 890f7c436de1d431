"""Kernels of depthwise layers whose weights are 2 or 4 bits in flash: each call unpacks
them to bytes in scratch, where the kernel of bytes reads them. Made of those kernels,
so it serves all of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT32,
    UINT32,
    Expr,
    Func,
    Let,
    PointerType,
    Row,
    Var,
    cast,
    const,
    load,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.specialise import rows_of, with_rows
from pybuild.kernels.layers.weights import PACKED, constant, fits_bits, fixed
from pybuild.targets.target import Target

_ALIGN = 16
_EVERY = 0x01010101  # the least bit of each byte of a word
_SIGNS = 0x80 * _EVERY


def unpacked(
    node: Node, graph: Graph, target: Target, optimise: str, layers: list[Candidate]
) -> list[Candidate]:
    """Return the kernels of bytes, with their weights packed where these are so small.

    On vectors a call is short beside what it unpacks: there only for `size`
    """
    features = target.features
    short = not features.isdisjoint({"mve", "rvv"})
    if not target.row_sums or optimise == "speed" or (short and optimise != "size"):
        return []
    weights = constant(node, graph, 1)
    if weights.dtype != np.int8 or not fixed(node, graph):
        return []
    bits = next((b for b in PACKED if fits_bits(weights, b)), 0)
    made = [_made(one, bits) for one in layers] if bits else []
    return [one for one in made if one]


def _made(layer: Candidate, bits: int) -> Candidate | None:
    """Return a kernel with packed weights; None if its table is another one."""
    func, (table, *others) = layer.func, layer.constants
    if func is None or layer.finish or layer.slices or table.role != "weights":
        return None
    first = len(layer.outputs) + sum(x.window for x in layer.inputs)
    place, scratch = const(first), const(first + len(layer.constants))
    reads = [row for row in rows_of(func) if row.index == place]
    values = table.array.reshape(-1).view(np.int8)
    if len(reads) != 1 or not fits_bits(values, bits):
        return None
    at = -(-layer.scratch // _ALIGN) * _ALIGN
    each = 32 // bits  # weights of a word
    words = -(-len(values) // each)
    k, elem = _unpacking(place, scratch, bits), reads[0].type.elem
    given = (at // 4, words)
    kind = PointerType(elem, True)
    bytes_, weights = Var("scratch_bytes", kind), Var("unpacked", kind)
    start = offset(bytes_, k.args[0] * (4 // elem.bytes))
    lets = Let(bytes_, Row(scratch, kind)), Let(weights, start)
    known: dict[Expr, Expr] = {reads[0]: weights}
    body = (*k.body, *lets, *with_rows(func, known).body)
    joined = replace(func, args=(*func.args, *k.args), body=body)
    name = f"{func.name}_w{bits}"
    doc = f"{func.doc}\nWeights   {bits} bits, unpacked to scratch before all else"
    whole = Builder.after(joined, (*layer.args, *given), name, doc)
    order = f"{table.order}; {each} in a word, byte by byte"
    packed = Packed.later(PACKED[bits], order, _words, values, bits)
    calls, parts = layer.images * layer.bands, 8 // bits
    return replace(
        layer,
        func=whole.finish(func.in_place, func.ordered),
        args=tuple(whole.values),
        over=None if layer.over is None else (*layer.over, *given),
        constants=(packed, *others),
        scratch=at + words * 4 * parts,
        cost=layer.cost + calls * words * (6 * parts + 4),
    )


def _unpacking(place: Expr, scratch: Expr, bits: int) -> Func:
    """Write weights as bytes: those of one word are bits of several words of bytes."""
    parts, half = 8 // bits, 1 << bits - 1
    k = Builder("unpacking")
    source = k.let("packed_weights", Row(place, PointerType(INT32)))
    bytes_ = k.let("scratch_words", Row(scratch, PointerType(UINT32, True)))
    begin, words = k.arg("unpacked_at", 1), k.arg("packed_words", 1)
    to = k.let("unpacked_words", offset(bytes_, begin))
    low = const(((1 << bits) - 1) * _EVERY, UINT32)
    signs, least = const(_SIGNS, UINT32), const(half * _EVERY, UINT32)
    with k.loop("packed_at", words, rolled=True) as word:
        packed = k.let("packed_word", cast(load(source, word), UINT32))
        for i in range(parts):
            raised = packed >> const(bits * i, UINT32) if i else packed
            # each byte less half of its range, without a borrow from its neighbour
            k.store(to, word * parts + i, (((raised & low) | signs) - least) ^ signs)
    return k.finish()


def _words(values: Array, bits: int) -> Array:
    """Return weights as words that `_unpacking` reads: raised, so that none is below
    0."""
    parts, half = 8 // bits, 1 << bits - 1
    whole = np.pad(values, (0, -len(values) % (4 * parts)))
    raised = (whole.astype(np.int16) + half).astype(np.uint8)
    each = np.ascontiguousarray(raised).view("<u4").reshape(-1, parts)
    words = np.zeros(len(each), np.uint32)
    for i in range(parts):
        words |= each[:, i].astype(np.uint32) << np.uint32(bits * i)
    return words.view(np.int32)

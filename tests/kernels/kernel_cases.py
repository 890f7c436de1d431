"""One-operator graphs in odd shapes: what the kernel tests run. Knows no kernel."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.ops import OPERATORS

FLOAT32, INT8, UINT8, INT32 = DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT32
ROUNDINGS = ("double", "away", "single", "even")


@dataclass(frozen=True)
class Case:
    """A node alone in a graph, values for its inputs, and what it must make."""

    node: Node
    graph: Graph
    arrays: Mapping[str, Array]

    def expected(self) -> Array:
        """By the numpy meaning of the operator."""
        values = [self.arrays[n] if n else None for n in self.node.inputs]
        return OPERATORS[self.node.op].reference(self.node, self.graph, values)[0]


Spec = tuple[tuple[int, ...], DType, Quant | None]


def tensor(shape: Sequence[int], dtype: DType = INT8, scale: float = 0.05,
           zero: int = 0) -> Spec:  # fmt: skip
    """Shape, type, quantisation."""
    quant = None if dtype in (FLOAT32, INT32) else Quant((scale,), (zero,))
    return tuple(shape), dtype, quant


def values(spec: Spec, seed: str) -> Array:
    """Seeded values that reach both ends of the type."""
    shape, dtype, _ = spec
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    if dtype is FLOAT32:
        return (rng.standard_normal(shape) * 3).astype(np.float32)
    made: Array = rng.integers(dtype.low, dtype.high, shape, endpoint=True)
    return made.astype(dtype.numpy)


def case(
    op: str,
    inputs: Sequence[Spec],
    out: Spec | None = None,
    constants: Mapping[int, Array | None] | None = None,
    **attrs: Any,
) -> Case:
    """A node of these inputs; `constants`: values of some, None for seeded ones.

    out  its shape may be (): it is then inferred
    """
    names = tuple(f"x{i}" for i in range(len(inputs)))
    arrays = {
        n: values(s, f"{op}{n}{s}{sorted(attrs.items())}")
        for n, s in zip(names, inputs, strict=True)
    }
    fixed = {}
    for position, given in (constants or {}).items():
        name = names[position]
        arrays[name] = arrays[name] if given is None else given
        fixed[name] = arrays[name]
    tensors = {n: Tensor(n, *s) for n, s in zip(names, inputs, strict=True)}
    made = inputs[0] if out is None else out
    tensors["y"] = Tensor("y", *made)
    node = Node(op, "node", names, ("y",), attrs)
    graph = Graph("g", "case", (node,), tensors, tuple(set(names) - set(fixed)),
                  ("y",), fixed)  # fmt: skip
    (shape, dtype), *others = OPERATORS[op].infer(node, graph)
    tensors["y"] = Tensor("y", shape, dtype, made[2])
    for i, (shape, dtype) in enumerate(others, 1):
        tensors[f"y{i}"] = Tensor(f"y{i}", shape, dtype)
    if others:
        outputs = ("y", *(f"y{i}" for i in range(1, len(others) + 1)))
        node = replace(node, outputs=outputs)
        graph = replace(graph, nodes=(node,), tensors=tensors, outputs=outputs)
    return Case(node, graph, arrays)


def weighted_case(
    op: str, x: Sequence[int], w: tuple[int, ...], dtype: DType = INT8,
    groups: int = 1, strides: tuple[int, int] = (1, 1), pads: tuple[int, ...] = (),
) -> Case:  # fmt: skip
    """A layer with weights; of stride 1 it is padded so that pixels stay as many, if
    nothing else is said."""
    chance = np.random.default_rng(1)
    outs, axis, pad = (w[0], 0, w[1]) if op == "conv2d" else (w[-1], 2, w[0])
    whole = dtype is INT8
    bias = chance.integers(-3000, 3000, outs)
    inputs = (
        tensor(x, dtype, 0.05, 3 if whole else 0),
        (w, INT8, Quant((0.01,) * outs, (0,) * outs, axis)),
        ((outs,), DType.INT32 if whole else DType.INT64, None),
    )
    attrs = {"groups": groups} if op == "conv2d" else {}
    values = {
        1: chance.integers(-127, 128, w).astype(np.int8),
        2: bias.astype(np.int32 if whole else np.int64),
    }
    return case(op, inputs, tensor((), dtype, 0.3, -5 if whole else 0), values,
                rounding="double" if whole else "wide", strides=strides,
                pads=pads or (pad // 2,) * 4, dilations=(1, 1), **attrs)  # fmt: skip


def computed_product(
    dtype: DType, sizes: tuple[int, int, int], count: int = 1, scale: float = 0.0,
    *, transposed: bool = False,
) -> Case:  # fmt: skip
    """So many matmuls of two computed tensors; sizes: rows, products of a sum, columns;
    scale: of y, else one that its sums fill; transposed: b is [columns, products]."""
    (rows, depth, columns), whole = sizes, dtype is INT8
    steps = (0.02, 0.03) if whole else (2e-4, 3e-4)
    a = tensor((count, rows, depth), dtype, steps[0], 3 if whole else 0)
    right = (columns, depth) if transposed else (depth, columns)
    b = tensor((count, *right), dtype, steps[1], -7 if whole else 0)
    attrs: dict[str, Any] = {"transpose_b": True} if transposed else {}
    if dtype is FLOAT32:
        return case("matmul", (a, b), tensor((), FLOAT32), **attrs)
    reach = 0.6 * dtype.high * depth**0.5
    y = tensor((), dtype, scale or steps[0] * steps[1] * reach, -9 if whole else 0)
    return case("matmul", (a, b), y, rounding="even" if whole else "wide", **attrs)


def computed_norm(dtype: DType, shape: Sequence[int], centred: bool = True) -> Case:
    """A LayerNorm, or a RMSNorm, of rows."""
    count, whole = shape[-1], dtype is INT8
    chance = np.random.default_rng(count)
    factors = chance.uniform(-1.5, 1.5, count).astype(np.float32)
    offsets = (0.2 * chance.standard_normal(count)).astype(np.float32)
    x = tensor(shape, dtype, 4 / dtype.high, 3 if whole else 0)
    y = tensor((), dtype, 5 / dtype.high, -4 if whole else 0)
    known = tensor((count,), FLOAT32)
    return case("norm", (x, known, known), y, {1: factors, 2: offsets}, epsilon=1e-5,
                centred=centred)  # fmt: skip


def int8_cases() -> list[Case]:
    """Every integer operator under every rounding it knows: exact."""
    return [*_add_cases(), *_depthwise_cases(), *_pool_cases(), *_mean_cases(),
            *_softmax_cases(), *_table_cases(), *_move_cases(INT8)]  # fmt: skip


_BROADCASTS = (
    ((1, 5, 7, 3), (1, 5, 7, 3)), ((1, 5, 7, 3), (3,)), ((2, 3, 1, 5), (1, 3, 4, 5)),
    ((), (4,)), ((2, 5, 3, 7), (1, 1, 3, 1)), ((1, 5, 7, 3), (1, 1, 1, 1)),
    ((1, 6, 7, 3), (1, 1, 7, 3)), ((1, 6, 1, 3), (1, 6, 7, 1)),
)  # fmt: skip


def _add_cases() -> Iterator[Case]:
    ways = itertools.product(("add", "sub", "mul"), ROUNDINGS, _BROADCASTS)
    for index, (op, rule, (a, b)) in enumerate(ways):
        scales = ((0.03, 0.05), (0.07, 0.002))[index % 2]
        if index % 8 < 2:  # ties
            scales = (0.04, 0.08)
        inputs = (tensor(a, INT8, scales[0], 3), tensor(b, INT8, scales[1], -5))
        out = tensor((), INT8, 0.004 if op == "mul" else 0.08, 7)
        clamp = ((None, None), (0.0, 4.0))[index % 2]
        constants = {1: None} if index % 3 == 0 else None
        yield case(op, inputs, out, constants, rounding=rule, clamp=clamp)


def _depthwise_cases() -> Iterator[Case]:
    # x, kernel, multiplier, strides, dilations, pads
    layers = (
        ((2, 5, 7, 3), (3, 3), 1, (1, 1), (1, 1), (1, 1, 1, 1)),
        ((1, 9, 10, 17), (3, 3), 1, (2, 2), (1, 1), (0, 0, 1, 1)),
        ((1, 6, 5, 4), (3, 2), 2, (1, 2), (1, 1), (1, 0, 1, 1)),
        ((1, 9, 9, 2), (3, 3), 1, (1, 1), (2, 3), (2, 3, 2, 3)),
        ((1, 8, 9, 1), (5, 5), 8, (1, 1), (1, 1), (2, 2, 2, 2)),
        ((1, 8, 9, 18), (7, 6), 1, (1, 2), (1, 1), (3, 2, 3, 3)),
        ((1, 9, 8, 6), (9, 3), 3, (1, 1), (1, 2), (0, 1, 0, 1)),
        ((1, 4, 4, 5), (4, 4), 1, (1, 1), (1, 1), (0, 0, 0, 0)),
    )
    for index, (x, kernel, times, strides, dilations, pads) in enumerate(layers):
        outs = x[3] * times
        for rule in ROUNDINGS if index < 2 else (ROUNDINGS[index % 4],):
            many = index % 2 == 0
            scale = tuple(0.004 + 0.001 * c for c in range(outs)) if many else (0.01,)
            quant = Quant(scale, (0,) * len(scale), 2 if many else None)
            weights = ((*kernel, outs), INT8, quant)
            inputs = (tensor(x, INT8, 0.04, -9), weights, tensor((outs,), INT32))
            bias = values(((outs,), INT8, None), f"bias{index}").astype(np.int32) * 20
            yield case("depthwise_conv2d", inputs, tensor((), INT8, 0.5, 4),
                       {1: None, 2: bias}, strides=strides, dilations=dilations,
                       pads=pads, rounding=rule, clamp=(-30.0, None))  # fmt: skip


# x, kernel, strides, pads
POOLS = (
    ((1, 6, 7, 3), (2, 2), (2, 2), (0, 0, 0, 0)),
    ((2, 7, 5, 18), (3, 3), (1, 1), (1, 1, 1, 1)),
    ((1, 7, 9, 4), (3, 3), (2, 2), (0, 0, 1, 1)),
    ((1, 6, 9, 5), (3, 4), (1, 1), (0, 2, 0, 1)),
    ((2, 9, 6, 20), (5, 3), (2, 1), (2, 1, 2, 1)),
    ((1, 8, 8, 33), (8, 8), (1, 1), (0, 0, 0, 0)),
    ((1, 6, 5, 2), (1, 3), (1, 2), (0, 1, 0, 1)),
)


def _pool_cases() -> Iterator[Case]:
    for x, kernel, strides, pads in POOLS:
        source = tensor(x, INT8, 0.05, 11)
        attrs: dict[str, Any] = {"kernel": kernel, "strides": strides, "pads": pads}
        yield case("max_pool2d", (source,), **attrs, clamp=(-2.0, 3.0))
        for rule, include in itertools.product(ROUNDINGS, (False, True)):
            other = tensor((), INT8, 0.06, -3)
            for out in (other, source) if rule != "away" else (source,):
                yield case("avg_pool2d", (source,), out, **attrs, rounding=rule,
                           count_include_pad=include, clamp=(None, 3.0))  # fmt: skip


_MEANS = (
    ((1, 5, 6, 19), (1, 2)), ((2, 4, 3, 5), (1, 2)), ((3, 4, 5), (2,)), ((7,), (0,)),
    ((2, 3, 4, 5), (1, 3)), ((2, 3, 4, 5), (0, 2)), ((2, 1, 5), (1,)), ((2, 3), (0, 1)),
)  # fmt: skip


def _mean_cases() -> Iterator[Case]:
    for (x, axes), rule in itertools.product(_MEANS, ROUNDINGS):
        yield case("mean", (tensor(x, INT8, 0.05, -20),), tensor((), INT8, 0.02, 5),
                   axes=axes, keepdims=rule == "even", rounding=rule)  # fmt: skip


def _softmax_cases() -> Iterator[Case]:
    out = tensor((), INT8, 1 / 256, -128)
    odd = tensor((), INT8, 0.01, 3)
    shapes = (((1, 10), 1), ((2, 3, 5), 1), ((3, 1), 1), ((1, 300), 1), ((2, 4, 7), 2))
    for (x, axis), scale in itertools.product(shapes, (0.1, 0.6, 0.004)):
        source = tensor(x, INT8, scale, 9)
        yield case("softmax", (source,), out, axis=axis, beta=1.0, rounding="double")
        yield case("softmax", (source,), odd, axis=axis, beta=0.7, rounding="even")
    flat = np.full((1, 4000), 5, np.int8)
    for rule in ("double", "even"):
        yield case("softmax", (tensor((1, 4000)),), out, {0: flat}, axis=1, beta=1.0,
                   rounding=rule)  # fmt: skip
    yield case("softmax", (tensor((1, 4000)),), tensor((), INT8, 2.0**-17, 3),
               {0: flat}, axis=1, beta=1.0, rounding="even")  # fmt: skip


def _table_cases() -> Iterator[Case]:
    for shape, rule in (((1, 6, 5, 7), "double"), ((300,), "even")):
        x, y = tensor(shape, INT8, 0.05, 3), tensor((), INT8, 0.03, -7)
        byte = tensor(shape, UINT8, 0.04, 130)
        share = tensor((), INT8, 1 / 256, -128)
        yield case("logistic", (x,), share, rounding=rule)
        yield case("tanh", (x,), tensor((), INT8, 1 / 128, 0), rounding=rule)
        yield case("leaky_relu", (x,), y, alpha=0.1, rounding=rule)
        yield case("clip", (x,), y, clamp=(0.0, 6.0), rounding=rule)
        yield case("clip", (x,), clamp=(0.0, 3.0), rounding=rule)
        yield case("quantize", (x,), y, rounding=rule)
        yield case("quantize", (x,), byte, rounding=rule)
        yield case("quantize", (byte,), y, rounding=rule)
        yield case("quantize", (tensor(shape, FLOAT32),), y, rounding=rule)
        yield case("quantize", (tensor(shape, FLOAT32),), byte, rounding=rule)
    for rule, y in itertools.product(("double", "even"), (
        tensor((), INT8, 0.5, 3), tensor((), UINT8, 0.5, 100), tensor((), INT8, 0.3, 0),
    )):  # fmt: skip
        yield case("quantize", (tensor((23,), FLOAT32),), y, {0: _HARD}, rounding=rule)


_HARD = np.asarray(
    [0.25, -0.25, 0.75, -0.75, 1.25, -1.25, 0.24999999, -0.24999999, 0.0, -0.0, 1e30,
     -1e30, np.inf, -np.inf, np.nan, 62.0, 62.25, -65.5, -65.75, 1e-40, 77.49, 0.5,
     3e9],
    np.float32,
)  # fmt: skip


def _move_cases(dtype: DType) -> Iterator[Case]:
    def of(*shape: int) -> Spec:
        return tensor(shape, dtype, 0.05, 3)

    yield case("copy", (of(1, 5, 7, 3),))
    yield case("copy", (of(11),))
    yield case("reshape", (of(2, 3, 4),), of(4, 6))
    yield case("reshape", (of(1, 5, 20, 2),), of(1, 10, 10, 2))
    for x, perm in (
        ((1, 5, 6, 3), (0, 3, 1, 2)), ((1, 3, 5, 6), (0, 2, 3, 1)), ((4, 7), (1, 0)),
        ((2, 3, 4, 5), (3, 1, 0, 2)), ((2, 1, 3), (1, 0, 2)), ((3, 4, 5), (2, 1, 0)),
    ):  # fmt: skip
        yield case("transpose", (of(*x),), perm=perm)
    for x, begin, end, strides in (
        ((5, 6), (1, 2), (4, 5), (1, 1)), ((9, 8), (8, 0), (0, 8), (-3, 2)),
        ((2, 6, 5, 4), (0, 1, 0, 0), (2, 5, 5, 3), (1, 2, 1, 1)),
        ((7,), (6,), (-1,), (-1,)),
        ((1, 4, 4, 3), (0, 1, 0, 0), (1, 3, 4, 3), (1, 1, 1, 1)),
    ):  # fmt: skip
        yield case("slice", (of(*x),), begin=begin, end=end, strides=strides)
    yield case("concat", (of(1, 4, 5, 3), of(1, 4, 5, 6)), axis=3)
    yield case("concat", (of(1, 4, 5, 3), of(1, 2, 5, 3)), axis=1)
    yield case("concat", (of(2, 3), of(2, 1), of(2, 4)), constants={1: None}, axis=1)
    yield case("concat", (of(1, 4, 5, 3), of(1, 4, 2, 3)), axis=2)
    yield case("concat", (of(5),) * 3, axis=0)
    for x, pads in (
        ((1, 4, 5, 3), ((0, 0), (1, 2), (2, 0), (0, 1))),
        ((2, 4, 5, 3), ((0, 0), (0, 1), (0, 0), (0, 0))),
        ((2, 2, 3, 2), ((1, 0), (1, 1), (0, 0), (0, 0))), ((5,), ((2, 3),)),
        ((3, 4), ((0, 1), (2, 0))), ((1, 1, 5, 3), ((0, 0), (0, 0), (1, 1), (0, 0))),
    ):  # fmt: skip
        yield case("pad", (of(*x),), pads=pads, value=0.4)
    if dtype is INT8:
        yield case("pad", (tensor((3, 4), UINT8, 0.01, 200),), pads=((0, 1), (2, 0)))


def float_cases() -> list[Case]:
    """Every float32 operator."""
    return [*_float_arithmetic(), *_float_windows(), *_float_functions(),
            *_move_cases(FLOAT32)]  # fmt: skip


def _float_arithmetic() -> Iterator[Case]:
    for index, (op, (a, b)) in enumerate(
        itertools.product(("add", "sub", "mul"), _BROADCASTS)
    ):
        clamp = ((None, None), (0.0, None), (0.0, 6.0), (None, 1.5))[index % 4]
        constants = {index % 2: None} if index % 3 == 0 else None
        inputs = (tensor(a, FLOAT32), tensor(b, FLOAT32))
        yield case(op, inputs, None, constants, clamp=clamp)


def _float_windows() -> Iterator[Case]:
    for x, kernel, times, pads in (
        ((2, 5, 7, 3), (3, 3), 1, (1, 1, 1, 1)),
        ((1, 6, 6, 5), (3, 2), 4, (0, 1, 0, 0)),
        ((1, 8, 8, 17), (6, 5), 1, (3, 2, 2, 2)),
    ):  # fmt: skip
        weights = tensor((*kernel, x[3] * times), FLOAT32)
        yield case("depthwise_conv2d", (tensor(x, FLOAT32), weights), None, {1: None},
                   strides=(1, 1), dilations=(1, 1), pads=pads,
                   clamp=(None, 9.0))  # fmt: skip
    for x, kernel, strides, pads in POOLS:
        attrs: dict[str, Any] = {"kernel": kernel, "strides": strides, "pads": pads}
        yield case("max_pool2d", (tensor(x, FLOAT32),), **attrs)
        for include in (False, True):
            yield case("avg_pool2d", (tensor(x, FLOAT32),), **attrs, clamp=(0.0, None),
                       count_include_pad=include)  # fmt: skip
    for x, axes in _MEANS:
        yield case("mean", (tensor(x, FLOAT32),), axes=axes, keepdims=False)


def _float_functions() -> Iterator[Case]:
    for shape in ((1, 6, 5, 7), (301,)):
        x = tensor(shape, FLOAT32)
        yield case("logistic", (x,))
        yield case("tanh", (x,))
        yield case("leaky_relu", (x,), alpha=0.2)
        for clamp in ((None, None), (0.0, None), (0.0, 6.0), (None, 0.5)):
            yield case("clip", (x,), clamp=clamp)
        for dtype in (INT8, UINT8):
            yield case("dequantize", (tensor(shape, dtype, 0.37, 5),), x)
    counts = (((300,), INT32, Quant((0.25,))),)
    yield case("dequantize", counts, tensor((300,), FLOAT32))
    for x_shape, axis in (((1, 10), 1), ((2, 3, 5), 1), ((2, 4, 70), 2)):
        for beta in (1.0, 2.5):
            yield case("softmax", (tensor(x_shape, FLOAT32),), axis=axis, beta=beta)

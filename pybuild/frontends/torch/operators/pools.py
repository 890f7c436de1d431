"""Pools by windows, and pools to a given output size."""

from __future__ import annotations

from typing import Any

import numpy as np

from pybuild.frontends.torch.operators.writer import Handler, Writer, each
from pybuild.frontends.torch.reader.program import Call


def _batched(w: Writer, call: Call, rank: int) -> str:
    x = call.tensor("self", "input")
    if w.rank(x) != rank + 2:
        raise call.invalid("an input without a batch is not supported", "add an axis")
    return x


def _pool_attrs(call: Call, rank: int) -> dict[str, Any]:
    kernel = each(call.ints("kernel_size"), rank)
    stride = call.ints("stride", ()) or tuple(kernel)
    return {
        "kernel_shape": kernel, "strides": each(stride, rank),
        "pads": each(call.ints("padding", (0,)), rank) * 2,
        "ceil_mode": int(call.get("ceil_mode", False)),
    }  # fmt: skip


def max_pool(rank: int) -> Handler:
    def handler(w: Writer, call: Call) -> None:
        x, attrs = _batched(w, call, rank), _pool_attrs(call, rank)
        attrs["dilations"] = each(call.ints("dilation", (1,)), rank)
        w.give("MaxPool", x, **attrs)

    return handler


def avg_pool(rank: int) -> Handler:
    def handler(w: Writer, call: Call) -> None:
        if call.get("divisor_override") is not None:
            raise call.invalid("divisor_override is not supported")
        x, attrs = _batched(w, call, rank), _pool_attrs(call, rank)
        attrs["count_include_pad"] = int(call.get("count_include_pad", True))
        w.give("AveragePool", x, **attrs)

    return handler


def adaptive(kind: str, rank: int) -> Handler:
    """Pool to a size; averages over windows of different sizes become a matrix
    product."""

    def handler(w: Writer, call: Call) -> None:
        x = _batched(w, call, rank)
        have = w.shape(x)[2:]
        given = call.get("output_size")
        given = given if isinstance(given, list | tuple) else [given]
        asked = list(given) * rank if len(given) == 1 else given
        want = [a if b is None else b for a, b in zip(have, asked, strict=True)]
        if want == [1] * rank:
            w.give(f"Global{kind}", x)
        elif not any(a % b for a, b in zip(have, want, strict=True)):
            kernel = [a // b for a, b in zip(have, want, strict=True)]
            w.give(kind, x, kernel_shape=kernel, strides=kernel)
        elif kind == "AveragePool":
            _averages(w, x, have, want)
        else:
            what = f"{list(have)} is not divided by its size {want}"
            raise call.invalid(what, "a size that divides it")

    return handler


def _averages(w: Writer, x: str, have: tuple[int, ...], want: list[int]) -> None:
    """The averages of windows that begin and end where torch's do, one axis after the
    other."""
    first, last = len(w.shape(x)) - len(have), len(w.shape(x)) - 1
    for axis, (size, count) in enumerate(zip(have, want, strict=True), start=first):
        if size == count:
            continue
        weights = np.zeros((size, count), np.float32)
        for i in range(count):
            begin, end = i * size // count, -(-(i + 1) * size // count)
            weights[begin:end, i] = 1 / (end - begin)
        if axis == last:
            x = w.op("MatMul", x, w.const(weights))
            continue
        perm = [*range(last + 1)]
        perm[axis], perm[last] = last, axis
        turned = w.op("Transpose", x, perm=perm)
        x = w.op("Transpose", w.op("MatMul", turned, w.const(weights)), perm=perm)
    w.give("Identity", x)


POOLS: dict[str, Handler] = {
    **dict.fromkeys(("max_pool2d", "max_pool2d_with_indices"), max_pool(2)),
    **dict.fromkeys(("max_pool3d", "max_pool3d_with_indices"), max_pool(3)),
    **dict.fromkeys(("adaptive_avg_pool2d", "_adaptive_avg_pool2d"),
                    adaptive("AveragePool", 2)),
    **dict.fromkeys(("adaptive_avg_pool3d", "_adaptive_avg_pool3d"),
                    adaptive("AveragePool", 3)),
    "avg_pool1d": avg_pool(1), "avg_pool2d": avg_pool(2), "avg_pool3d": avg_pool(3),
    "adaptive_avg_pool1d": adaptive("AveragePool", 1),
    "adaptive_max_pool2d": adaptive("MaxPool", 2), "max_pool1d": max_pool(1),
}  # fmt: skip

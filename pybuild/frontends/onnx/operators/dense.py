"""Gemm and MatMul with constant weights: dense layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.reader.op import Op


def gemm(draft: Draft, op: Op) -> None:
    """y = alpha * A' B' + beta * C."""
    a, b, c = op.input(0), op.input(1), op.input(2)
    if op.integer("transA", 0):
        name = draft.fresh(f"{a}.transposed")
        a = draft.emit("transpose", name, [a], name, {"perm": (1, 0)})
    alpha, beta = (float(op.attrs.get(k, 1.0)) for k in ("alpha", "beta"))
    b = _scaled(draft, op, b, alpha)
    weights = _weights(draft, op, b, bool(op.integer("transB", 0)))
    outs = draft.tensor(weights).shape[0]
    if c:
        draft.tensor(c)
    bias = _bias(draft, op, c, outs, beta) if c and beta != 0.0 else ""
    inputs = [a, weights, bias] if bias else [a, weights]
    if bias or not c or beta == 0.0:
        draft.emit("dense", op.name, inputs, op.output)
        return
    if beta != 1.0:
        raise op.invalid(f"beta {beta} with a computed C is not supported")
    made = draft.emit("dense", op.name, inputs, draft.fresh(f"{op.output}.product"))
    draft.emit("add", f"{op.name}.add", [made, c], op.output)


def matmul(draft: Draft, op: Op) -> None:
    """MatMul whose right side is a constant matrix."""
    a, b = op.input(0), op.input(1)
    if len(draft.shape(b)) != 2:
        what = f"its right side has shape {list(draft.shape(b))}"
        raise op.invalid(what, "only a constant matrix is supported")
    weights = _weights(draft, op, b, False)
    draft.emit("dense", op.name, [a, weights], op.output)


def _weights(draft: Draft, op: Op, name: str, transposed: bool) -> str:
    """Return the right-hand matrix as [outputs, inputs]."""
    shape = draft.shape(name)
    if len(shape) != 2:
        raise op.invalid(f"its weight has shape {list(shape)}, not two axes")
    perm = (0, 1) if transposed else (1, 0)
    return draft.arranged(op, name, perm, (shape[perm[0]], shape[perm[1]]), "weight")


def _scaled(draft: Draft, op: Op, name: str, alpha: float) -> str:
    if alpha == 1.0 or (draft.known(name) is None and name not in draft.sources):
        return name
    if name not in draft.sources:
        draft.tensor(name)
        made = draft.values[name].astype(np.float64) * alpha
        return draft.constant(f"{name}.scaled", made.astype(np.float32))
    whole = draft.tensor(draft.sources[name])
    if alpha <= 0 or whole.quant is None:
        raise op.invalid(f"alpha {alpha} with quantised weights is not supported")
    scale = tuple(s * alpha for s in whole.quant.scale)
    quant = replace(whole.quant, scale=scale)
    integers = draft.constant(f"{name}.scaled", draft.constants[whole.name], quant)
    return draft.as_read(name, integers, "scaled")


def _bias(draft: Draft, op: Op, name: str, outs: int, beta: float) -> str:
    """Return C as a bias with one number per output, or "" if it is not one."""
    shape = draft.tensor(name).shape
    if name in draft.sources and shape == (outs,) and beta == 1.0:
        return name
    value = draft.known(name)
    if value is None or value.dtype != np.float32:
        return ""
    if any(dim != 1 for dim in shape[:-1]):
        return ""
    if value.size == outs and beta == 1.0:
        if len(shape) == 1:
            return name
        flat = draft.fresh(f"{name}.row")
        return draft.emit("reshape", flat, [name], flat, shape=(outs,))
    row = np.broadcast_to(value.reshape(-1), (outs,)).astype(np.float64) * beta
    return draft.constant(f"{name}.row", row.astype(np.float32))

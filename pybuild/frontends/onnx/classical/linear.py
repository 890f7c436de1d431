"""Linear models, scalers and support vectors."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.frontends.onnx.classical import scores as to
from pybuild.frontends.onnx.draft.flow import Flow


def _numbers(flow: Flow, name: str) -> Array:
    return np.asarray(flow.op.attrs.get(name, ()), np.float32)


def _products(flow: Flow, x: str, vectors: Array) -> str:
    """Return the products of x with constant vectors: [rows, vectors]."""
    return flow.matmul(x, flow.const(np.ascontiguousarray(vectors.T)))


def _affine(flow: Flow, x: str, count: int) -> str:
    """Return coefficients * x + intercepts, with `count` results a row."""
    given, more = _numbers(flow, "coefficients"), _numbers(flow, "intercepts")
    made = _products(flow, x, given.reshape(count, flow.shape(x)[1]))
    return flow.add(made, flow.const(more)) if more.size else made


def linear_regressor(flow: Flow) -> None:
    made = _affine(flow, to.rows(flow), flow.op.integer("targets", 1))
    how = to.text(flow, "post_transform", "NONE")
    flow.give(to.transformed(flow, made, how))


def linear_classifier(flow: Flow) -> None:
    x, labels = to.rows(flow), to.labels_of(flow)
    how = to.text(flow, "post_transform", "NONE")
    count = _numbers(flow, "coefficients").size // flow.shape(x)[1]
    made = _affine(flow, x, count)
    if count == 1 and len(labels) == 2:
        bound = 0.0  # of what is not transformed yet
        flow.give(to.above(flow, made, bound, labels))
        score = to.transformed(flow, made, how)
        flow.give(to.both(flow, score, "NONE", how == "LOGISTIC"), 1)
        return
    flow.give(to.best(flow, made, labels))
    flow.give(to.transformed(flow, made, how), 1)


def scaler(flow: Flow) -> None:
    """(x - offset) * scale, per feature or with one value for all."""
    x = to.floats(flow, flow.arg(0))
    offset, scale = _numbers(flow, "offset"), _numbers(flow, "scale")
    if offset.size and offset.any():
        x = flow.sub(x, flow.const(offset))
    flow.give(flow.mul(x, flow.const(scale)) if scale.size else x)


def normalizer(flow: Flow) -> None:
    """Divide each row by its sum, length or largest value; rows with norm 0 stay as
    they are."""
    x, kind = to.floats(flow, flow.arg(0)), to.text(flow, "norm", "MAX")
    axes = (flow.rank(x) - 1,)
    if kind == "MAX":
        size = flow.reduce("max", x, axes)
    elif kind == "L1":
        size = flow.reduce("sum", flow.map("abs", x), axes)
    elif kind == "L2":
        size = flow.map("sqrt", flow.reduce("sum", flow.mul(x, x), axes))
    else:
        raise flow.op.invalid(f"the norm {kind} is not known", "MAX, L1 or L2")
    none = flow.map("equal", size, flow.const(0, size))
    flow.give(flow.div(x, flow.map("where", none, flow.const(1, size), size)))


# ---- support vectors ------------------------------------------------------------


def _kernel(flow: Flow, x: str, vectors: Array) -> str:
    """Return the kernel function of each row and each support vector."""
    kind = to.text(flow, "kernel_type", "LINEAR")
    gamma, shift, degree = [*_numbers(flow, "kernel_params").tolist(), 0, 0, 0][:3]
    if kind == "RBF":  # exp(-gamma |x - v|^2)
        count, features = flow.shape(x)
        wide = flow.reshape(x, (count, 1, features))
        far = flow.sub(wide, flow.const(vectors))
        square = flow.reduce("sum", flow.mul(far, far), (2,), keep=False)
        return flow.map("exp", flow.scaled(square, -gamma))
    made = _products(flow, x, vectors)
    if kind == "LINEAR":
        return made
    made = flow.plus(flow.scaled(made, gamma), shift)
    if kind == "POLY":
        return flow.map("power", made, flow.const(degree, made))
    if kind == "SIGMOID":
        return flow.map("tanh", made)
    raise flow.op.invalid(f"the kernel {kind} is not known")


def _vectors(flow: Flow, x: str) -> Array:
    return _numbers(flow, "support_vectors").reshape(-1, flow.shape(x)[1])


def svm_regressor(flow: Flow) -> None:
    x, rho = to.rows(flow), _numbers(flow, "rho")
    given = _numbers(flow, "coefficients")
    if flow.op.integer("n_supports", 0):
        made = _products(flow, _kernel(flow, x, _vectors(flow, x)), given[None])
    else:
        made = _kernel(flow, x, given[None])
    made = flow.add(made, flow.const(rho[:1]))
    if flow.op.integer("one_class", 0):
        positive = flow.map("less", flow.const(0, made), made)
        ones = (flow.const(n, made) for n in (1, -1))
        made = flow.map("where", positive, *ones)
    how = to.text(flow, "post_transform", "NONE")
    flow.give(to.transformed(flow, made, how))


def svm_classifier(flow: Flow) -> None:
    """Lets each pair of classes vote for one of its two; the class with most votes
    wins."""
    x, labels, op = to.rows(flow), to.labels_of(flow), flow.op
    if len(_numbers(flow, "prob_a")):
        what = "has probabilities, which are found by iterations"
        raise op.invalid(what, "export SVC(probability=False)")
    if to.text(flow, "post_transform", "NONE") != "NONE":
        raise op.invalid("only post_transform NONE is supported")
    supports = op.integers("vectors_per_class", ())
    if not supports:
        raise op.invalid("has no support vectors", "export a LinearClassifier")
    count, given = len(labels), _numbers(flow, "coefficients")
    weights, ends = given.reshape(count - 1, -1), np.cumsum((0, *supports))
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    table = np.zeros((len(pairs), weights.shape[1]), np.float32)
    for row, (i, j) in zip(table, pairs, strict=True):
        for mine, other in ((i, j - 1), (j, i)):
            part = slice(ends[mine], ends[mine + 1])
            row[part] = weights[other, part]
    sums = _products(flow, _kernel(flow, x, _vectors(flow, x)), table)
    sums = flow.add(sums, flow.const(_numbers(flow, "rho")))
    if count == 2:
        flow.give(to.above(flow, flow.map("negate", sums), 0.0, labels))
        flow.give(to.both(flow, sums, "NONE", False), 1)
        return
    wins = np.zeros((2, len(pairs), count), np.float32)
    for row_, (i, j) in enumerate(pairs):
        wins[0, row_, i] = wins[1, row_, j] = 1
    first = flow.map("less", flow.const(0, sums), sums)
    one, none = (flow.const(n, sums) for n in (1, 0))
    yes = flow.map("where", first, one, none)
    votes = flow.add(
        flow.matmul(yes, flow.const(wins[0])),
        flow.matmul(flow.sub(one, yes), flow.const(wins[1])),
    )
    flow.give(to.best(flow, votes, labels))
    flow.give(sums, 1)

"""Class scores and labels as ai.onnx.ml defines them."""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow


def text(flow: Flow, name: str, default: str) -> str:
    """Return a text attribute."""
    value = flow.op.attrs.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def floats(flow: Flow, x: str) -> str:
    return flow.cast(x, DType.FLOAT32)


def rows(flow: Flow) -> str:
    """Return the first input as float32 rows; a single vector becomes one row."""
    x = floats(flow, flow.arg(0))
    shape = flow.shape(x)
    if len(shape) == 2:
        return x
    if len(shape) != 1:
        raise flow.op.invalid(f"takes rows of features, not {list(shape)}")
    return flow.reshape(x, (1, *shape))


def labels_of(flow: Flow) -> list[int]:
    """Return the integer labels of the classes; for text labels, their indices."""
    op = flow.op
    for name in ("classlabels_ints", "classlabels_int64s"):
        if found := op.integers(name, ()):
            return list(found)
    names = op.attrs.get("classlabels_strings") or op.attrs.get("classlabels_text")
    if not names:
        raise op.invalid("has no labels of its classes")
    return list(range(len(names)))


def transformed(flow: Flow, scores: str, how: str) -> str:
    """Apply post_transform to the scores."""
    if how == "NONE":
        return scores
    if how == "LOGISTIC":
        return flow.map("sigmoid", scores)
    if how == "SOFTMAX":
        return flow.emit("softmax", [scores], {"axis": 1, "beta": 1.0})
    if how == "SOFTMAX_ZERO":  # a score of 0 stays 0
        moved = flow.sub(scores, flow.reduce("max", scores, (1,)))
        none = flow.map("equal", scores, flow.const(0, scores))
        power = flow.map("where", none, flow.const(0, scores), flow.map("exp", moved))
        return flow.div(power, flow.reduce("sum", power, (1,)))
    raise flow.op.invalid(f"post_transform {how} is not supported", "NONE or LOGISTIC")


def chosen(flow: Flow, numbers: str, labels: list[int]) -> str:
    """Return each row's label, given the index of its class."""
    if labels == list(range(len(labels))):
        return flow.cast(numbers, DType.INT64)
    table = flow.const(labels, DType.INT64)
    return flow.gather(table, flow.cast(numbers, DType.INT32), 0)


def best(flow: Flow, scores: str, labels: list[int]) -> str:
    """Return the label with the largest score in each row; the first of equal ones."""
    attrs = {"fn": "max", "axis": 1, "last": False}
    numbers = flow.emit("arg_reduce", [scores], attrs)
    return chosen(flow, flow.reshape(numbers, flow.shape(scores)[:1]), labels)


def above(flow: Flow, score: str, bound: float, labels: list[int]) -> str:
    """Return the second label where a row's only score exceeds a bound, else the
    first."""
    yes = flow.map("less", flow.const(bound, score), score)
    numbers = flow.reshape(flow.cast(yes, DType.INT32), flow.shape(score)[:1])
    return chosen(flow, numbers, labels)


def both(flow: Flow, score: str, how: str, whole: bool) -> str:
    """Return the scores of two classes, computed from one score.

    whole  True: the score is a probability, and the other one is 1 - score; False: the
           other one is -score
    """
    if whole:
        return flow.concat([flow.sub(flow.const(1, score), score), score], 1)
    pair = flow.concat([flow.map("negate", score), score], 1)
    return transformed(flow, pair, how)

"""Tree ensembles: all trees descend one level at a time, through tables of their nodes.
A node is a row of four tables: the feature to compare, the threshold, and the next node
for either result. Leaves are the last rows and lead to themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.onnx.classical import scores as to
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.records import dataclass

# mode of a node -> the comparison that leads to its first branch, and its order
_MODES = {
    "BRANCH_LEQ": ("less_or_equal", False), "BRANCH_LT": ("less", False),
    "BRANCH_GTE": ("less_or_equal", True), "BRANCH_GT": ("less", True),
}  # fmt: skip
_MOST_NODES = 1 << 15


@dataclass(frozen=True)
class Forest:
    """The tables of nodes, and the values of the leaves.

    depth   comparisons from a root to the deepest leaf
    inner   the number of nodes that are not leaves; these are the first rows
    given   the values of the leaves: [leaves, classes]
    told    the classes to which each tree contributes
    lost    per node, whether NaN takes the first branch
    """

    mode: str
    roots: Array
    feature: Array
    value: Array
    yes: Array
    no: Array
    depth: int
    inner: int
    given: Array
    told: tuple[frozenset[int], ...]
    lost: Array


def _words(values: Any) -> list[str]:
    return [v.decode() if isinstance(v, bytes) else str(v) for v in values]


def _read(flow: Flow, prefix: str, classes: int) -> Forest:
    """Read the trees from the attributes; prefix: "class" or "target".

    Errors  BuildError for invalid trees and for unsupported modes
    """
    attrs, op = flow.op.attrs, flow.op
    modes = _words(attrs["nodes_modes"])
    keys = list(zip(op.integers("nodes_treeids", ()), op.integers("nodes_nodeids", ()),
                    strict=True))  # fmt: skip
    if len(set(keys)) != len(modes) or len(modes) > _MOST_NODES:
        raise op.invalid(f"has {len(modes)} nodes, or two of one number")
    found = sorted({mode for mode in modes if mode != "LEAF"})
    if len(found) > 1 or not set(found) <= _MODES.keys():
        what = f"nodes that compare by {', '.join(found)} are not supported together"
        raise op.invalid(what, f"one of {', '.join(_MODES)}")
    order = [*(i for i, m in enumerate(modes) if m != "LEAF"),
             *(i for i, m in enumerate(modes) if m == "LEAF")]  # fmt: skip
    place = {keys[old]: new for new, old in enumerate(order)}
    sides = [
        np.asarray([
            place[tree, branch[i]] if modes[i] != "LEAF" else place[tree, node]
            for i in order for tree, node in (keys[i],)
        ], np.int16)
        for branch in (op.integers(f"nodes_{n}nodeids", ()) for n in ("true", "false"))
    ]  # fmt: skip
    inner = sum(mode != "LEAF" for mode in modes)
    trees = list(dict.fromkeys(tree for tree, _ in keys))
    children = {int(n) for side in sides for n in side[:inner]}
    tops = [n for n in range(len(order)) if n not in children]
    roots = {keys[order[n]][0]: n for n in tops}
    if len(roots) != len(trees) or len(tops) != len(trees):
        raise op.invalid(f"has {len(trees)} trees, but {len(tops)} roots")
    given, told = _leaves(flow, prefix, place, inner, classes)
    values = np.asarray(attrs["nodes_values"], np.float32)
    return Forest(
        mode=found[0] if found else "BRANCH_LEQ",
        roots=np.asarray([roots[tree] for tree in trees], np.int32),
        feature=_small(flow, np.asarray(op.integers("nodes_featureids", ()))[order]),
        value=values[order],
        yes=sides[0],
        no=sides[1],
        depth=_depth(flow, sides, [roots[t] for t in trees], inner),
        inner=inner,
        given=given,
        told=tuple(frozenset(told.get(tree, ())) for tree in trees),
        lost=np.asarray(_lost(flow) or [0] * len(modes), bool)[order],
    )  # fmt: skip


def _lost(flow: Flow) -> tuple[int, ...]:
    """For each node: whether a missing value, NaN, takes the first branch."""
    return flow.op.integers("nodes_missing_value_tracks_true", ())


def _small(flow: Flow, values: Array) -> Array:
    """Return the feature indices in the smallest type that holds them."""
    if values.min(initial=0) < 0 or values.max(initial=0) >= 1 << 15:
        raise flow.op.invalid("compares a feature that there cannot be")
    return values.astype(np.uint8 if values.max(initial=0) < 256 else np.int16)


def _depth(flow: Flow, sides: Sequence[Array], roots: Sequence[int], inner: int) -> int:
    """Return the number of comparisons from a root to the deepest leaf."""
    level, depth, reached = set(roots), 0, set(roots)
    while level := {n for n in level if n < inner}:
        depth += 1
        if depth > inner:
            raise flow.op.invalid("has a tree that leads back to itself")
        level = {int(side[n]) for side in sides for n in level}
        reached |= level
    if len(reached) != len(sides[0]):
        raise flow.op.invalid("has nodes that no root leads to")
    return depth


def _leaves(
    flow: Flow, prefix: str, place: Mapping[tuple[int, int], int], inner: int,
    classes: int,
) -> tuple[Array, dict[int, set[int]]]:  # fmt: skip
    """Return the values of each leaf, [leaves, classes], and each tree's classes."""
    op, told = flow.op, dict[int, set[int]]()
    made = np.zeros((len(place) - inner, classes), np.float32)
    lists = [op.integers(f"{prefix}_{n}", ()) for n in ("treeids", "nodeids", "ids")]
    weights = np.asarray(op.attrs[f"{prefix}_weights"], np.float32)
    for tree, node, number, weight in zip(*lists, weights, strict=True):
        leaf = place[tree, node] - inner
        if leaf < 0 or not 0 <= number < classes:
            raise op.invalid(
                "gives a weight to a node that is not a leaf, or to no class"
            )
        made[leaf, number] += weight
        told.setdefault(tree, set()).add(number)
    return made, told


def _fallen(flow: Flow, x: str, forest: Forest) -> str:
    """The leaf that each row reaches in each tree: [rows, trees]."""
    count, features = flow.shape(x)
    if int(forest.feature.max(initial=0)) >= features:
        what = f"compares feature {forest.feature.max()} of {features}"
        raise flow.op.invalid(what)
    flat = flow.reshape(x, (count * features,))
    starts = np.arange(count, dtype=np.int32)[:, None] * features
    tables = [flow.const(t) for t in (forest.feature, forest.value, forest.yes,
                                      forest.no)]  # fmt: skip
    compare, turned = _MODES[forest.mode]
    at = flow.const(np.tile(forest.roots, (count, 1)))
    lost = flow.const(forest.lost) if forest.lost.any() else ""
    for _ in range(forest.depth):
        feature, bound, yes, no = (flow.gather(t, at, 0) for t in tables)
        places = flow.cast(feature, DType.INT32)
        if count > 1:
            places = flow.add(places, flow.const(starts))
        seen = flow.gather(flat, places, 0)
        pair = (bound, seen) if turned else (seen, bound)
        first = flow.map(compare, *pair)
        if lost:
            lacks = flow.map("and", flow.map("is_nan", seen), flow.gather(lost, at, 0))
            first = flow.map("or", first, lacks)
        at = flow.cast(flow.map("where", first, yes, no), DType.INT32)
    return at


def _gathered(flow: Flow, x: str, forest: Forest, how: str) -> str:
    """The sum or other aggregate of the leaves of all trees: [rows, classes]."""
    leaf = flow.plus(_fallen(flow, x, forest), -forest.inner)
    (count, trees), classes = flow.shape(leaf), forest.given.shape[1]
    fn = {"SUM": "sum", "AVERAGE": "sum", "MIN": "min", "MAX": "max"}.get(how)
    if fn is None:
        raise flow.op.invalid(f"aggregate_function {how} is not known")
    groups = [[t for t, own in enumerate(forest.told) if own == {c}]
              for c in range(classes)]  # fmt: skip
    alike = len({len(group) for group in groups}) == 1
    if classes > 1 and alike and sum(map(len, groups)) == trees:
        order = [t for group in groups for t in group]
        leaf = flow.taken(leaf, order, 1)
        made = flow.gather(flow.const(forest.given.sum(1)), leaf, 0)
        made = flow.reshape(made, (count, classes, trees // classes))
        made = flow.reduce(fn, made, (2,), keep=False)
    else:
        made = flow.gather(flow.const(forest.given), leaf, 0)
        made = flow.reduce(fn, made, (1,), keep=False)
    return flow.scaled(made, 1 / trees) if how == "AVERAGE" else made


def _based(flow: Flow, made: str) -> str:
    base = np.asarray(flow.op.attrs.get("base_values", ()), np.float32)
    return flow.add(made, flow.const(base)) if base.size else made


def tree_regressor(flow: Flow) -> None:
    x, count = to.rows(flow), flow.op.integer("n_targets", 1)
    how = to.text(flow, "aggregate_function", "SUM")
    made = _gathered(flow, x, _read(flow, "target", count), how)
    made = _based(flow, made)
    word = to.text(flow, "post_transform", "NONE")
    flow.give(to.transformed(flow, made, word))


def tree_classifier(flow: Flow) -> None:
    x, labels = to.rows(flow), to.labels_of(flow)
    forest, how = _read(flow, "class", len(labels)), "SUM"
    word = to.text(flow, "post_transform", "NONE")
    named = frozenset().union(*forest.told)
    if len(labels) != 2 or len(named) > 1:
        made = _based(flow, _gathered(flow, x, forest, how))
        flow.give(to.best(flow, made, labels))
        flow.give(to.transformed(flow, made, word), 1)
        return
    made = flow.slice(_gathered(flow, x, forest, how), 1, min(named), min(named) + 1)
    base = np.asarray(flow.op.attrs.get("base_values", ()), np.float32)
    if base.size:
        made = flow.plus(made, float(base[-1]))
    whole = bool((np.asarray(flow.op.attrs["class_weights"]) >= 0).all())
    flow.give(to.above(flow, made, 0.5 if whole else 0.0, labels))
    flow.give(to.both(flow, made, word, whole and word == "NONE"), 1)

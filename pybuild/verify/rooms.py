"""How far roundings between the layers of a float model move its values, and whether a
build that is further from a reference than the tolerance is off by no more.

y = sin(sum of 1024 products): the sum is near 30, its last place is 2e-6, and another
order of the products moves it by some of these. So two right builds differ in y by
1e-5 and more, and no tolerance for all models can say by how much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.interpret import interpret, operator_of
from pybuild.verify.carried import Reals, terms_of
from pybuild.verify.compare import FLOAT_TOLERANCE, Judge, Tally, Values, distance

_ULP = 2.0**-23
# how often all layers are computed, each value moved by so many steps at most: by more
# than one, as the sine of a great number may be the same one step further
WORLDS = 16
STEPS = 4.0
# of the greatest deviation of these, what a value may be away
REACH = 4.0


def by_rooms(
    judge: Judge,
    inputs: Sequence[Mapping[str, Array]],
    wanted: Sequence[Values],
    ours: Mapping[str, Sequence[Values]],
) -> tuple[dict[str, Tally], str] | None:
    """The results of each back end, and a note, if all excessive differences are
    explained by roundings between layers; None if not, or if the model is not of floats
    alone.
    """
    graph = judge.graph
    if graph.windows or graph.bounded or not _is_float(graph):
        return None
    tallies = {name: Tally() for name in ours}
    off = 0
    for index, (given, want) in enumerate(zip(inputs, wanted, strict=True)):
        near = [judge.compare(seen[index], want) for seen in ours.values()]
        wide = judge
        if any(tally.mismatches for tally in near):
            off += max(tally.mismatches for tally in near)
            wide = replace(judge, rooms=rooms(graph, given, want))
        for (name, seen), first in zip(ours.items(), near, strict=True):
            found = wide.compare(seen[index], want)
            tallies[name] += replace(found, max_abs=first.max_abs)
            if not tallies[name].good:
                return None
    what = f"{off} floats are further off than {FLOAT_TOLERANCE:g} of the range"
    return tallies, f"{what}, but no further than roundings between layers move them"


def _is_float(graph: Graph) -> bool:
    return not any(tensor.quant for tensor in graph.tensors.values())


def rooms(
    graph: Graph, inputs: Mapping[str, Array], wanted: Values
) -> dict[str, Array]:
    """How far roundings between layers move each value that is wanted.

    Source  random roundings: D. Parker, Monte Carlo arithmetic, 1997
    """
    with np.errstate(all="ignore"):
        true = interpret(graph, inputs)
        chance = np.random.default_rng(0)
        steps = {n.output: _step(n, graph, true) for n in graph.nodes}
        moved = [_moved(graph, inputs, steps, chance) for _ in range(WORLDS)]
    found = {}
    for name in wanted:
        if name in true and true[name].dtype.kind in "iuf":
            away = [distance(one[name], true[name]) for one in moved]
            found[name] = np.asarray(REACH * np.max(away, axis=0))
    return found


def _step(node: Node, graph: Graph, values: Values) -> Reals | None:
    """By how much a rounding moves each element of a layer: two units in its last
    place; of a sum half a unit of all its terms, should they cancel.
    """
    made = values[node.output]
    if graph.tensor(node.output).dtype is not DType.FLOAT32:
        return None
    plain: Reals = np.abs(made.astype(np.float64)) * 2 * _ULP
    terms = terms_of(node, graph, values)
    if terms is None or terms.size != made.size:
        return plain
    terms = np.where(np.isfinite(terms), terms, 0.0).reshape(made.shape)
    return np.maximum(plain, terms * _ULP / 2)


def _moved(
    graph: Graph,
    inputs: Mapping[str, Array],
    steps: Mapping[str, Reals | None],
    chance: np.random.Generator,
) -> dict[str, Array]:
    """All values, each float that a layer makes moved by a step or more."""
    values: dict[str, Array] = {**graph.constants, **inputs}
    values |= {name: kept.initial for name, kept in graph.state.items()}
    for node in graph.nodes:
        reads = [values[name] if name else None for name in node.inputs]
        made = operator_of(node, graph).reference(node, graph, reads)
        for name, value in zip(node.outputs, made, strict=True):
            step = steps.get(name)
            if step is not None:
                by = chance.uniform(1, STEPS, value.shape)
                by = np.where(chance.uniform(size=value.shape) < 0.5, -by, by)
                value = (value.astype(np.float64) + by * step).astype(np.float32)
            values[name] = value
    return values

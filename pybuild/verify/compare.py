"""How near a value must be to a reference's, and the count of those that are not.

Works on arrays by tensor name; knows nothing of interpreters or back ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.records import dataclass

FLOAT_TOLERANCE = 1e-5
HYBRID_TOLERANCE = 0.03
# share of elements of an inexact integer reference that may be a step away
UNEQUAL_SHARE = 0.001
# results of these operators are in 0..1 or -1..1
_SPANS = {"softmax": 1.0, "logistic": 1.0, "tanh": 2.0}

Values = Mapping[str, Array]


@dataclass(frozen=True)
class Limits:
    """How far a value may be from the reference's.

    Units   relative: of the range of the tensor's reference values;
            steps: of an integer output, or of a float one made from integers; not 0
            where the reference rounds integers through floats
    """

    relative: float = FLOAT_TOLERANCE
    steps: int = 0

    def __str__(self) -> str:
        floats = f"floats within {self.relative:g} of the tensor's range"
        if self.steps == 0:
            return f"integers equal, {floats}"
        share = f"{1 - UNEQUAL_SHARE:.1%}"
        return f"outputs within {self.steps} step, {share} equal; {floats}"


@dataclass(frozen=True)
class Tally:
    """The results of one back end so far.

    mismatches  elements further from the reference than the limits
    unequal     integer elements that differ at all, of `elements` compared
    """

    mismatches: int = 0
    max_abs: float = 0.0
    first_layer: str | None = None
    unequal: int = 0
    elements: int = 0

    def __add__(self, other: Tally) -> Tally:
        """This one, then `other`."""
        return Tally(
            self.mismatches + other.mismatches,
            max(self.max_abs, other.max_abs),
            self.first_layer or other.first_layer,
            self.unequal + other.unequal,
            self.elements + other.elements,
        )

    @property
    def good(self) -> bool:
        few = self.unequal <= UNEQUAL_SHARE * self.elements
        return self.mismatches == 0 and few

    def to_json(self) -> dict[str, Any]:
        """max_abs is null where a value is infinite or not a number."""
        far: float | None = self.max_abs if math.isfinite(self.max_abs) else None
        return {
            "mismatches": self.mismatches,
            "max_abs": int(far) if far is not None and far == int(far) else far,
            "first_layer": self.first_layer,
            "unequal": self.unequal,
            "elements": self.elements,
        }


@dataclass(frozen=True)
class Judge:
    """The limits, with the ranges that they are relative to, by tensor name.

    rooms  by how much more a value of a tensor may be off, each by itself
    """

    graph: Graph
    limits: Limits
    ranges: Mapping[str, float]
    rooms: Mapping[str, Array] = field(default_factory=dict)

    def compare(self, have: Values, want: Values) -> Tally:
        """Every tensor that both have."""
        both = (name for name in want if name in have)
        pairs = ((name, have[name], want[name]) for name in both)
        cut = (self._held(name, a, b, have) for name, a, b in pairs)
        return sum((self._compare_one(*three) for three in cut), Tally())

    def _held(
        self, name: str, have: Array, want: Array, every: Values
    ) -> tuple[str, Array, Array]:
        """Both values of an output, cut to the part that the reference gives."""
        bound = self.graph.bounded.get(name)
        if bound is None or have.shape == want.shape:
            return name, have, want
        axis, room = bound.axis, have.shape[bound.axis]
        count = min(int(every[bound.count][0]), room)
        have = np.take(have, np.arange(count), axis)
        return name, have, np.take(want, np.arange(min(want.shape[axis], room)), axis)

    def _compare_one(self, name: str, have: Array, want: Array) -> Tally:
        if have.size != want.size:
            size = max(have.size, want.size)
            return Tally(size, math.inf, layer_of(self.graph, name))
        far = distance(have, want.reshape(have.shape))
        if name in self.rooms and self.rooms[name].size == far.size:
            room = self.rooms[name].reshape(far.shape)
            far = np.where(far <= room, 0.0, far)
        step = step_of(self.graph, name)
        unequal = elements = 0
        if want.dtype == np.float32 and not (step and self.limits.steps):
            bad = int((far > self.limits.relative * self.ranges[name]).sum())
        else:
            near = (step or 1.0) * (self.limits.steps + 1e-3)
            # a step in one layer moves the next: in between only the share counts
            judged = self.limits.steps == 0 or name in self.graph.outputs
            bad = int((far > near).sum()) if judged else 0
            unequal = int((far > (step or 1.0) * 1e-3).sum())
            elements = far.size
        place = layer_of(self.graph, name) if bad else None
        return Tally(bad, float(far.max(initial=0.0)), place, unequal, elements)


def distance(have: Array, want: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The distance of each element; if only one of the two is NaN, it is infinite."""
    a, b = have.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        far = np.where(same, 0.0, np.abs(a - b))
    return np.where(np.isnan(far), np.inf, far)


def ranges(graph: Graph, values: Iterable[Values]) -> dict[str, float]:
    """The range of the finite values in every float tensor over all value sets; never
    0. A tensor that is a share of a whole by its meaning has at least its own range.
    """
    lows: dict[str, float] = {}
    highs: dict[str, float] = {}
    for one in values:
        for name, value in one.items():
            if value.dtype == np.float32:
                known = value[np.isfinite(value)]
                low, high = lows.get(name, np.inf), highs.get(name, -np.inf)
                lows[name] = min(low, float(known.min(initial=np.inf)))
                highs[name] = max(high, float(known.max(initial=-np.inf)))
    makers = graph.producers()
    spans = {}
    for name, low in lows.items():
        maker = makers.get(name)
        least = _SPANS.get(maker.op, 0.0) if maker is not None else 0.0
        high = max(highs[name], low)
        if not np.isfinite(low):  # of no number that is finite
            low = high = 0.0
        span = max(high - low, least)
        spans[name] = span or max(abs(high), 1e-30)
    return spans


def layer_of(graph: Graph, tensor: str) -> str:
    """The name of the node that makes a tensor."""
    node = graph.producers().get(tensor)
    return node.name if node is not None else tensor


def step_of(graph: Graph, name: str) -> float:
    """The real size of a step of a float tensor that integers were turned into."""
    producers = graph.producers()
    node = producers.get(name)
    while node is not None and node.op in ("reshape", "transpose", "copy", "slice"):
        node = producers.get(node.inputs[0])
    if node is None or node.op != "dequantize":
        return 0.0
    quant = graph.tensor(node.inputs[0]).quant
    return quant.scale[0] if quant is not None else 0.0

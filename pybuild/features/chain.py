"""Features joined in front of a net, decisions behind it: one graph of samples.

Knows graphs, no files; what a net's window keeps of earlier rows is state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.features.decision import Decision
from pybuild.ir.graph import Graph, Node, Quant, State, Tensor, verify
from pybuild.ops.base.operator import WHOLE

# rows of features that one run may bring, and the least share of what features can
# be that a net's input must be able to hold
MOST_ROWS, LEAST_HELD = 64, 0.5
_TRAIN = "train it on features(samples) * features.scale, or as float32"


def rows_of(net: Graph, bands: int) -> int:
    """The number of feature rows that a net's only input holds.

    Errors  BuildError
    """
    if len(net.inputs) != 1:
        what = f"has {len(net.inputs)} inputs, features are one"
        raise BuildError(net.source, what, "a net with one input")
    x = net.tensor(net.inputs[0])
    if x.size % bands or not x.size:
        what = f"input '{x.name}' {list(x.shape)} does not split into rows of "
        what += f"{bands} bands"
        raise BuildError(net.source, what, "features with as many bands as the net")
    return x.size // bands


def time_axis(net: Graph, bands: int) -> int:
    """The axis of a net's input along which rows come."""
    x, rows = net.tensor(net.inputs[0]), rows_of(net, bands)
    for order in ((rows, bands), (bands, rows)):
        if tuple(n for n in x.shape if n != 1) == tuple(n for n in order if n != 1):
            sizes = [i for i, n in enumerate(x.shape) if n != 1 or rows == 1]
            if rows == 1:  # any axis before the bands
                return max(0, x.shape.index(bands) - 1)
            return sizes[0] if order[0] == rows else sizes[-1]
    what = f"input '{x.name}' {list(x.shape)} has no axis of {rows} rows"
    raise BuildError(net.source, what, "reshape it to [1, rows, bands] or [1, n]")


def joined(
    features: Graph, net: Graph, decision: Decision | None = None, every: int = 1
) -> Graph:
    """One graph: `every` times as many samples as features take are one run.

    features  one input int16 of samples, one output: a row
    net       one input: the newest rows of features, at least `every`
    Errors    BuildError where they do not fit
    """
    if len(features.inputs) != 1 or len(features.outputs) != 1:
        raise BuildError(features.source, "must have one input and one output")
    bands = features.tensor(features.outputs[0]).size
    rows = rows_of(net, bands)
    if not 1 <= every <= min(rows, MOST_ROWS):
        what = f"every is {every} rows, not from 1 to {min(rows, MOST_ROWS)}"
        raise BuildError(net.source, what, f"the net takes {rows} rows")
    chain = Joining(net, features)
    made = chain.rows(bands, every)
    chain.net_input(chain.window(chain.fitted(made), rows), bands)
    outputs = tuple(chain.add(net))
    if decision is not None:
        outputs = (*chain.decided(outputs, decision), *outputs)
    return chain.graph(outputs, "samples", sampled=True)


class Joining:
    """One graph while it is being made: what stands before a net, the net, and what
    follows.

    features  a graph of rows; None: the caller puts nodes before the net
    """

    def __init__(self, net: Graph, features: Graph | None = None) -> None:
        self.features, self.net = features or net, net
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.state: dict[str, State] = {}
        self.origins: dict[str, str] = {}
        self.names = dict[str, str]()  # of the net's tensors, where others had theirs
        self.first = net.inputs[0]

    def fresh(self, name: str) -> str:
        made, count = name, 1
        while made in self.tensors:
            count += 1
            made = f"{name}_{count}"
        return made

    def op(
        self, op: str, name: str, reads: tuple[str, ...], like: Tensor, **attrs: object
    ) -> str:
        """A node whose output is `like`, by another name."""
        made = self.fresh(name)
        self.tensors[made] = replace(like, name=made)
        self.nodes.append(Node(op, made, reads, (made,), attrs))
        return made

    # ---- features ----------------------------------------------------------------

    def rows(self, bands: int, every: int) -> str:
        """The features of all samples of a run: int8[every, bands]."""
        x = self.features.tensor(self.features.inputs[0])
        row = replace(self.features.tensor(self.features.outputs[0]), shape=(1, bands))
        if x.dtype is not DType.INT16:
            what = f"input '{x.name}' is {x.dtype.value}"
            raise BuildError(self.features.source, what, "features take int16")
        given = Tensor("samples", (every * x.size,), DType.INT16)
        self.tensors[given.name] = given
        last = {name: name for name in self.features.state}
        found = []
        for i in range(every):
            frame = given.name
            if every > 1:
                begin, end = (i * x.size,), ((i + 1) * x.size,)
                frame = self.op(
                    "slice", "frame", (frame,), replace(x, shape=(x.size,)),
                    begin=begin, end=end, strides=(1,),
                )  # fmt: skip
            if self.tensors[frame].shape != x.shape:
                frame = self.op("reshape", "frame", (frame,), x)
            names = self.copied(frame, last)
            last = {n: names[s.next] for n, s in self.features.state.items()}
            made = names[self.features.outputs[0]]
            found.append(self.op("reshape", "row", (made,), row))
        for name, kept in self.features.state.items():
            self.state[name] = State(last[name], kept.initial)
        if every == 1:
            return found[0]
        whole = replace(row, shape=(every, bands))
        return self.op("concat", "rows", tuple(found), whole, axis=0)

    def copied(self, frame: str, kept: Mapping[str, str]) -> dict[str, str]:
        """The nodes of the features once more; what their tensors are called."""
        features, names = self.features, {self.features.inputs[0]: frame, "": ""}
        for name in (*features.constants, *features.state):
            names[name] = kept.get(name, name)
            self.tensors.setdefault(name, features.tensor(name))
        self.constants |= features.constants
        for node in features.nodes:
            for name in node.outputs:
                names[name] = self.fresh(name)
                self.tensors[names[name]] = replace(
                    features.tensor(name), name=names[name]
                )
            self.nodes.append(_renamed(node, names))
        return names

    # ---- between -------------------------------------------------------------------

    def fitted(self, rows: str) -> str:
        """Rows in the integers of the net; those of a net of float stay."""
        have, want = self.tensors[rows], self.net.tensor(self.first)
        where = f"{self.net.source}: input '{want.name}'"
        if want.dtype is DType.FLOAT32:
            if have.dtype is not DType.FLOAT32 and have.quant is None:
                raise BuildError(where, "is float32, features have no scale")
            return rows
        if want.dtype not in WHOLE or have.dtype not in (*WHOLE, DType.FLOAT32):
            what = f"is {want.dtype.value}, features are {have.dtype.value}"
            raise BuildError(where, what, "int8, int16 or float32")
        if (have.dtype, have.quant) == (want.dtype, want.quant):
            return rows
        if None in (have.quant, want.quant) and have.dtype is want.dtype:
            return rows  # one of them says no scale: the same integers are meant
        if have.dtype is not DType.FLOAT32:
            _must_hold(where, want, have)
        like = replace(have, dtype=want.dtype, quant=want.quant)
        return self.op("quantize", "requantised", (rows,), like)

    def window(self, rows: str, count: int) -> str:
        """The newest `count` rows."""
        new = self.tensors[rows]
        held = count - new.shape[0]
        if not held:
            return rows
        zero = new.quant.zero_point[0] if new.quant else 0
        shape = (held, new.shape[1])
        before = self.fresh("rows before")
        self.tensors[before] = replace(new, name=before, shape=shape)
        whole = replace(new, shape=(count, new.shape[1]))
        made = self.op("concat", "window", (before, rows), whole, axis=0)
        rest = self.op(
            "slice", "rows kept", (made,), self.tensors[before],
            begin=(new.shape[0], 0), end=whole.shape, strides=(1, 1),
        )  # fmt: skip
        self.state[before] = State(rest, np.full(shape, zero, new.dtype.numpy))
        return made

    def net_input(self, rows: str, bands: int) -> None:
        """Rows as the net's input has them, under its name."""
        have, want = self.tensors[rows], self.net.tensor(self.first)
        if want.dtype is DType.FLOAT32 and have.dtype is not DType.FLOAT32:
            like = replace(have, dtype=DType.FLOAT32, quant=None)
            rows = self.op("dequantize", "real", (rows,), like)
            have = self.tensors[rows]
        plain = tuple(n for n in want.shape if n != 1)
        turned = tuple(n for n in have.shape[::-1] if n != 1)
        count = have.shape[0]
        if count > 1 and bands > 1 and plain == turned and count != bands:
            like = replace(have, shape=have.shape[::-1])
            rows = self.op("transpose", "turned", (rows,), like, perm=(1, 0))
        like = replace(want, quant=have.quant or want.quant)
        self.names[self.first] = self.op("reshape", self.first, (rows,), like)

    # ---- the net, and what follows ---------------------------------------------------

    def add(self, net: Graph) -> list[str]:
        """Nodes, constants and state of the net; its outputs."""
        names = {"": "", **self.names}
        for name in net.tensors:
            if name not in names:
                names[name] = self.fresh(name)
                self.tensors[names[name]] = replace(net.tensor(name), name=names[name])
        self.constants |= {names[n]: v for n, v in net.constants.items()}
        self.nodes += [_renamed(node, names) for node in net.nodes]
        for name, kept in net.state.items():
            self.state[names[name]] = State(names[kept.next], kept.initial)
        self.origins = dict(net.origins)
        return [names[name] for name in net.outputs]

    def decided(self, outputs: tuple[str, ...], decision: Decision) -> tuple[str, ...]:
        """The steps after the net."""
        if len(outputs) != 1:
            what = f"has {len(outputs)} outputs, a decision is made of one"
            raise BuildError(self.net.source, what, "a net whose output is the scores")
        scores = self.tensors[outputs[0]]
        made, ends = decision.nodes(scores, self.net.source, self.fresh)
        for tensor in made.tensors:
            self.tensors[tensor.name] = tensor
        self.nodes += made.nodes
        self.state |= made.state
        return ends

    def graph(
        self, outputs: tuple[str, ...], given: str, sampled: bool = False
    ) -> Graph:
        net = self.net
        made = Graph(
            net.name, net.source, tuple(self.nodes), self.tensors, (given,),
            outputs, self.constants, state=self.state, sampled=given if sampled else "",
            origins=self.origins,
        )  # fmt: skip
        verify(made)
        return made


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    outputs = tuple(names[name] for name in node.outputs)
    same = outputs == node.outputs
    return replace(
        node, name=node.name if same else outputs[0], outputs=outputs,
        inputs=tuple(names[name] for name in node.inputs),
    )  # fmt: skip


def _must_hold(where: str, want: Tensor, have: Tensor) -> None:
    """Checks that the net's integers cover the features.

    Errors  BuildError where the net's integers hold too little of the features
    """
    if want.quant is None or have.quant is None:
        told = "the net's input" if want.quant is None else "what features are"
        raise BuildError(where, f"{told} has no scale, the other has one", _TRAIN)
    theirs, ours = _range(want, want.quant), _range(have, have.quant)
    held = min(theirs[1], ours[1]) - max(theirs[0], ours[0])
    fewer = 1 << 8 * max(have.dtype.bytes - want.dtype.bytes, 0)
    coarse = want.quant.scale[0] > 16 * fewer * have.quant.scale[0]
    if held < LEAST_HELD * (ours[1] - ours[0]) or coarse:
        spans = [f"{low:.4g} to {high:.4g}" for low, high in (theirs, ours)]
        what = f"is for numbers from {spans[0]}, features are from {spans[1]}"
        raise BuildError(where, what, _TRAIN)


def _range(tensor: Tensor, quant: Quant) -> tuple[float, float]:
    low, high = tensor.dtype.low, tensor.dtype.high
    scale, zero = quant.scale[0], quant.zero_point[0]
    return scale * (low - zero), scale * (high - zero)

"""RNN, GRU and LSTM, unrolled over sequences of known length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_USUAL = {
    "RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh"),
}  # fmt: skip
# which activations take a number of these lists
_NUMBERS = {
    "activation_alpha": ("affine", "hardsigmoid", "leakyrelu"),
    "activation_beta": ("affine", "hardsigmoid"),
}
State = list[str]
Step = Callable[[str, State], State]


def _activation(
    flow: Flow, name: str, alpha: float | None, beta: float | None
) -> Callable[[str], str]:
    def scaled(x: str) -> str:
        return flow.scaled(x, 1.0 if alpha is None else alpha)

    def sigmoid(x: str) -> str:
        return _layer(flow, "logistic", "sigmoid", x)

    def affine(x: str) -> str:
        return flow.plus(scaled(x), beta or 0.0)

    def hard(x: str) -> str:
        line = flow.plus(
            flow.scaled(x, 0.2 if alpha is None else alpha),
            0.5 if beta is None else beta,
        )
        held = flow.map("maximum", line, flow.const(0, x))
        return flow.map("minimum", held, flow.const(1, x))

    def leaky(x: str) -> str:
        below = flow.map("less", x, flow.const(0, x))
        return flow.map(
            "where", below, flow.scaled(x, 0.01 if alpha is None else alpha), x
        )

    table: dict[str, Callable[[str], str]] = {
        "affine": affine,
        "hardsigmoid": hard,
        "leakyrelu": leaky,
        "relu": lambda x: flow.map("maximum", x, flow.const(0, x)),
        "sigmoid": sigmoid,
        "tanh": lambda x: _layer(flow, "tanh", "tanh", x),
    }
    if name.lower() not in table:
        raise flow.op.invalid(f"the activation {name} is not supported")
    return table[name.lower()]


def _layer(flow: Flow, op: str, fn: str, *inputs: str) -> str:
    """Emit a float32 layer, which can be quantised, or else an elementwise map of any
    type."""
    floats = all(flow.dtype(name) is DType.FLOAT32 for name in inputs)
    shapes = {flow.shape(name) for name in inputs if math.prod(flow.shape(name)) > 1}
    if not floats or len(shapes) > 1:
        return flow.map(fn, *inputs)
    return flow.emit(op, inputs)


class Direction:
    """One direction: its weights, and how it steps.

    state_axis  of the weights that meet the state: its elements
    """

    state_axis = -1

    def __init__(self, flow: Flow, number: int, hidden: int) -> None:
        self.flow, self.hidden, self.kind = flow, hidden, flow.op.kind
        self.gates = GATES[self.kind]
        self.w = self._weights(1, number)
        self.r = self._weights(2, number)
        self.wb, self.rb = "", ""
        if flow.has(3):
            bias = flow.slice(flow.arg(3), 0, number, number + 1)
            size = self.gates * hidden
            self.wb = flow.slice(bias, 1, 0, size)
            self.rb = flow.slice(bias, 1, size, 2 * size)
        names = flow.op.attrs.get("activations", ())
        count = len(_USUAL[self.kind])
        own = tuple(names[number * count : (number + 1) * count]) or _USUAL[self.kind]
        everything = tuple(names) or _USUAL[self.kind] * (number + 1)
        before = everything[: number * count]
        self.act = []
        for i, name in enumerate(own):
            numbers = (_number(flow, k, (*before, *own[:i]), name) for k in _NUMBERS)
            self.act.append(_activation(flow, str(name), *numbers))
        self.clip = flow.op.attrs.get("clip")

    def _weights(self, index: int, number: int) -> str:
        """Return one direction's weights: [gates * hidden, inputs]."""
        flow = self.flow
        w = flow.slice(flow.arg(index), 0, number, number + 1)
        return flow.reshape(w, flow.shape(w)[1:])

    def _product(self, x: str, w: str, bias: str) -> str:
        """Emit a dense layer if the weights come from the file and x is computed
        float32; else a matmul."""
        flow = self.flow
        weights = all(flow.draft.is_weight(n) for n in (w, bias) if n)
        if weights and flow.known(x) is None and flow.dtype(x) is DType.FLOAT32:
            flat = [flow.reshape(bias, flow.shape(bias)[-1:])] if bias else []
            return flow.emit("dense", [x, w, *flat])
        made = flow.matmul(x, flow.transpose(w, (1, 0)))
        return flow.add(made, bias) if bias else made

    def _add(self, a: str, b: str) -> str:
        return _layer(self.flow, "add", "add", a, b)

    def _mul(self, a: str, b: str) -> str:
        return _layer(self.flow, "mul", "multiply", a, b)

    def _rest(self, x: str) -> str:
        """Return 1 - x."""
        return _layer(self.flow, "sub", "subtract", self.flow.const(1, x), x)

    def gate(self, x: str, number: int, last: int = -1) -> str:
        end = number + 1 if last < 0 else last
        return self.flow.slice(x, 1, number * self.hidden, end * self.hidden)

    def bounded(self, x: str) -> str:
        if self.clip is None:
            return x
        flow, limit = self.flow, float(self.clip)
        low = flow.map("maximum", x, flow.const(-limit, x))
        return flow.map("minimum", low, flow.const(limit, x))

    def rows(self, x: str) -> list[str]:
        """What each step sees, [batch, inputs]; x [steps, batch, inputs]."""
        flow, (steps, *row) = self.flow, self.flow.shape(x)
        return [flow.reshape(flow.slice(x, 0, t, t + 1), row) for t in range(steps)]

    def seen(self, x: str) -> str:
        """The contribution of what a step sees to the gates, and its bias."""
        return self._product(x, self.w, self.wb)

    def remembered(self, h: str) -> str:
        """The contribution of the last state to the gates, and its bias."""
        return self._product(h, self.r, self.rb)

    def _past(self, h: str, begin: int, end: int) -> str:
        """Return the previous state's contribution to the gates in rows `begin` to
        `end`."""
        flow = self.flow
        rb = self.rb and flow.slice(self.rb, 1, begin, end)
        return self._product(h, flow.slice(self.r, 0, begin, end), rb)

    def step(self, x: str, state: State) -> State:
        match self.kind:
            case "RNN":
                total = self._add(self.seen(x), self.remembered(state[0]))
                return [self.act[0](self.bounded(total))]
            case "GRU":
                return [self._gru(x, state[0])]
        return self._lstm(x, state)

    def _gru(self, x: str, h: str) -> str:
        seen = self.seen(x)
        linear = bool(self.flow.op.integer("linear_before_reset", 0))
        first, last = (0, 2 * self.hidden), (2 * self.hidden, 3 * self.hidden)
        known = self.remembered(h) if linear else self._past(h, *first)
        both = self._add(self.gate(seen, 0, 2), self.gate(known, 0, 2))
        both = self.act[0](self.bounded(both))
        z, r = self.gate(both, 0), self.gate(both, 1)
        if linear:
            past = self._mul(r, self.gate(known, 2))
        else:
            past = self._past(self._mul(r, h), *last)
        new = self.act[1](self.bounded(self._add(self.gate(seen, 2), past)))
        keep = self._mul(z, h)
        return self._add(self._mul(self._rest(z), new), keep)

    def _lstm(self, x: str, state: State) -> State:
        flow, (h, c) = self.flow, state
        total = self._add(self.seen(x), self.remembered(h))
        i, o, f, g = (self.gate(total, n) for n in range(4))
        if flow.has(7):
            peep = [self.gate(self.peepholes, n) for n in range(3)]
            i, f = (
                self._add(v, self._mul(p, c)) for v, p in ((i, peep[0]), (f, peep[2]))
            )
        i, f = self.act[0](self.bounded(i)), self.act[0](self.bounded(f))
        if flow.op.integer("input_forget", 0):
            f = self._rest(i)
        c = self._add(self._mul(f, c), self._mul(i, self.act[1](self.bounded(g))))
        if flow.has(7):
            o = self._add(o, self._mul(peep[1], c))
        o = self.act[0](self.bounded(o))
        return [self._mul(o, self.act[2](c)), c]

    peepholes = ""


def _number(flow: Flow, which: str, before: Sequence[str], name: str) -> float | None:
    """Return the number for an activation from a list that only some activations
    use."""
    given, takers = tuple(flow.op.attrs.get(which, ())), _NUMBERS[which]
    at = sum(other.lower() in takers for other in before)
    return float(given[at]) if name.lower() in takers and at < len(given) else None


def _start(
    flow: Flow, index: int, number: int, shape: tuple[int, int], like: str
) -> str:
    """Return the initial state of a direction."""
    if not flow.has(index):
        return flow.expand(flow.const(np.zeros((1, 1)), like), shape)
    whole = flow.arg(index)
    if flow.op.integer("layout", 0):
        whole = flow.transpose(whole, (1, 0, 2))
    return flow.reshape(flow.slice(whole, 0, number, number + 1), shape)


def _walked(
    flow: Flow, direction: Direction, rows: Sequence[str], state: State, back: bool
) -> tuple[list[str], State]:
    """Unroll every step; a sequence that has ended keeps its state and outputs
    zeros."""
    outputs = [""] * len(rows)
    lengths = flow.arg(4) if flow.has(4) else ""
    known = flow.known(lengths) if lengths else None
    if known is not None and int(np.min(known)) >= len(rows):
        lengths = ""
    order = range(len(rows) - 1, -1, -1) if back else range(len(rows))
    for turn in order:
        made = direction.step(rows[turn], state)
        output = made[0]
        if lengths:
            column = flow.reshape(lengths, (flow.shape(lengths)[0], 1))
            on = flow.map("less", flow.const(turn, lengths), column)
            made = [
                flow.map("where", on, a, b) for a, b in zip(made, state, strict=True)
            ]
            output = flow.map("where", on, output, flow.const(0, output))
        outputs[turn], state = output, made
    return outputs, state


@flowing
def _recurrent(flow: Flow) -> None:
    recurrent(flow, Direction)


def recurrent(flow: Flow, directed: type[Direction]) -> None:
    """RNN, GRU or LSTM of `flow`; directed: how each direction multiplies."""
    op, x = flow.op, flow.arg(0)
    if op.integer("layout", 0):
        x = flow.transpose(x, (1, 0, 2))
    batch = flow.shape(x)[1]
    hidden = flow.shape(flow.arg(2))[directed.state_axis]
    way = str(op.attrs.get("direction", "forward"))
    ways = [False, True] if way == "bidirectional" else [way == "reverse"]
    every: list[list[str]] = []
    ends: list[State] = []
    for number, back in enumerate(ways):
        direction = directed(flow, number, hidden)
        states = [5, 6] if op.kind == "LSTM" else [5]
        if op.kind == "LSTM" and flow.has(7):
            direction.peepholes = flow.slice(flow.arg(7), 0, number, number + 1)
        state = [_start(flow, i, number, (batch, hidden), x) for i in states]
        outputs, end = _walked(flow, direction, direction.rows(x), state, back)
        every.append(outputs)
        ends.append(end)
    _give(flow, every, ends, (batch, hidden))


def _give(
    flow: Flow, every: list[list[str]], ends: list[State], shape: tuple[int, int]
) -> None:
    """Set the outputs Y [steps, directions, batch, hidden], Y_h and Y_c [directions,
    batch, hidden]."""
    batched = bool(flow.op.integer("layout", 0))
    if flow.op.outputs[0]:
        columns = [
            flow.concat([flow.reshape(o, (1, 1, *shape)) for o in row], 0)
            for row in every
        ]
        whole = flow.concat(columns, 1)
        flow.give(flow.transpose(whole, (2, 0, 1, 3)) if batched else whole)
    for index in range(len(ends[0])):
        if len(flow.op.outputs) > 1 + index and flow.op.outputs[1 + index]:
            last = flow.concat([flow.reshape(e[index], (1, *shape)) for e in ends], 0)
            flow.give(flow.transpose(last, (1, 0, 2)) if batched else last, 1 + index)


RECURRENT: dict[str, Handler] = dict.fromkeys(GATES, _recurrent)

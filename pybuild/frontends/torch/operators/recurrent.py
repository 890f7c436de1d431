"""LSTM, GRU and RNN with several layers, as one ONNX operator per layer."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.frontends.torch.operators.writer import Handler, Writer
from pybuild.frontends.torch.reader.program import Call

# torch's order of gates -> ONNX's
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _ordered(kind: str, value: Array) -> Array:
    parts = np.split(value, len(_GATES[kind]))
    return np.concatenate([parts[i] for i in _GATES[kind]])


def recurrent(kind: str, activation: str = "") -> Handler:
    def handler(w: Writer, call: Call) -> None:
        if call.get("train", False) and call.get("dropout", 0.0):
            raise call.invalid("is in training mode", "model.eval() before the export")
        x, first = call.tensor("input"), call.get("batch_first", False)
        ways = 2 if call.get("bidirectional", False) else 1
        layers, biases = int(call.get("num_layers", 1)), bool(call.get("has_biases"))
        hx = call.get("hx")
        states = [one.name for one in (hx if isinstance(hx, list) else [hx])]
        if first:
            x = w.op("Transpose", x, perm=[1, 0, 2])
        each = 4 if biases else 2
        names = [one.name for one in call.get("params")]
        if len(names) != layers * ways * each:
            raise call.invalid("a projection is not supported", "proj_size=0")
        ends: list[list[str]] = [[] for _ in states]
        for layer in range(layers):
            mine = names[layer * ways * each : (layer + 1) * ways * each]
            x, last = _layer(w, call, kind, activation, x, mine, states, layer, ways)
            for all_, one in zip(ends, last, strict=True):
                all_.append(one)
        if first:
            w.give("Transpose", x, perm=[1, 0, 2])
        else:
            w.give("Identity", x)
        for parts, output in zip(ends, call.outputs[1:], strict=False):
            if output:
                w.op("Concat", *parts, to=output, axis=0)

    return handler


def _layer(
    w: Writer, call: Call, kind: str, activation: str, x: str, names: list[str],
    states: list[str], layer: int, ways: int,
) -> tuple[str, list[str]]:  # fmt: skip
    """Return a layer's outputs at every step, and its final states."""
    each = len(names) // ways
    values: list[list[Array]] = [[] for _ in range(4)]
    for way in range(ways):
        for place, name in enumerate(names[way * each : (way + 1) * each]):
            value = w.known(name)
            if value is None:
                raise call.invalid("its weights are computed by the model")
            values[place].append(_ordered(kind, value))
    reads = [w.const(np.stack(part)) for part in values[:2]]
    reads.append("")
    if each == 4:
        both = [np.concatenate(pair) for pair in zip(*values[2:], strict=True)]
        reads[2] = w.const(np.stack(both))
    reads.append("")
    for state in states:
        begin, end = w.ints([layer * ways]), w.ints([(layer + 1) * ways])
        reads.append(w.op("Slice", state, begin, end, w.ints([0])))
    hidden = values[1][0].shape[1]
    attrs = {"hidden_size": hidden}
    more = {"direction": "bidirectional"} if ways == 2 else {}
    if kind == "GRU":
        attrs["linear_before_reset"] = 1
    acts = {"activations": [activation] * ways} if activation else {}
    made = [w.fresh() for _ in range(1 + len(states))]
    w.op(kind, x, *reads, to=made, **attrs, **more, **acts)
    # [steps, ways, batch, hidden] -> [steps, batch, ways * hidden]
    turned = w.op("Transpose", made[0], perm=[0, 2, 1, 3])
    return w.reshape(turned, (0, 0, ways * hidden)), made[1:]


RECURRENT: dict[str, Handler] = {
    "lstm": recurrent("LSTM"), "gru": recurrent("GRU"),
    "rnn_tanh": recurrent("RNN", "Tanh"), "rnn_relu": recurrent("RNN", "Relu"),
}  # fmt: skip

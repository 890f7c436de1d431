"""How random files of operators that keep state are drawn: RECURRENT.

Each sample of a file is a run that goes on where the one before ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.frontends.tflite.files import One

Draw = Callable[[One], None]
Sizes = tuple[int, ...]
LSTM, NONE, RELU, RELU6, TANH = "UNIDIRECTIONAL_SEQUENCE_LSTM", 0, 1, 3, 4
_GATES = 4


def real(number: float) -> float:
    return float(np.float32(number))


def near(one: One, number: float) -> float:
    """A scale within a factor of 3."""
    return real(number * np.exp(one.rng.uniform(-1.1, 1.1)))


def lstm(one: One) -> None:
    lstm_of(one, one.size(1, 6))


def lstm_of(one: One, steps: int, sizes: Sizes | None = None) -> None:
    """The LSTM that Keras has, of so many steps; sizes  batch, inputs, units"""
    batch, width, units = sizes or (one.size(1, 3), one.size(1, 9), one.size(1, 9))
    major, whole = one.flag(), one.kind != "float32"
    scale, zero = near(one, 0.03), one.size(-30, 30)
    hidden: Any = (real(one.rng.uniform(0.6, 1) / 128), one.size(-9, 9))
    if one.kind == "int16":
        scale, zero = near(one, 2**-13), 0
        hidden = real(one.rng.uniform(0.6, 1) / 32768), 0
    shape = (steps, batch, width) if major else (batch, steps, width)
    bounds = (-32768, 32767) if one.kind == "int16" else None
    one.x(shape, quant=(scale, zero) if whole else (), bounds=bounds)
    scales = [_weights(one, (units, n)) for n in (width, units)]
    one.reads += [-1] * 3
    for gate in range(_GATES):
        if whole:
            most, kind = (1e5, "int64") if one.kind == "int16" else (2e3, "int32")
            bias = one.values((units,), kind, -most, most)
            one.constant(bias, kind, (real(scales[0][gate] * scale), 0))
        else:
            one.constant(one.rng.normal(0, 1, units), "float32")
    one.reads += [-1] * 2
    power = one.pick(-9, -10, -11, -12, -13, -15)
    one.kept((batch, units), one.kind, hidden if whole else ())
    one.kept((batch, units), "int16" if whole else "float32", (2.0**power, 0) if whole
             else ())  # fmt: skip
    one.reads += [-1] * 4
    one.y(quant=hidden if whole else (), shape=(*shape[:2], units))
    if whole:
        within = [one.tensor((0,), "int16", (2.0**-12, 0)) for _ in range(_GATES)]
        # LiteRT quantises by this one, TFLM by the state
        more, apart = one.pick(3, 5), one.kind == "int8"
        last = (real(hidden[0] * 1.1), hidden[1] + more) if apart else hidden
        one.within = [*within, one.tensor((0,), one.kind, last)]
    one.with_options(
        "UnidirectionalSequenceLSTMOptions", FusedActivationFunction=TANH,
        CellClip=one.pick(0.0, 0.0, 0.7), ProjClip=0.0, TimeMajor=major,
        AsymmetricQuantizeInputs=False,
    )  # fmt: skip


def _weights(one: One, shape: tuple[int, ...]) -> list[float]:
    """Of each gate; their scales."""
    scales = []
    for _ in range(_GATES):
        if one.kind == "float32":
            one.constant(one.rng.normal(0, 1, shape), "float32")
            continue
        scales.append(near(one, 0.008))
        one.constant(one.values(shape, "int8", -127, 127), "int8", (scales[-1], 0))
    return scales


def svdf(one: One) -> None:
    svdf_of(one, "int16" if one.kind == "int8" else one.kind)


def svdf_of(
    one: One, state: str, biased: bool = False, sizes: Sizes | None = None
) -> None:
    """biased  always, as TFLM reads one in any case
    sizes   batch, inputs, units, rank, memory"""
    drawn = (
        one.size(1, 3),
        one.size(1, 9),
        one.size(1, 5),
        one.size(1, 3),
        one.size(1, 6),
    )
    batch, width, units, rank, memory = sizes or drawn
    filters = units * rank
    if one.kind == "float32":
        one.x((batch, width))
        one.constant(one.rng.normal(0, 1, (filters, width)), "float32")
        one.constant(one.rng.normal(0, 1, (filters, memory)), "float32")
        _bias(one, units, 0.0, biased)
        one.kept((batch, filters * memory), "float32")
        one.y(quant=(), shape=(batch, units))
        kind = one.pick(NONE, RELU, RELU6)
    else:
        top = int(np.iinfo(state).max)
        scale, weight, time = near(one, 0.02), near(one, 0.008), near(one, 0.6 / top)
        kept = near(one, scale * weight * 6000 * width**0.5 / top)
        one.x((batch, width), quant=(scale, one.size(-30, 30)))
        one.constant(
            one.values((filters, width), "int8", -127, 127), "int8", (weight, 0)
        )
        one.constant(
            one.values((filters, memory), state, -top, top), state, (time, 0)
        )  # fmt: skip
        _bias(one, units, kept * time, biased)
        zero = one.size(-9, 9) if state == "int8" else 0
        one.kept((batch, filters * memory), state, (kept, zero))
        made = near(one, kept * time * top * top / 400 * (memory * rank) ** 0.5)
        one.y(quant=(made, one.size(-128, 20)), shape=(batch, units))
        kind = RELU
    one.with_options(
        "SVDFOptions", Rank=rank, FusedActivationFunction=kind,
        AsymmetricQuantizeInputs=False,
    )  # fmt: skip


def _bias(one: One, units: int, scale: float, always: bool) -> None:
    if not one.size(0, 3) and not always:
        one.reads.append(-1)
    elif one.kind == "float32":
        one.constant(one.rng.normal(0, 1, units), "float32")
    else:
        one.constant(one.values((units,), "int32", -2000, 2000), "int32", (scale, 0))


RECURRENT: dict[str, tuple[tuple[str, ...], Draw]] = {
    "SVDF": (("float32", "int8"), svdf),
    LSTM: (("float32", "int8"), lstm),
}

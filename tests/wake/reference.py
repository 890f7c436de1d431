"""Wake words by others: features of pymicro-features, nets by LiteRT, and the decision
of ESPHome's micro_wake_word, written here once more from its source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from tests.toolchains import require_module

Heard = list[tuple[int, str]]  # the row of features, from 0, and the net


def rows_of(samples: Array) -> Array:
    """Rows of features as ESPHome has them: int8[rows, 40]."""
    require_module("pymicro_features")
    import pymicro_features

    front, data, at, rows = pymicro_features.MicroFrontend(), samples.tobytes(), 0, []
    while at + 320 <= len(data):
        made = front.process_samples(data[at : at + 320])
        at += 2 * made.samples_read
        rows += [made.features] if made.features else []
    whole = np.rint(np.asarray(rows) * 25.6).astype(np.int64)
    return np.clip((whole * 256 + 333) // 666 - 128, -128, 127).astype(np.int8)


def probabilities(net: Path, rows: Array) -> Array:
    """What the net says after each of its steps: uint8[steps]."""
    litert = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="ai-edge-litert is not installed"
    )
    one = litert.Interpreter(
        model_content=net.read_bytes(),
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
    )
    one.allocate_tensors()
    given, made = one.get_input_details()[0], one.get_output_details()[0]
    count, found = given["shape"][1], []
    for at in range(0, len(rows) - count + 1, count):
        one.set_tensor(given["index"], rows[at : at + count][None])
        one.invoke()
        found.append(one.get_tensor(made["index"])[0, 0])
    return np.array(found, np.uint8)


class _Net:
    """ESPHome's StreamingModel without its interpreter."""

    def __init__(self, name: str, said: Mapping[str, float]) -> None:
        self.name, self.size = name, int(said["sliding_window_size"])
        self.cutoff = int(said["probability_cutoff"] * 255)
        self.index, self.unprocessed = 0, False
        self.reset()

    def reset(self) -> None:
        self.recent, self.ignore = [0] * self.size, -100

    def add(self, probability: int) -> None:
        self.index = (self.index + 1) % self.size
        self.recent[self.index] = probability
        self.unprocessed = True

    def cool(self) -> None:
        if self.recent[self.index] < self.cutoff:
            self.ignore = min(self.ignore + 1, 0)

    def is_above(self) -> bool:
        return sum(self.recent) > self.cutoff * self.size


def heard(nets: Mapping[str, Path], scores: Mapping[str, Array], step: int) -> Heard:
    """Which word is heard at which row.

    step  rows of a step of the nets
    """
    return list(_heard(nets, scores, step))


def _heard(
    nets: Mapping[str, Path], scores: Mapping[str, Array], step: int
) -> Iterator[tuple[int, str]]:
    told = {n: json.loads(p.with_suffix(".json").read_text()) for n, p in nets.items()}
    states = {name: _Net(name, one["micro"]) for name, one in told.items()}
    vad = [states[n] for n, one in told.items() if one["wake_word"] == "vad"]
    words = [state for state in states.values() if state not in vad]
    for row in range(step * len(next(iter(scores.values())))):
        for name, state in states.items():
            if row % step == step - 1:
                state.add(int(scores[name][row // step]))
            state.cool()
        is_voice = all(state.is_above() for state in vad)
        for word in words:
            if not word.unprocessed or word.ignore < 0:
                continue
            word.unprocessed = False
            if word.is_above() and is_voice:
                word.reset()
                yield row, word.name

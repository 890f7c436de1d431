"""Decides which word is heard, from scores of run after run: nodes behind a net."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Attr, Node, State, Tensor
from pybuild.ops.decide import KINDS, MOST_RUNS, NONE
from pybuild.records import dataclass


@dataclass(frozen=True)
class Nodes:
    """The nodes that a decision adds to a graph."""

    nodes: tuple[Node, ...]
    tensors: tuple[Tensor, ...]
    state: dict[str, State]


@dataclass(frozen=True)
class Decision:
    """From scores to words: outputs `heard` and `active`, int32[1], a class or -1.

    smooth      scores are averaged over so many runs
    threshold   of an averaged score, as a real number: from there on the best class is
                active
    release     it stays active while its score is as much; None: the threshold
    refractory  runs after a word was heard in which no other is
    ignore      classes that are not words (silence, unknown)
    """

    smooth: int = 4
    threshold: float = 0.6
    release: float | None = None
    refractory: int = 0
    ignore: tuple[int, ...] = ()

    def wrong(self, classes: int) -> list[str]:
        """The problems of the arguments."""
        low = self.threshold if self.release is None else self.release
        found = []
        if not 1 <= self.smooth <= MOST_RUNS:
            found.append(f"smooth is {self.smooth} runs, not 1 to {MOST_RUNS}")
        if not math.isfinite(self.threshold) or not low <= self.threshold:
            found.append(f"release is {low}, threshold {self.threshold}")
        if not 0 <= self.refractory < 1 << 20:
            found.append(f"refractory is {self.refractory} runs")
        others = [n for n in self.ignore if not 0 <= n < classes]
        if others:
            found.append(f"ignores class {others[0]}, there are {classes}")
        return found

    def nodes(
        self, scores: Tensor, where: str, fresh: Callable[[str], str]
    ) -> tuple[Nodes, tuple[str, str]]:
        """The nodes that read scores, and the names of `heard` and `active`.

        Errors  BuildError for numbers that make no sense, all of them at once
        """
        if scores.dtype not in KINDS:
            what = f"scores '{scores.name}' are {scores.dtype.value}"
            raise BuildError(where, what, "int8, int16 or float32")
        if wrong := self.wrong(scores.size):
            raise BuildError(f"{where}: decision", "; ".join(wrong))
        nodes: list[Node] = []
        tensors: dict[str, Tensor] = {}
        state: dict[str, State] = {}

        def add(name: str, like: Tensor) -> str:
            made = fresh(name)
            tensors[made] = Tensor(made, like.shape, like.dtype, like.quant)
            return made

        def op(op: str, reads: list[str], makes: list[str], **attrs: Attr) -> None:
            nodes.append(Node(op, makes[0], tuple(reads), tuple(makes), attrs))

        source, one = scores.name, Tensor("", (1,), DType.INT32)
        if self.smooth > 1:
            zero = scores.quant.zero_point[0] if scores.quant else 0
            shape = (self.smooth - 1, *scores.shape)
            past = Tensor("", shape, scores.dtype, scores.quant)
            before, source = add("scores before", past), add("smooth", scores)
            after = add("scores kept", past)
            op("moving_average", [scores.name, before], [source, after])
            initial = np.full(shape, zero, scores.dtype.numpy)
            state[before] = State(after, initial)
        none = np.array([NONE], np.int32)
        low = self.threshold if self.release is None else self.release
        held, active = add("held", one), add("active", one)
        op(
            "hysteresis", [source, held], [active],
            high=float(self.threshold), low=float(low), ignore=tuple(self.ignore),
        )  # fmt: skip
        state[held] = State(active, none)
        pair = Tensor("", (2,), DType.INT32)
        waits, heard = add("waits", pair), add("heard", one)
        after = add("waits after", pair)
        op("refractory", [active, waits], [heard, after], runs=self.refractory)
        state[waits] = State(after, np.array([NONE, 0], np.int32))
        return Nodes(tuple(nodes), tuple(tensors.values()), state), (heard, active)

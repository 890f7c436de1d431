"""The classes that a model predicts: how often they are right, and which it
confuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.records import dataclass

REFERENCE = "reference"


@dataclass(frozen=True)
class Classes:
    """Classes of samples: the index of the greatest value of the first output.

    count   classes that there are
    labels  the class of each sample; None: not known
    said    by each back end and, where it gives that output, the reference
    """

    count: int
    labels: tuple[int, ...] | None
    said: Mapping[str, tuple[int, ...]]

    def right(self, who: str) -> int:
        """The number of samples whose class equals the label."""
        pairs = zip(self.labels or (), self.said[who], strict=True)
        return sum(label == class_ for label, class_ in pairs)

    def changed(self, who: str) -> int:
        """Samples of which the reference says something else."""
        pairs = zip(self.said[REFERENCE], self.said[who], strict=True)
        return sum(ours != theirs for ours, theirs in pairs)

    def confusion(self, who: str) -> list[list[int]]:
        """The confusion matrix: samples by their label (row) and by the class they got
        (column)."""
        table = np.zeros((self.count, self.count), np.int64)
        for label, class_ in zip(self.labels or (), self.said[who], strict=True):
            table[label, class_] += 1
        return [[int(cell) for cell in row] for row in table]

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"count": self.count}
        if REFERENCE in self.said:
            others = (who for who in self.said if who != REFERENCE)
            plain["changed"] = {who: self.changed(who) for who in others}
        if self.labels is not None:
            samples = len(self.labels)
            plain["samples"] = samples
            plain["right"] = {who: self.right(who) for who in self.said}
            plain["accuracy"] = {who: self.right(who) / samples for who in self.said}
            plain["confusion"] = {who: self.confusion(who) for who in self.said}
        return plain


def classes_of(
    name: str,
    outputs: Mapping[str, Sequence[Mapping[str, Array]]],
    labels: Array | None,
) -> Classes | None:
    """The classes that each back end predicts, sample by sample; None if the output is
    a single value.

    name  of the output that tells the class
    """
    said: dict[str, tuple[int, ...]] = {}
    count = 0
    for who, found in outputs.items():
        values = [one[name].reshape(-1) for one in found if name in one]
        if not found or len(values) < len(found):
            continue
        said[who] = tuple(int(value.argmax()) for value in values)
        count = max(count, values[0].size)
    if count < 2:
        return None
    known = None if labels is None else tuple(int(label) for label in labels)
    return Classes(count, known, said)

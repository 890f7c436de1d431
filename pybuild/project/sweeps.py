"""[sweeps.NAME] of a project file: options with many values, all combinations built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from pybuild.options.kinds import FLAG
from pybuild.options.many import DataOptions
from pybuild.options.option import Option, of_words
from pybuild.options.table import (
    BoardOptions,
    BuildOptions,
    LoadOptions,
    QuantiseOptions,
)
from pybuild.records import dataclass

# what may take one value after another
AXES = (LoadOptions, BuildOptions, QuantiseOptions, DataOptions, BoardOptions)


@dataclass(frozen=True)
class Value:
    """A value in the file, and its place."""

    raw: Any
    where: str


@dataclass(frozen=True)
class Sweep:
    """Builds of models, by their names, with every combination of values.

    axes  words, and their values in the order of the file; a raw None: as if the
          option were not there
    """

    name: str
    where: str
    models: tuple[str, ...]
    axes: Mapping[str, tuple[Value, ...]]

    def combinations(self) -> Iterator[dict[str, Value]]:
        """The last axis changes first."""
        for values in product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))


def axis_options() -> dict[str, Option]:
    return {one.word: one for one in of_words(*AXES)}


def axis_values(one: Option, given: Any) -> Sequence[Any]:
    """A list is the values, anything else the only one; false: without the option."""
    values = given if isinstance(given, list | tuple) else [given]
    return [None if each is False and one.kind is not FLAG else each for each in values]

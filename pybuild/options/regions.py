"""Regions of memory as users ask for them: dtcm=16K:fast, sram=96K, psram=4M:slow.

Knows no blocks and no addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pybuild.errors import BuildError, Problem
from pybuild.records import dataclass
from pybuild.text.c_words import WORDS

OPTION = "--region"
SPEEDS = ("fast", "plain", "slow")  # the fastest first
_FORM = re.compile(r"([^=]*)=(\d+)([kKmM]?)(?:i?[bB])?(?::(.*))?")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
# what NAME_..._BYTES or struct NAME_memory have a use for already
_OURS = ("params", "unpacked")
_HINT = "NAME=SIZE, then :fast or :slow, +weights, +device1: dtcm=16K:fast+weights"


@dataclass(frozen=True)
class RegionSpec:
    """A piece of memory of its own.

    name     of its macro and of its member in struct NAME_memory
    bytes    of it that the model may have
    speed    one of SPEEDS: what moves most bytes gets the fastest
    weights  constants that are read again and again are copied there
    device   whose it is
    """

    name: str
    bytes: int
    speed: str = "plain"
    weights: bool = False
    device: int = 0

    @property
    def rank(self) -> int:
        return SPEEDS.index(self.speed)

    @property
    def text(self) -> str:
        """The region as on the command line."""
        words = [self.speed] if self.speed != "plain" else []
        words += ["weights"] * self.weights
        words += [f"device{self.device}"] * (self.device > 0)
        return f"{self.name}={self.bytes}" + (f":{'+'.join(words)}" if words else "")


def read_regions(given: Iterable[str | RegionSpec]) -> tuple[RegionSpec, ...]:
    """Regions in the user's order.

    Errors  BuildError with everything that is wrong
    """
    specs: list[RegionSpec] = []
    problems: list[Problem] = []
    for one in given:
        try:
            specs.append(one if isinstance(one, RegionSpec) else read_region(one))
        except BuildError as error:
            problems += error.problems
    for index, spec in enumerate(specs):
        if spec.name in [other.name for other in specs[:index]]:
            problems.append(Problem(OPTION, f"'{spec.name}' is given twice"))
    if problems:
        raise BuildError.of(problems)
    return tuple(specs)


def read_region(text: str) -> RegionSpec:
    """The region in a text such as dtcm=16K:fast.

    Errors  BuildError that shows the form
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise BuildError(OPTION, f"'{text}' is not a region", _HINT)
    name, number, unit, words = found.groups()
    taken = name in WORDS or name in _OURS or name.startswith("device_")
    if taken or not _NAME.fullmatch(name):
        what = f"'{name}' cannot be the name of a region"
        raise BuildError(
            OPTION, what, "lower-case letters, digits and _; not a word of C"
        )
    size = int(number) * {"": 1, "k": 1024, "m": 1024**2}[unit.lower()]
    speed, weights, device = "plain", False, 0
    for word in words.split("+") if words else ():
        if word in SPEEDS:
            speed = word
        elif word == "weights":
            weights = True
        elif re.fullmatch(r"device\d{1,3}", word):
            device = int(word[6:])
        else:
            raise BuildError(OPTION, f"'{word}' is not a property of a region", _HINT)
    return RegionSpec(name, size, speed, weights, device)

"""The errors that a user can cause, each with a place, a reason and a hint.

Knows nothing of graphs or files: a place is just text. Names that a converter has fused
of several are told short, for a message is read; `problems` have them whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

from pybuild.records import dataclass
from pybuild.text.escaped import escaped, escaped_lines
from pybuild.text.short_names import brief

_FUSED = re.compile(r"'([^'\s]*;[^'\s]*)'")


class Lines(str):
    """The output of a compiler, which stays several lines in a message."""


@dataclass(frozen=True)
class Problem:
    """One finding: `where: what. Hint: hint`, in one line whatever names are in it."""

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        text = f"{text}. Hint: {self.hint}" if self.hint else text
        text = _FUSED.sub(lambda name: f"'{brief(name[1])}'", text)
        return escaped_lines(text) if isinstance(self.what, Lines) else escaped(text)


# exit codes of the command line
INVALID, LIMIT, USAGE = 2, 3, 64
# so many names are listed whole
_FEW = 16
_LONGEST = 256  # characters of a name that others are compared with


class BuildError(Exception):
    """A model, option or file that cannot be built; lists every problem found.

    rest    of a front end: the Graph of what it found sound, for others to examine
    """

    rest: object | None = None

    def __init__(self, where: str, what: str, hint: str = "") -> None:
        self.problems: tuple[Problem, ...] = (Problem(where, what, hint),)
        super().__init__(str(self.problems[0]))

    @property
    def exit_code(self) -> int:
        """INVALID; USAGE where only options are wrong."""
        options = all(problem.where.startswith("--") for problem in self.problems)
        return USAGE if options else INVALID

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """All of `problems` (at least one) in one exception."""
        found = tuple(problems)
        error = cls(found[0].where, found[0].what, found[0].hint)
        error.problems = found
        error.args = ("\n".join(str(p) for p in found),)
        return error

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles every finding, so that errors can come from another process; not
        `rest`."""
        fields = {k: v for k, v in self.__dict__.items() if k != "rest"}
        return _again, (type(self), self.problems, fields)

    def with_more(self, more: Iterable[Problem]) -> Self:
        """The error with further findings, each once."""
        self.problems = tuple(dict.fromkeys((*self.problems, *more)))
        self.args = ("\n".join(str(p) for p in self.problems),)
        return self


def _again(
    kind: type[BuildError], problems: tuple[Problem, ...], fields: dict[str, object]
) -> BuildError:
    made = kind.of(problems)
    made.__dict__.update(fields)
    return made


class ValuesNeeded(BuildError):
    """A model whose shapes depend on values of inputs: `names` of them are missing."""

    names: tuple[str, ...] = ()


class UsageError(BuildError):
    """An error in what the user wrote, though no option is named."""

    @property
    def exit_code(self) -> int:
        return USAGE


class LimitError(BuildError):
    """A limit that the user gave (RAM, flash) is exceeded.

    least   of a limit of the arena: the fewest bytes that keep to it
    """

    least: int | None = None

    @property
    def exit_code(self) -> int:
        return LIMIT


class BuildWarning(UserWarning):
    """A warning: something was done as asked, but may not be what was meant. The
    command line prints it on stderr.
    """


def all_known(names: Iterable[str], known: Iterable[str], option: str) -> None:
    """Checks that all names are known.

    Errors  BuildError with every name that is not there
    """
    there = tuple(known)
    found = [
        Problem(option, f"there is no '{name}'", fitting(name, there))
        for name in names
        if name not in there
    ]
    if found:
        raise BuildError.of(found)


def fitting(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the closest known name, and all known ones.

    did you mean 'image'? one of image, scores
    """
    there = tuple(known)
    close = close_to(name, there)
    meant = f"did you mean '{close}'?" if close else ""
    if len(there) > _FEW and meant:
        return meant
    listed = one_of(there[:_FEW])
    if len(there) > _FEW:
        listed += f", ... ({len(there)} in all)"
    return " ".join(filter(None, (meant, listed if there else "there is none")))


def close_to(name: str, known: Iterable[str]) -> str:
    """The known name that looks most like it; "" if none does."""
    from difflib import get_close_matches

    if len(name) > _LONGEST:
        return ""
    lower = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), lower, 1, 0.6)
    return lower[found[0]] if found else ""


def one_of(known: tuple[str, ...]) -> str:
    return f"one of {', '.join(known)}"

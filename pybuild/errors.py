"""What can go wrong for a user, each with a place, a reason and a hint.

Knows nothing of graphs or files: a place is just text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Problem:
    """One finding: `where: what. Hint: hint`."""

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}. Hint: {self.hint}" if self.hint else text


class BuildError(Exception):
    """A model, option or file that cannot be built; holds every finding.

    rest    of a front end: the Graph of what it found sound, for others to examine
    Errors  exit code 2 on the command line
    """

    exit_code = 2
    rest: object | None = None

    def __init__(self, where: str, what: str, hint: str = "") -> None:
        self.problems: tuple[Problem, ...] = (Problem(where, what, hint),)
        super().__init__(str(self.problems[0]))

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """All of `problems` (at least one) in one exception."""
        found = tuple(problems)
        error = cls(found[0].where, found[0].what, found[0].hint)
        error.problems = found
        error.args = ("\n".join(str(p) for p in found),)
        return error

    def with_more(self, more: Iterable[Problem]) -> Self:
        """With what was found elsewhere, each once."""
        self.problems = tuple(dict.fromkeys((*self.problems, *more)))
        self.args = ("\n".join(str(p) for p in self.problems),)
        return self


class ValuesNeeded(BuildError):
    """A model whose shapes depend on values of inputs: `names` of them are missing."""

    names: tuple[str, ...] = ()


class LimitError(BuildError):
    """A limit the user gave (RAM, flash) is exceeded; exit code 3."""

    exit_code = 3


class BuildWarning(UserWarning):
    """What is done as asked and may not be what was meant. The command line prints it
    on stderr.
    """


def require(value: str, known: tuple[str, ...], option: str) -> None:
    """Errors  BuildError for a word that the option has not"""
    if value not in known:
        raise BuildError(option, f"'{value}' is not known", one_of(known))


def all_known(names: Iterable[str], known: Iterable[str], option: str) -> None:
    """Errors  BuildError with every name that is not there"""
    there = list(known)
    found = [
        Problem(option, f"there is no '{name}'", one_of(tuple(there)))
        for name in names
        if name not in there
    ]
    if found:
        raise BuildError.of(found)


def one_of(known: tuple[str, ...]) -> str:
    return f"one of {', '.join(known)}"

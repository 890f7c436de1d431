"""Options of the table on the command line: their words, and their values."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from pybuild.errors import BuildError
from pybuild.options.kinds import FLAG
from pybuild.options.option import Option, options_in


def add_options(verb: argparse.ArgumentParser, options: Iterable[Option]) -> None:
    """Adds the options to the parser by group, in the table's order; values stay
    text."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for one in options:
        if one.group not in groups:
            groups[one.group] = verb.add_argument_group(one.group)
        facts: Mapping[str, Any] = {"metavar": _metavar(one)}
        if one.kind is FLAG:
            facts = {"action": "store_true"}
        elif one.kind.many:
            facts = {**facts, "action": "append"}
        elif one.alone:
            facts = {**facts, "nargs": "?", "const": ""}
        flags = [f"-{one.short}"] if one.short else []
        groups[one.group].add_argument(
            *flags, f"--{one.word}", default=argparse.SUPPRESS,
            help=one.help.replace("%", "%%"), **facts,
        )  # fmt: skip


def _metavar(one: Option) -> str:
    known = one.kind.known()
    return f"{{{','.join(known)}}}" if "|" in one.kind.metavar else one.kind.metavar


def values(args: argparse.Namespace, options: Iterable[Option]) -> argparse.Namespace:
    """The arguments with the values of all options.

    given  of those that the user gave, by word: what Python would take
    wrong  all that is wrong with them; they have their default
    """
    made = argparse.Namespace(**vars(args), given={}, wrong=[])
    for one in options:
        name = _attribute(one)
        raw = one.of_word(getattr(args, name, None))
        if raw is not None:
            made.given[one.word] = raw
        try:
            setattr(made, name, one.read(raw))
        except BuildError as error:
            setattr(made, name, one.default)
            made.wrong += error.problems
    return made


def chosen(kind: type[Any], args: argparse.Namespace) -> dict[str, Any]:
    """The options of one class that the user gave, as keywords: not read yet."""
    known = {x.word: x.keyword for x in options_in(kind)}
    return {known[word]: raw for word, raw in args.given.items() if word in known}


def _attribute(one: Option) -> str:
    return one.word.replace("-", "_")

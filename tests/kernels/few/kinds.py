"""Few kernels of many that differ, by their names, in all that those differ in."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import TypeAlias

from pybuild.ir.loop import Func
from pybuild.ir.loop_verify import intrins

Kind: TypeAlias = tuple[str, ...]


def few_of_each_kind(funcs: Iterable[Func]) -> set[Func]:
    """Each part of a kernel's name, each two words that are in one name and each
    instruction that crt spells is in one of them."""
    kinds = {func: _kinds(func) for func in funcs}
    left = set().union(*kinds.values())
    taken: set[Func] = set()
    while left:
        best = max(kinds, key=lambda func: len(kinds[func] & left))
        taken.add(best)
        left -= kinds[best]
    return taken


def _kinds(func: Func) -> set[Kind]:
    calls = {(one.name,) for one in intrins(func) if one.c is not None}
    return {*kinds_of_name(func.name), *calls}


def kinds_of_name(name: str) -> set[Kind]:
    """Its parts, and each two of its words."""
    words = sorted({*re.findall("[a-z]+", name)})
    parts = {(part,) for part in name.split("_")}
    return {*itertools.combinations(words, 2), *parts}

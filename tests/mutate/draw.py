"""Draws mutations by seed: of each room in turn, by an operator and then a place.

`drawn(20, 3)` are always the same twenty while the source stays as it is.
"""

from __future__ import annotations

import functools
import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.mutate import c_ops, handmade, loop_ops, python_ops
from tests.mutate.mutation import ROOT, Mutation

LOOP, HAND = "loop IR", "by hand"
TRIES = 200  # of a room, until it is given up
OPERATORS = (
    *python_ops.OPERATORS,
    *(name for name in c_ops.OPERATORS if name not in python_ops.OPERATORS),
    *(f"loop {name}" for name in loop_ops.OPERATORS),
)


@functools.cache
def rooms() -> dict[str, tuple[Path, ...]]:
    """The source: folders of pybuild, crt/src and crt/include, kernels as loop IR."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((ROOT / "pybuild").rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        found["/".join(parts[:2]) if len(parts) > 2 else parts[0]].append(path)
        if "Builder(" in path.read_text(encoding="utf-8") and parts[1] == "kernels":
            found[LOOP].append(path)
    for path in sorted((ROOT / "crt").rglob("*.[ch]")):
        found["/".join(path.relative_to(ROOT).parts[:2])].append(path)
    return {room: tuple(paths) for room, paths in found.items()}


@functools.cache
def of_file(path: Path, loop: bool = False) -> tuple[Mutation, ...]:
    """All that operators draw from a file."""
    source = path.read_text(encoding="utf-8")
    file = path.relative_to(ROOT).as_posix()
    if loop:
        return tuple(loop_ops.mutations(file, source))
    language = python_ops if path.suffix == ".py" else c_ops
    return tuple(language.mutations(file, source))


def drawn(number: int, seed: int, by_hand: bool = True) -> list[Mutation]:
    """So many: one of each room in turn, and one by hand in each turn."""
    chance = random.Random(seed)
    sources = [_of_room(room, chance) for room in rooms()]
    if by_hand:
        sources.append(_by_hand(chance))
    chance.shuffle(sources)
    return list(islice(_in_turn(sources), number))


def drawn_of(paths: list[Path], number: int, seed: int) -> list[Mutation]:
    """So many of these files."""
    chance = random.Random(seed)
    return list(islice(_of_files(tuple(paths), False, chance), number))


def drawn_of_loops(number: int, seed: int) -> list[Mutation]:
    """So many of loop IR."""
    return list(islice(_of_files(rooms()[LOOP], True, random.Random(seed)), number))


def every(operator: str) -> list[Mutation]:
    """All that an operator draws, such as each error return of crt/src once."""
    loop = operator.startswith("loop ")
    wanted = [LOOP] if loop else [room for room in rooms() if room != LOOP]
    files = [path for room in wanted for path in rooms()[room]]
    if operator == c_ops.error_return.__name__:
        files = [path for path in rooms()["crt/src"]]
    found = (m for path in files for m in of_file(path, loop))
    return [m for m in found if m.operator == operator and is_valid(m)]


def is_valid(mutation: Mutation) -> bool:
    """Whether a compiler takes it; of Python and loop IR it does."""
    return mutation.file.endswith(".py") or c_ops.compiles(mutation)


def _in_turn(sources: list[Iterator[Mutation]]) -> Iterator[Mutation]:
    while sources:
        for source in tuple(sources):
            found = next(source, None)
            if found is None:
                sources.remove(source)
            else:
                yield found


def _by_hand(chance: random.Random) -> Iterator[Mutation]:
    entries = handmade.entries()
    for entry in chance.sample(entries, len(entries)):
        yield handmade.place(entry)


def _of_room(room: str, chance: random.Random) -> Iterator[Mutation]:
    # a room draws for itself: how many others draw changes nothing
    own = random.Random(f"{room} {chance.random()}")
    return _of_files(rooms()[room], room == LOOP, own)


def _of_files(
    files: tuple[Path, ...], loop: bool, chance: random.Random
) -> Iterator[Mutation]:
    """Without end but for rooms that have none: no mutation twice."""
    weights = [path.stat().st_size for path in files]
    seen = set()
    for _ in range(TRIES):
        (path,) = chance.choices(files, weights)
        found = of_file(path, loop)
        if not found:
            continue
        operator = chance.choice(sorted({m.operator for m in found}))
        one = chance.choice([m for m in found if m.operator == operator])
        if one.key not in seen and is_valid(one):
            seen.add(one.key)
            yield one

"""Mutations that no test notices, and why: tests/mutations/survivors.toml.

A reason begins with `equal`: the program does the same, or with `owed`: a test is. They
are known by file, function, operator and node, wherever the lines have moved to.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass

from tests.mutate.handmade import FOLDER, SURVIVORS
from tests.mutate.mutation import Key, Mutation

FILE = FOLDER / f"{SURVIVORS}.toml"
REASONS = ("equal: ", "owed: ")


@dataclass(frozen=True)
class Survivor:
    """The fields of a Mutation's key, and why it survives."""

    file: str
    function: str
    operator: str
    node: str
    put: str
    reason: str
    nth: int = 0

    @property
    def key(self) -> Key:
        return (
            self.file, self.function, self.operator, self.node, self.put, self.nth
        )  # fmt: skip


@functools.cache
def survivors() -> dict[Key, Survivor]:
    told = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {one.key: one for one in (Survivor(**e) for e in told["survivor"])}


def reason(mutation: Mutation) -> str:
    """Why it is known to survive; "" if it is not."""
    known = survivors().get(mutation.key)
    return known.reason if known else ""


def entry(mutation: Mutation) -> str:
    """The lines of one that is new, for the file: its reason is a person's to give."""
    lines = ["[[survivor]]"]
    for name in ("file", "function", "operator", "node", "put"):
        value = getattr(mutation, name).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'{name} = "{value}"'.replace("\n", "\\n"))
    if mutation.nth:
        lines.append(f"nth = {mutation.nth}")
    return "\n".join([*lines, 'reason = ""', ""])

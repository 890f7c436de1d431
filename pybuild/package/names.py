"""NAME.names.json: what the numbers of a model without names stand for, both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pybuild.emit.tables.tables import Tables
from pybuild.errors import BuildError
from pybuild.files.parse import parse_json
from pybuild.files.read import REPORT, read_bytes
from pybuild.records import dataclass

ROLES = ("inputs", "outputs", "parameters", "steps")


def names_file(tables: Tables) -> dict[str, str]:
    """File name -> text: for each role the names, in the order of their numbers."""
    rows = {
        "inputs": [row.tensor.name for row in tables.inputs],
        "outputs": [row.tensor.name for row in tables.outputs],
        "parameters": [row.tensor.name for row in tables.parameters],
        "steps": [f"{s.comment}, layer '{s.layer}'" for s in tables.steps],
    }
    text = json.dumps({"model": tables.name, **rows}, indent=2, ensure_ascii=False)
    return {f"{tables.name}.names.json": text + "\n"}


@dataclass(frozen=True)
class NameMap:
    """Numbers to names and back.

    Errors  KeyError for what is not there
    """

    model: str
    names: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, path: Path) -> NameMap:
        """Reads a NAME.names.json.

        Errors  BuildError for another kind of file
        """
        try:
            found = parse_json(read_bytes(path, REPORT))
            names = {role: tuple(map(str, found[role])) for role in ROLES}
            return cls(str(found["model"]), names)
        except (ValueError, KeyError, TypeError):
            what = "is not a map of names"
            raise BuildError(str(path), what, "`--names ids` writes it") from None

    def name(self, role: str, number: int) -> str:
        if not 0 <= number < len(self.names[role]):
            raise KeyError(f"{role} {number}: there are {len(self.names[role])}")
        return self.names[role][number]

    def number(self, role: str, name: str) -> int:
        if name not in self.names[role]:
            known = ", ".join(repr(n) for n in self.names[role])
            raise KeyError(f"{role} '{name}' is not known; there is {known}")
        return self.names[role].index(name)

"""Packages and archives on the disk: all that is asked for, or nothing."""

from __future__ import annotations

import json
from pathlib import Path

from pybuild.ecosystems.about import RUNTIME
from pybuild.ecosystems.packages import Files, Made, packages
from pybuild.errors import BuildError, Problem
from pybuild.files.parse import parse_json
from pybuild.files.read import REPORT as MOST_REPORT
from pybuild.files.read import read_bytes
from pybuild.options.packages import MLF, PackageOptions
from pybuild.package.folder import (
    REPORT,
    refusals,
    write_beside,
    write_file,
    write_tree,
)
from pybuild.records import dataclass


@dataclass(frozen=True)
class Ready:
    """The packages that are ready to be written to a folder.

    trees  of packages: name -> files; single: archives by file name
    """

    out: Path
    trees: dict[str, Files]
    single: Files
    force: bool

    @property
    def paths(self) -> list[Path]:
        return [self.out / name for name in (*self.trees, *self.single)]

    def problems(self) -> list[Problem]:
        """Why write() would not write them."""
        found = []
        for name, files in self.trees.items():
            if name == RUNTIME:
                found += _of_runtime(self.out / name, files, self.force)
            found += refusals(self.out / name, files, name, self.force)
        return found

    def write(self) -> None:
        """Writes the packages, all or none.

        Errors  BuildError; then no package is there in part
        """
        found = self.problems()
        if found:
            raise BuildError.of(found)
        for name, files in self.trees.items():
            if name != RUNTIME or not _newer(self.out / name, files):
                write_tree(self.out / name, files, name, self.force)
        if self.force:
            for name, content in self.single.items():
                write_file(self.out / name, content)
        elif self.single:
            write_beside(self.out, self.single)


def prepared(
    out: Path, made: Made, asked: PackageOptions, force: bool = False
) -> Ready:
    """The model's package and the runtime's, or their archives.

    Errors  BuildError with everything that is wrong with what is asked for
    """
    single: Files = {f"{made.name}.tar": made.mlf()} if MLF in asked.package else {}
    if asked.package == (MLF,):
        return Ready(out, {}, single, force)
    found = packages(made, asked)
    if not asked.archive:
        trees = {name: files for name, (_, files) in found.items()}
        return Ready(out, trees, single, force)
    from pybuild.ecosystems.archive import archives

    ecosystems = [name for name in asked.package if name != MLF]
    for about, files in found.values():
        single |= archives(about, files, ecosystems)
    return Ready(out, {}, single, force)


def _of_runtime(folder: Path, files: Files, force: bool) -> list[Problem]:
    """Packages of several builds share one crt, if it is of one ABI."""
    there, ours = _facts(folder), json.loads(str(files[REPORT]))
    if force or there is None or there["abi"] == ours["abi"]:
        return []
    what = f"is crt {there['version']} of CRT_ABI {there['abi']}, and this build's is "
    what += f"{ours['abi']}; packages beside it want the one that is there"
    return [Problem(str(folder), what, "build all of them anew with --force")]


def _newer(folder: Path, files: Files) -> bool:
    """True if the crt that is there is newer than ours, so that it stays."""
    there, ours = _facts(folder), json.loads(str(files[REPORT]))
    return (
        there is not None
        and there["abi"] == ours["abi"]
        and _numbers(there["version"]) > _numbers(ours["version"])
    )


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _facts(folder: Path) -> dict[str, str] | None:
    try:
        facts: dict[str, str] = parse_json(read_bytes(folder / REPORT, MOST_REPORT))
        _ = facts["abi"], _numbers(facts["version"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return facts

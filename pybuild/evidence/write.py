"""The folder that an auditor files: gathered in memory, then written as a whole.

The same build, tools and samples give the same bytes, wherever the folder is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.check_build import check
from pybuild.errors import BuildError, Problem
from pybuild.evidence.bounds import layer_facts, machine_facts
from pybuild.evidence.limits import limits
from pybuild.evidence.page import page
from pybuild.evidence.tool import bill, tool_facts
from pybuild.files import read as files_read
from pybuild.library import Library
from pybuild.package.folder import digest_of, listed_in, telling
from pybuild.progress import Progress, silent
from pybuild.records import dataclass

if TYPE_CHECKING:
    from pybuild.entry import Data
    from pybuild.verify.own_samples import Labels

PAGE, LIST = "evidence.md", "evidence.sha256"
SAMPLES = 20
_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Evidence:
    """ok: no value differed from the reference; files: name -> bytes"""

    ok: bool
    files: Mapping[str, bytes]


def write_evidence(
    library: Library,
    folder: str | os.PathLike[str],
    data: Data | None = None,
    labels: Labels | None = None,
    progress: Progress = silent,
) -> bool:
    """Writes what an auditor files of a build: docs/evidence.md; whether the outputs
    were equal to the reference's.

    data, labels  samples to compare, as pybuild.check takes them; None: 20 seeded ones
    Errors        BuildError; then nothing of the folder is written or changed
    """
    made = evidence(library, data, labels, progress)
    write(Path(folder), made)
    return made.ok


def evidence(
    library: Library,
    data: Data | None = None,
    labels: Labels | None = None,
    progress: Progress = silent,
) -> Evidence:
    """All files of the evidence, in memory."""
    compared = check(library, data, labels, samples=SAMPLES, progress=progress)
    comparison = {
        **compared.to_json(),
        "own_samples": data is not None,
        "data": _of_data(data),
        "labels": _of_data(labels),
    }
    tree = {path: digest_of(content) for path, content in library.files().items()}
    tool, layers = tool_facts(), layer_facts(library)
    machine, report = machine_facts(library), library.report.to_json()
    required, quality = _shipped("requirements"), _shipped("quality")
    promised = [one for one in required if one["kind"] == "promise"]
    untested = sum(not one["tests"] for one in promised)
    known = list(limits(library, layers, machine, comparison, untested))
    values = {
        "tool": tool,
        "sbom.cdx": bill(library, tree),
        "report": report,
        "bounds": {"layers": layers, "machine": machine},
        "comparison": comparison,
        "requirements": required,
        "quality": quality,
        "limits": known,
    }
    files = {f"{name}.json": _json(value) for name, value in values.items()}
    files["tree.sha256"] = _sums(tree)
    files[PAGE] = page(
        library.name, tool, report, layers, machine, comparison, required, known
    ).encode()
    files[LIST] = _sums({name: digest_of(data) for name, data in files.items()})
    return Evidence(compared.ok, files)


def refusals(folder: Path) -> list[Problem]:
    """Why `write` would not, [] if it would."""
    nearest = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not nearest.is_dir():
        return [Problem(str(nearest), "is a file", "give a folder")]
    if not folder.exists():
        return []
    there = {path.name for path in folder.iterdir()}
    if there and not (LIST in there and there <= _listed(folder)):
        what = "holds other files than evidence that was written before"
        return [Problem(str(folder), what, "another folder")]
    return []


def write(folder: Path, made: Evidence) -> None:
    """All of it, or nothing; in the place of what an earlier one has written.

    Errors  BuildError
    """
    found = refusals(folder)
    if found:
        raise BuildError.of(found)
    folder = folder.absolute()
    with telling(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".crt-"))
        try:
            fresh = place / "new"
            fresh.mkdir()
            for name, content in made.files.items():
                (fresh / name).write_bytes(content)
            if folder.exists():
                os.rename(folder, place / "old")
            os.rename(fresh, folder)
        finally:
            if (place / "old").exists() and not folder.exists():
                os.rename(place / "old", folder)
            shutil.rmtree(place, ignore_errors=True)


def _listed(folder: Path) -> set[str]:
    """Nothing of a list that is none."""
    return {LIST, *listed_in(folder / LIST)}


def _shipped(name: str) -> Any:
    """A file of facts that the project ships with this version."""
    return json.loads((_HERE / f"{name}.json").read_text(encoding="utf-8"))


def _of_data(data: Any) -> dict[str, str] | None:
    """The files that samples are from, each with its SHA-256; arrays have none."""
    if not isinstance(data, str | os.PathLike):
        return None
    path = Path(data)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {
        one.relative_to(path.parent).as_posix(): hashlib.sha256(
            files_read.read_bytes(one, files_read.SAMPLES)
        ).hexdigest()
        for one in files
        if one.is_file()
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _sums(digests: Mapping[str, str]) -> bytes:
    """The digests in the form of sha256sum."""
    lines = (f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return "".join(lines).encode()

"""A tree made again from what its report.json says of itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pybuild
from pybuild.emit.text import Content
from pybuild.errors import BuildError, Problem, UsageError
from pybuild.image import Image
from pybuild.library import Library
from pybuild.model import Model
from pybuild.options.recipe import source_of
from pybuild.package.folder import EXAMPLE, LIST, REPORT, digest_of

Find = Callable[[Mapping[str, str]], Path]


@dataclass(frozen=True)
class Comparison:
    """Files of a tree whose bytes are others when it is made again.

    by_hand  of these, the ones that somebody has changed
    """

    made: Library | Image
    files: Mapping[str, Content]
    before: str
    changed: tuple[str, ...]
    by_hand: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        now = pybuild.__version__
        return {
            "name": self.made.name, "equal": not self.changed, "pybuild": now,
            "made_by": self.before, "changed": [*self.changed],
            "by_hand": [*self.by_hand],
        }  # fmt: skip


def made_again(folder: Path, files: Sequence[Path]) -> Comparison:
    """Makes the tree of a folder in memory.

    files   models and samples that lie elsewhere than in the current folder, in the
            tree, or beside it
    Errors  BuildError for a folder that is no tree; for every file that is not found,
            or is another one
    """
    facts = _facts(folder)
    search = _Search(folder, files)
    made = _image(facts, search) if "models" in facts else _library(facts, search)
    search.check()
    assert made is not None
    fresh = made.files()
    listed = _listed(folder)
    changed = []
    for name, content in sorted(fresh.items()):
        there, want = _digest(folder / name), digest_of(content)
        users = name == EXAMPLE and facts.get("example") == {"sha256": want}
        if there != want and not users:
            changed.append(name)
    changed += sorted(n for n in listed.keys() - fresh.keys() if (folder / n).exists())
    by_hand = [n for n in changed if n in listed and _digest(folder / n) != listed[n]]
    before = str(facts["made"]["pybuild"])
    return Comparison(made, fresh, before, tuple(changed), tuple(by_hand))


class _Search:
    """Files by their name and SHA-256; what is not found is told at the end."""

    def __init__(self, folder: Path, files: Sequence[Path]) -> None:
        self.given = {path.name: path for path in files}
        self.places = (Path(), folder.parent, folder)
        self.problems: list[Problem] = []

    def find(self, source: Mapping[str, str] | None, what: str) -> Path | None:
        if source is None:
            why = f"{what} was handed over in memory, so nothing says what it was"
            self.problems.append(Problem(what, why, "build it again from Python"))
            return None
        name = source["file"]
        paths = [self.given.get(name), *(place / name for place in self.places)]
        for path in paths:
            if path is not None and path.exists():
                return path
        hint = f"--from DIR/{name}"
        self.problems.append(Problem(name, "is not here or beside the tree", hint))
        return None

    def must_be(self, path: Path, source: Mapping[str, str], digest: str) -> None:
        if digest != source["sha256"]:
            what = f"is another file than the tree was made of (sha256 {digest[:16]}, "
            what += f"not {source['sha256'][:16]})"
            hint = f"--from FILE names the right one; crt build makes a tree of {path}"
            self.problems.append(Problem(str(path), what, hint))

    def check(self) -> None:
        if self.problems:
            raise BuildError.of(self.problems)


def _facts(folder: Path) -> dict[str, Any]:
    where = folder / REPORT
    try:
        facts: dict[str, Any] = json.loads(where.read_text(encoding="utf-8"))
        _ = facts["name"], facts["made"]["pybuild"], facts["made"]["build"]
    except OSError:
        hint = "a folder that crt build has written"
        raise UsageError(str(folder), f"has no {REPORT}", hint) from None
    except (ValueError, KeyError, TypeError):
        what = "does not say how the tree was made"
        raise BuildError(str(where), what, "crt build makes one that does") from None
    return facts


def _library(facts: Mapping[str, Any], search: _Search) -> Library | None:
    made = facts["made"]
    model = _model(made, made["build"], search)
    if model is None or search.problems:
        return None
    return model.build(name=facts["name"], **made["build"])


def _image(facts: Mapping[str, Any], search: _Search) -> Image | None:
    made, models = facts["made"], {}
    for each in facts["models"]:
        model = _model(each["made"], made["build"], search)
        if model is not None:
            models[each["name"]] = model
    if search.problems:
        return None
    wires = {"exclusive": made["exclusive"], "connect": made["connect"]}
    options = {n: value for n, value in made["build"].items() if n != "alone"}
    return pybuild.build_image(models, name=facts["name"], **wires, **options)


def _model(
    made: Mapping[str, Any], build: Mapping[str, Any], search: _Search
) -> Model | None:
    path = search.find(made["model"], "the model")
    samples = _samples(made, search)
    if path is None or samples is None:
        return None
    options = dict(made["load"])
    state = options.pop("state")
    model = pybuild.load(path, **options)
    search.must_be(path, made["model"], model.digest)
    if search.problems:
        return None
    if "quantise" in made:
        chosen = {**made["quantise"], **samples, "rounding": build["rounding"]}
        model = pybuild.quantise(model, **chosen).model
    return model.with_state(state)


def _samples(made: Mapping[str, Any], search: _Search) -> dict[str, Path | None] | None:
    """The files of samples; None where one is missing."""
    if "quantise" not in made:
        return {}
    found: dict[str, Path | None] = {"data": None, "test": None}
    for role, what in (("data", "calibration data"), ("test", "test data")):
        if role == "data" or made["test"] is not None:
            path = search.find(made[role], what)
            if path is None:
                return None
            search.must_be(path, made[role], source_of(path).sha256)
            found[role] = path
    return found


def _listed(folder: Path) -> dict[str, str]:
    """Path -> SHA-256 of what the build has written."""
    try:
        lines = (folder / LIST).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    parts = (line.partition("  ") for line in lines)
    return {path: digest for digest, _, path in parts}


def _digest(path: Path) -> str:
    """ "": there is no such file"""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""

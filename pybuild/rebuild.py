"""Builds a tree again from its report.json."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pybuild
from pybuild.ecosystems.packages import packages
from pybuild.emit.content import Content
from pybuild.errors import BuildError, Problem, UsageError
from pybuild.files.parse import Unreadable, parse_json
from pybuild.files.read import REPORT as MOST_REPORT
from pybuild.files.read import read_bytes
from pybuild.image import Image
from pybuild.library import Library
from pybuild.model import Model
from pybuild.options.option import read_options
from pybuild.options.packages import PackageOptions
from pybuild.options.recipe import source_of
from pybuild.package.folder import (
    EXAMPLE,
    PAGE,
    REPORT,
    digest_at,
    digest_of,
    list_of,
)
from pybuild.package.recipe_shape import HINT, checked_recipe
from pybuild.project.read import find_project, read_project
from pybuild.records import dataclass

Find = Callable[[Mapping[str, str]], Path]


@dataclass(frozen=True)
class Comparison:
    """The files of a tree whose bytes differ when it is built again.

    by_hand  of these, the ones that somebody has changed
    missing  of these, the ones that are not there
    """

    made: Library | Image
    files: Mapping[str, Content]
    before: str
    changed: tuple[str, ...]
    by_hand: tuple[str, ...]
    missing: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        now = pybuild.__version__
        return {
            "name": self.made.name, "equal": not self.changed, "pybuild": now,
            "made_by": self.before, "changed": [*self.changed],
            "by_hand": [*self.by_hand], "missing": [*self.missing],
        }  # fmt: skip


def made_again(folder: Path, files: Sequence[Path]) -> Comparison:
    """Builds the tree of a folder again in memory.

    files   models and samples that lie elsewhere than in the current folder, where its
            crt.toml says, in the tree, or beside it; under any name
    Errors  BuildError for a folder that is not a tree; for every file that is missing
            or has other bytes; for one of `files` that the tree was not made of
    """
    facts = facts_of(folder)
    with tempfile.TemporaryDirectory(prefix="crt-") as place:
        search = _Search(folder, files, Path(place))
        made = _image(facts, search) if "models" in facts else _library(facts, search)
        search.check()
        assert made is not None
        fresh = _files(made, facts)
    listed = list_of(folder)
    if PAGE in listed:
        fresh[PAGE] = made.to_html()
    changed = []
    for name, content in sorted(fresh.items()):
        there, want = digest_at(folder / name), digest_of(content)
        users = name == EXAMPLE and facts.get("example") == {"sha256": want}
        if there != want and not users:
            changed.append(name)
    changed += sorted(n for n in listed.keys() - fresh.keys() if (folder / n).exists())
    missing = [n for n in changed if not digest_at(folder / n)]
    by_hand = [
        n for n in changed
        if n in listed and n not in missing and digest_at(folder / n) != listed[n]
    ]  # fmt: skip
    before = str(facts["provenance"]["pybuild"])
    return Comparison(
        made, fresh, before, tuple(changed), tuple(by_hand), tuple(missing)
    )


def _files(made: Library | Image, facts: Mapping[str, Any]) -> dict[str, Content]:
    """The files of a tree, or of a model's package if the folder is one."""
    if "package" not in facts:
        return made.files()
    asked = read_options(PackageOptions, facts["package"])
    return packages(made.for_packages(), asked)[made.name][1]


class _Search:
    """Finds files by their SHA-256 and name; missing ones are reported at the end.

    A tree says its files' names: in `own` are copies of the ones that have others.
    """

    def __init__(self, folder: Path, files: Sequence[Path], own: Path) -> None:
        self.own = own
        self.places = (Path(), folder.parent, folder)
        self.problems: list[Problem] = []
        self.given: dict[Path, str] = {}
        for path in files:
            if path.exists():
                self.given[path] = source_of(path).sha256
            else:
                self.problems.append(Problem(str(path), "there is no such file"))
        self.used: set[Path] = set()
        self.wanted: list[str] = []

    def find(self, source: Mapping[str, str] | None, what: str) -> Path | None:
        """The file with these bytes, or else one with this name."""
        if source is None:
            why = f"{what} was handed over in memory, so nothing says what it was"
            self.problems.append(Problem(what, why, "build it again from Python"))
            return None
        name, want = source["file"], source["sha256"]
        self.wanted.append(f"{name} ({want[:16]})")
        same = [path for path, digest in self.given.items() if digest == want]
        named = [path for path in self.given if path.name == name]
        self.used |= {*same, *named}
        if same:
            return self._called(name, same[0])
        if named:
            return named[0]
        places = [place / name for place in self.places]
        there = [path for path in places if path.exists()]
        if not any(source_of(path).sha256 == want for path in there):
            there += _of_project(name)
        for path in sorted(there, key=lambda path: source_of(path).sha256 != want):
            return path
        what = "is not here, beside the tree, or where crt.toml says"
        self.problems.append(Problem(name, what, f"--from DIR/{name}"))
        return None

    def _called(self, name: str, path: Path) -> Path:
        if path.name == name:
            return path
        copy = Path(tempfile.mkdtemp(dir=self.own)) / name
        return Path((shutil.copytree if path.is_dir() else shutil.copy)(path, copy))

    def must_be(self, path: Path, source: Mapping[str, str], digest: str) -> None:
        if digest != source["sha256"]:
            what = f"is not the file that the tree was made of (sha256 {digest[:16]}, "
            what += f"not {source['sha256'][:16]})"
            hint = f"--from FILE names the right one; crt build makes a tree of {path}"
            self.problems.append(Problem(str(path), what, hint))

    def check(self) -> None:
        for path, digest in self.given.items():
            if path not in self.used:
                what = f"is other bytes (sha256 {digest[:16]}) than the tree was made "
                what += f"of: {', '.join(dict.fromkeys(self.wanted))}"
                self.problems.append(Problem(str(path), what))
        if self.problems:
            raise BuildError.of(self.problems)


def _of_project(name: str) -> list[Path]:
    """Files of that name that the current folder's project file names."""
    where = find_project()
    if where is None:
        return []
    files = read_project(where, outside=True).files
    return [path for path in files if path.name == name and path.exists()]


def facts_of(folder: Path) -> dict[str, Any]:
    """The checked facts of how a tree was built.

    Errors  BuildError
    """
    where = folder / REPORT
    try:
        facts = parse_json(read_bytes(where, MOST_REPORT))
    except (FileNotFoundError, NotADirectoryError):
        hint = "a folder that crt build has written"
        raise UsageError(str(folder), f"has no {REPORT}", hint) from None
    except OSError as error:
        raise BuildError(str(where), f"cannot be read ({error.strerror})") from None
    except Unreadable as error:
        line = f":{error.line}" if error.line else ""
        raise BuildError(f"{where}{line}", error.what, HINT) from None
    return checked_recipe(str(where), facts)


def _library(facts: Mapping[str, Any], search: _Search) -> Library | None:
    made = facts["provenance"]
    model = _model(made, made["build"], search)
    if model is None or search.problems:
        return None
    return model.build(name=facts["name"], **made["build"])


def _image(facts: Mapping[str, Any], search: _Search) -> Image | None:
    made, models = facts["provenance"], {}
    for each in facts["models"]:
        model = _model(each["provenance"], made["build"], search)
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

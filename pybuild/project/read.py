"""crt.toml, or [tool.crt] of pyproject.toml, to values: every fault with its line.

crt.toml:3: unknown key 'ram-limt'. Hint: did you mean 'ram-limit'?
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError, Problem, UsageError, fitting
from pybuild.files.names import is_plain, stays_within
from pybuild.files.parse import Unreadable, parse_toml
from pybuild.files.read import WRITTEN, is_regular, read_bytes, read_text
from pybuild.files.shape import shown
from pybuild.options.many import ImageOptions
from pybuild.options.option import Option, british, of_words
from pybuild.options.packages import PackageOptions
from pybuild.options.table import (
    COMMON,
    VERBS,
    BoardOptions,
    TreeOptions,
)
from pybuild.project.lines import key_lines, line_of
from pybuild.project.sweeps import Sweep, Value, axis_options, axis_values
from pybuild.records import dataclass

FILE, OTHER = "crt.toml", "pyproject.toml"
SECTION = ("tool", "crt")
# of the command line alone: a model's key is its name
OUTSIDE = "outside"
ALONE = ("name", "project", "force", OUTSIDE)
# what a file may not say for whoever runs it: results of workers are code
_ASKED = ("scheduler",)
# what may stand beside `file` and `models`; all else is for one verb
_SHARED = (*COMMON, BoardOptions, PackageOptions, TreeOptions, ImageOptions)
SWEEP = "sweep"  # of no model alone
_JOINED = re.compile(r"(?<=\.toml)\+|(?<=\.json)\+")
_VERBS = tuple(verb for verb in VERBS if verb != "build")
_PATHS = ("file", "folder")
_NAME_FILES = {
    one.word
    for classes in VERBS.values()
    for one in of_words(*classes)
    if one.kind.files in _PATHS
}


Values = Mapping[str, Value]


@dataclass(frozen=True)
class Entry:
    """A model, an image of several models, or options for all of them.

    file    of a model; models: of an image, by their names
    values  of options by word; by_verb: for one verb only
    """

    name: str
    where: str
    file: str = ""
    models: tuple[str, ...] = ()
    values: Values = field(default_factory=dict)
    by_verb: Mapping[str, Values] = field(default_factory=dict)


@dataclass(frozen=True)
class Project:
    """A project file; where: as messages name it."""

    where: str
    common: Entry
    models: Mapping[str, Entry]
    images: Mapping[str, Entry]
    sweeps: Mapping[str, Sweep] = field(default_factory=dict)

    def values(self, entry: Entry, verb: str) -> dict[str, Value]:
        """The options of a verb for a model or image; the last value of an option
        counts."""
        shared = [kind for kind in VERBS[verb] if kind in _SHARED]
        known = {one.word for one in of_words(*shared)}
        found: dict[str, Value] = {}
        for each in (self.common, entry):
            found |= {word: v for word, v in each.values.items() if word in known}
            found |= each.by_verb.get(verb, {})
        return found

    @property
    def files(self) -> list[Path]:
        """Models, and what options name: samples, functions."""
        every = (self.common, *self.models.values(), *self.images.values())
        named = [entry.file for entry in every if entry.file]
        for entry in every:
            for values in (entry.values, *entry.by_verb.values()):
                named += [v.raw for word, v in values.items() if word in _NAME_FILES]
        return [Path(text) for text in named if isinstance(text, str)]

    @property
    def trees(self) -> dict[str, Entry]:
        """The trees that `crt build` builds: images, and models that are in none."""
        inside = {name for image in self.images.values() for name in image.models}
        alone = {n: entry for n, entry in self.models.items() if n not in inside}
        return {**alone, **self.images}


def find_project(given: str | None = None) -> Path | None:
    """The file that is given, or that lies in this folder."""
    if given is not None:
        return Path(given)
    if Path(FILE).is_file():
        return Path(FILE)
    other = Path(OTHER)
    if is_regular(other) and b"[tool.crt" in read_bytes(other, WRITTEN):
        return other
    return None


def read_project(path: Path, outside: bool = False) -> Project:
    """outside: paths may lead out of the file's folder

    Errors  UsageError with everything that is wrong, each with its line
    """
    try:
        text = read_text(path, WRITTEN)
        whole: Any = parse_toml(text)
    except OSError as error:
        raise UsageError(str(path), f"cannot be read ({error.strerror})") from None
    except Unreadable as error:
        line = f":{error.line}" if error.line else ""
        raise UsageError(f"{path}{line}", error.what) from None
    except UnicodeDecodeError:
        raise UsageError(str(path), "is not text in UTF-8") from None
    within = SECTION if path.name == OTHER else ()
    for key in within:
        whole = whole.get(key, {}) if isinstance(whole, dict) else {}
    reader = _Reader(path, text, within, outside)
    project = reader.project(whole)
    if reader.problems:
        raise UsageError.of(sorted(reader.problems, key=_line))
    return project


def project_of(whole: Mapping[str, Any]) -> Project:
    """The project in a mapping with the content of such a file; paths are relative to
    the current folder.

    Errors  UsageError with everything that is wrong
    """
    reader = _Said(Path("project"), "", (), outside=True)
    project = reader.project(whole)
    if reader.problems:
        raise UsageError.of(reader.problems)
    return replace(project, where=str(Path(FILE)))


def _line(problem: Problem) -> int:
    number = problem.where.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


class _Reader:
    """One file; every fault becomes a problem."""

    def __init__(
        self, path: Path, text: str, within: tuple[str, ...], outside: bool
    ) -> None:
        self.path, self.within, self.outside = path, within, outside
        self.lines = key_lines(text)
        self.problems: list[Problem] = []

    def project(self, whole: Any) -> Project:
        own = {"models": dict, "images": dict, "sweeps": dict}
        common = self._entry("", whole, (), own)
        models = {
            name: self._entry(name, table, ("models", name), {"file": str})
            for name, table in self._tables(whole, "models")
        }
        images = {
            name: self._entry(name, table, ("images", name), {"models": list})
            for name, table in self._tables(whole, "images")
        }
        if not models and not self.problems:
            self._wrong((), "has no model", '[models.NAME] with file = "MODEL.tflite"')
        for name, image in images.items():
            self._members(image, models)
            if name in models:
                self._wrong(("images", name), f"'{name}' is a model's name too")
        sweeps = {
            name: self._sweep(name, table, models)
            for name, table in self._tables(whole, "sweeps")
        }
        return Project(str(self.path), common, models, images, sweeps)

    def _sweep(self, name: str, table: Any, models: Mapping[str, Entry]) -> Sweep:
        at, axes = ("sweeps", name), dict[str, tuple[Value, ...]]()
        if not isinstance(table, dict):
            self._wrong(at, f"'{'.'.join(at)}' is not a table")
            return Sweep(name, self._where(at), (), axes)
        chosen = table.get("models", list(models))
        if not isinstance(chosen, list) or not all(isinstance(n, str) for n in chosen):
            self._wrong((*at, "models"), "'models' is not a list of names")
            chosen = []
        for each in chosen:
            if each not in models:
                what = f"there is no model '{each}'"
                self._wrong((*at, "models"), what, fitting(each, models))
        known = axis_options()
        for word in table:
            if word == "models":
                continue
            here, word = (*at, word), british(word, known)
            one = known.get(word)
            if one is None:
                self._wrong(here, f"unknown key '{word}'", fitting(word, known))
                continue
            values = axis_values(one, table[here[-1]])
            if not values:
                self._wrong(here, f"'{word}' has no value")
            axes[word] = tuple(self._axis_value(known, here, each) for each in values)
        return Sweep(name, self._where(at), tuple(chosen), axes)

    def _axis_value(
        self, known: Mapping[str, Option], at: tuple[str, ...], value: Any
    ) -> Value:
        made: dict[str, Value] = {}
        if value is not None:
            self._value(made, known, at, value)
        return next(iter(made.values()), Value(None, self._where(at)))

    def _tables(self, whole: Any, key: str) -> list[tuple[str, Any]]:
        found = whole.get(key, {}) if isinstance(whole, dict) else {}
        return list(found.items()) if isinstance(found, dict) else []

    def _members(self, image: Entry, models: Mapping[str, Entry]) -> None:
        at = ("images", image.name, "models")
        known = {one.word for one in of_words(*COMMON[1:2])}
        if len(image.models) < 2:
            self._wrong(at, "an image has two models or more")
        for name in image.models:
            if name not in models:
                self._wrong(at, f"there is no model '{name}'", fitting(name, models))
                continue
            for word in sorted(known & set(models[name].values)):
                hint = f"put it under [images.{image.name}]"
                what = f"'{name}' is built in image '{image.name}', which has one"
                self._wrong(("models", name, word), f"{what} '{word}' for all", hint)

    def _entry(
        self, name: str, table: Any, at: tuple[str, ...], own: Mapping[str, type[Any]]
    ) -> Entry:
        """own: keys besides options, and their types; of a model or image all needed"""
        if not isinstance(table, dict):
            self._wrong(at, f"'{'.'.join(at)}' is not a table")
            return Entry(name, self._where(at))
        if at and not is_plain(name):
            self._wrong(at, f"{shown(name)} cannot be a name: it is one of files, too")
        options = self._known(at)
        values: dict[str, Value] = {}
        by_verb: dict[str, Values] = {}
        for key, value in table.items():
            here = (*at, key)
            if key in own:
                if not isinstance(value, own[key]):
                    kinds = {"str": "a text", "list": "a list", "dict": "a table"}
                    self._wrong(here, f"'{key}' is not {kinds[own[key].__name__]}")
                elif isinstance(value, str):
                    self._must_be_inside(here, value)
            elif key in _VERBS and isinstance(value, dict) and (key != SWEEP or not at):
                known = {x.word: x for x in of_words(*VERBS[key]) if x.word != OUTSIDE}
                for word, each in value.items():
                    self._value(by_verb.setdefault(key, {}), known, (*here, word), each)
            else:
                self._value(values, options, here, value, own)
        for key in own if at else ():
            if key not in table:
                self._wrong(at, f"there is no '{key}'")
        return self._made(name, table, at, values, by_verb)

    def _made(
        self, name: str, table: dict[str, Any], at: tuple[str, ...],
        values: Values, by_verb: Mapping[str, Values],
    ) -> Entry:  # fmt: skip
        file, models = table.get("file"), table.get("models")
        return Entry(
            name,
            self._where(at),
            self._path(file) if isinstance(file, str) else "",
            tuple(map(str, models)) if isinstance(models, list) else (),
            values,
            by_verb,
        )

    def _known(self, at: tuple[str, ...]) -> dict[str, Option]:
        """The options of a table, whatever the verb."""
        classes: tuple[type, ...] = (*COMMON, BoardOptions, PackageOptions)
        if at:
            classes += (TreeOptions,)
        if at[:1] == ("images",):
            classes += (ImageOptions,)
        return {x.word: x for x in of_words(*classes) if x.word not in ALONE}

    def _value(
        self, into: Any, known: Mapping[str, Option], at: tuple[str, ...], value: Any,
        own: Mapping[str, type[Any]] | None = None,
    ) -> None:  # fmt: skip
        word = british(at[-1], known)
        if word not in known:
            words = (*known, *(own or ()), *_VERBS)
            self._wrong(at, f"unknown key '{word}'", fitting(word, words))
            return
        one = known[word]
        if word in _ASKED and not self.outside:
            what = f"{word}: whoever answers there runs code here, so no file says it"
            self._wrong(at, what, f"--{word} on the command line")
        raw = self._seen_from_here(one, value)
        try:
            one.read(one.of_word(raw))
        except BuildError as error:
            for problem in error.problems:
                self._wrong(at, f"{word}: {problem.what}", problem.hint)
        else:
            if raw is not value:
                self._must_be_inside(at, value)
        into[word] = Value(raw, self._where(at))

    def _seen_from_here(self, one: Option, value: Any) -> Any:
        """Paths of the file are seen from its folder."""
        if not isinstance(value, str) or not value:
            return value
        is_path = one.kind.files in _PATHS or (one.word == "on" and "/" in value)
        return self._path(value) if is_path else value

    def _path(self, text: str) -> str:
        return str(self.path.parent / text)

    def _must_be_inside(self, at: tuple[str, ...], text: str) -> None:
        """A path: of the file's folder or one within, all links followed; of FRONT+NET
        both."""
        folder = self.path.parent
        parts = _JOINED.split(text) if at[-1] == "file" else [text]
        if not self.outside and not all(
            stays_within(folder, folder / part) for part in parts
        ):
            word, what = at[-1], f"{shown(text)} leads out of the file's folder"
            own = "MODEL" if word == "file" else f"--{word}"
            hint = f"{own} on the command line, or --{OUTSIDE} for all of the file"
            self._wrong(at, f"{word}: {what}", hint)

    def _where(self, at: tuple[str, ...]) -> str:
        return f"{self.path}:{line_of(self.lines, (*self.within, *at))}"

    def _wrong(self, at: tuple[str, ...], what: str, hint: str = "") -> None:
        self.problems.append(Problem(self._where(at), what, hint))


class _Said(_Reader):
    """Values that no file says: a place is their keys."""

    def _where(self, at: tuple[str, ...]) -> str:
        return ".".join((str(self.path), *at))

    def _path(self, text: str) -> str:
        return text

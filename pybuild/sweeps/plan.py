"""A project's sweeps as jobs: every combination once; all that is wrong is told before
anything is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.entry import load
from pybuild.errors import BuildError, Problem, UsageError
from pybuild.files.result_cache import tool_digest
from pybuild.ir.graph import Graph
from pybuild.model import Model
from pybuild.options.many import DataOptions
from pybuild.options.option import Option, of_words, plain
from pybuild.options.table import (
    BoardOptions,
    BuildOptions,
    LoadOptions,
    ModelOptions,
    QuantiseOptions,
)
from pybuild.project.read import Project
from pybuild.project.sweeps import Sweep, Value
from pybuild.records import dataclass
from pybuild.sweeps.job import HOST, Job, content_of, key_of, to_load

if TYPE_CHECKING:
    from pybuild.quantisation.samples import Samples

_GROUPS = {
    "load": LoadOptions, "build": BuildOptions, "quantise": QuantiseOptions,
    "measure": DataOptions, "board": BoardOptions,
}  # fmt: skip
_DEVICE = next(one for one in of_words(ModelOptions) if one.word == "device")
_WORDS = {
    one.word: (group, one) for group, kind in _GROUPS.items() for one in of_words(kind)
}
_IDLE = ("toolchain", "simulator")


@dataclass(frozen=True)
class Row:
    """A job, and what its sweep says of it: values by the words of the axes."""

    job: Job
    axes: Mapping[str, Any]


Words = dict[str, Value]


def rows_of(project: Project) -> list[Row]:
    """In the order of the file; what is the same build is one row, the first.

    Errors  UsageError, BuildError with everything that is wrong
    """
    if not project.sweeps:
        hint = '[sweeps.NAME] with target = ["cortex-m4", "cortex-m55"]'
        raise UsageError(project.where, "has no sweep", hint)
    maker, found = _Maker(), dict[str, Row]()
    for sweep in project.sweeps.values():
        for name in sweep.models:
            entry = project.models[name]
            base = project.values(entry, "report")
            maker.all_of(sweep, name, entry.file, base, found)
    if maker.problems:
        raise BuildError.of(dict.fromkeys(maker.problems))
    return list(found.values())


@dataclass
class _Maker:
    """Facts that are read and computed once for all rows."""

    problems: list[Problem] = field(default_factory=list)
    models: dict[str, Model | None] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def all_of(
        self, sweep: Sweep, name: str, file: str, base: Mapping[str, Value],
        found: dict[str, Row],
    ) -> None:  # fmt: skip
        quantised = False
        for chosen in sweep.combinations():
            words = {w: v for w, v in {**base, **chosen}.items() if v.raw is not None}
            quantised = quantised or "quantise" in words
            job = self._job(name, file, words)
            if job is not None:
                shown = {word: _shown(word, chosen[word].raw) for word in chosen}
                found.setdefault(job.key, Row(job, shown))
        for one in of_words(QuantiseOptions):
            if one.word in sweep.axes and not quantised:
                where = sweep.axes[one.word][0].where
                what = f"{one.word}: is for quantise, and '{name}' has none"
                self.problems.append(Problem(where, what))

    def _job(self, name: str, file: str, words: Words) -> Job | None:
        """The job of one combination; None: something is wrong with it."""
        before = len(self.problems)
        groups = {group: _keywords(group, words) for group in _GROUPS}
        if "data" not in groups["quantise"]:
            groups["quantise"] = {}
        model = self._model(file, to_load(groups["load"], groups["quantise"]))
        files = dict(self._files(words))
        device = self._device(words, groups)
        if model is not None:
            self._wrong(model, groups, words)
        if model is None or len(self.problems) > before:
            return None
        job = Job(
            "", name, file, **groups, device=device, model=model_digest(model),
            files=files, tool=tool_digest(),
        )  # fmt: skip
        return replace(job, key=_key(job))

    def _said(self, words: Words, call: Callable[[], Any]) -> Any:
        """The result of the call; None if it finds an error, which is then reported
        with the place of the option."""
        try:
            return call()
        except BuildError as error:
            self._tell(words, error.problems)
        return None

    def _tell(self, words: Words, problems: Any) -> None:
        for one in problems:
            word = one.where[2:] if one.where.startswith("--") else ""
            if word in words:
                what = f"{word}: {one.what}"
                one = Problem(words[word].where, what, one.hint)
            self.problems.append(one)

    def _model(self, file: str, options: Mapping[str, Any]) -> Model | None:
        key = key_of({"file": file, "load": options})
        if key not in self.models:
            self.models[key] = self._said({}, lambda: load(file, **options))
        return self.models[key]

    def _files(self, words: Words) -> Iterator[tuple[str, str]]:
        """Digests of what options name, by path."""
        for word, value in words.items():
            kind = _WORDS[word][1].kind if word in _WORDS else None
            named = kind is not None and kind.files == "file"
            if not named and (word != "on" or "/" not in str(value.raw)):
                continue
            path = str(value.raw)
            if path not in self.contents:
                self.contents[path] = self._content(word, value.where, Path(path))
            yield path, self.contents[path]

    def _content(self, word: str, where: str, path: Path) -> str:
        """ "": there is none"""
        try:
            return content_of(path)
        except BuildError as error:
            what = f"{word}: {path.name} {error.problems[0].what}"
            self.problems.append(Problem(where, what))
        return ""

    def _device(
        self, words: Words, groups: dict[str, dict[str, Any]]
    ) -> dict[str, Any] | None:
        """The board that counts, if there is one; puts the target into `groups`."""
        board, build = groups["board"], groups["build"]
        on = board.get("on", HOST)
        if on == HOST:
            groups["board"] = {}
        more = _DEVICE.read(words["device"].raw) if "device" in words else {}
        facts = None
        if on != HOST:
            facts = self._said(words, lambda: _opened(board, build, bool(more)))
        if more:
            own = build.get("target", "generic")
            build["target"] = {"0": own, **{str(n): plain(t) for n, t in more.items()}}
            groups["board"]["both"] = True
        return facts

    def _wrong(self, model: Model, groups: Mapping[str, Any], words: Words) -> None:
        """Reports errors that would stop the build, as far as they are known before
        it."""
        if "labels" in words and "data" not in words:
            self._tell(words, [Problem("--labels", "needs data")])
        build, quantise = groups["build"], groups["quantise"]
        loaded = {"model": model.digest, "load": groups["load"]}
        whole = key_of({**loaded, "with": quantise})
        if whole not in self.seen:
            self.seen.add(whole)
            if not quantise:
                self._tell(words, model.problems())
            elif self._there(quantise, "data", "test"):
                self._said(words, lambda: _samples(model, quantise))
        measure = groups["measure"]
        tested = key_of({**loaded, "measure": measure})
        if tested not in self.seen and "data" in measure and "layout" not in build:
            self.seen.add(tested)
            if self._there(measure, "data", "labels"):
                self._said(words, lambda: labelled(model.graph, measure))
        own = key_of({**loaded, "build": build})
        if own not in self.seen:
            self.seen.add(own)
            self._tell(words, model.option_problems(**build))

    def _there(self, group: Mapping[str, Any], *names: str) -> bool:
        """True if the files can be read."""
        paths = (group[name] for name in names if name in group)
        return all(self.contents.get(path, "x") for path in paths)


def _shown(word: str, raw: Any) -> Any:
    """A value as JSON has it."""
    one = _WORDS[word][1]
    if raw is None:
        return None
    if one.kind.files or (word == "on" and "/" in str(raw)):
        return Path(raw).name
    return raw if one.is_off else plain(one.read(raw))


def _keywords(group: str, words: Words) -> dict[str, Any]:
    """Values by keyword, without those that are the default."""
    found: dict[str, Any] = {}
    for word, value in words.items():
        known = _WORDS.get(word)
        if known is None or known[0] != group:
            continue
        one: Option = known[1]
        made = one.read(one.of_word(value.raw))
        if made != one.default and (group != "board" or made != "auto"):
            found[one.keyword] = plain(made)
    return found


def _opened(
    board: Mapping[str, Any], build: dict[str, Any], both: bool
) -> dict[str, Any]:
    """The device for a board.

    Errors  BuildError that says what to install
    """
    from pybuild.targets.board import load_board

    build.setdefault("target", load_board(board["on"]).core.target)
    return device_facts(device_of(board, build, both))


def device_of(board: Mapping[str, Any], build: Mapping[str, Any], both: bool) -> Any:
    """A Device, which is loaded with what simulates it.

    Errors  BuildError that says what to install
    """
    from pybuild.boards.device import open_device
    from pybuild.targets.names import core_of

    target = build["target"]
    own = target["0"] if isinstance(target, Mapping) else target
    core = str(own) if core_of(own) else ""
    chosen = board["on"], board.get("toolchain", "auto"), board.get("simulator", "auto")
    optimise, cores = build.get("optimise", "balanced"), build.get("cores", 1)
    return open_device(*chosen, core, optimise, both=both, cores=cores)


def device_facts(device: Any) -> dict[str, Any]:
    facts: dict[str, Any] = device.to_json()
    return facts


def _samples(model: Model, quantise: Mapping[str, Any]) -> None:
    """Checks the model and its samples.

    Errors  BuildError with everything that is wrong with the model or its samples
    """
    from pybuild.quantisation.quantise import quantisable
    from pybuild.quantisation.samples import samples_of

    graph = quantisable(model.graph)
    for word in ("data", "test"):
        if word in quantise:
            samples_of(graph, quantise[word])


def labelled(graph: Graph, measure: Mapping[str, Any]) -> Samples:
    """The samples that measure accuracy.

    Errors  BuildError for samples that are none of the graph, or without labels
    """
    from pybuild.quantisation.samples import samples_of

    labels = measure.get("labels")
    path = None if labels is None else Path(labels)
    own = samples_of(graph, measure["data"], path, "data")
    if own.labels is None:
        hint = "labels = FILE, or an array `labels` in it"
        raise BuildError(Path(measure["data"]).name, "has no labels", hint)
    return own


def model_digest(model: Model) -> str:
    """The hash of a model's file, and of the files beside it that it was made from."""
    beside = Path(model.path).with_suffix(".params")
    if model.path.endswith(".json") and beside.is_file():
        return f"{model.digest}{content_of(beside)}"
    return model.digest


def _key(job: Job) -> str:
    """The key of a job's content; files count by their names and bytes, not their
    folders."""
    facts = {n: v for n, v in asdict(job).items() if n not in ("key", "path", "files")}
    named = {path: [Path(path).name, digest] for path, digest in job.files.items()}
    for group in ("load", "quantise", "measure", "board"):
        given = facts[group]
        facts[group] = {n: named.get(str(v), v) for n, v in given.items()}
    return key_of({**facts, "file": Path(job.path).name})

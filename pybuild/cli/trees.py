"""`crt build`: one tree of one model or several, or all that a project file names.

All is planned and printed in memory before anything is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pybuild
from pybuild.cli import boards
from pybuild.cli.models import (
    built,
    loaded,
    located,
    options,
    raise_all,
    say_if_long,
)
from pybuild.cli.names import chosen_names
from pybuild.cli.options import chosen
from pybuild.cli.output import tables
from pybuild.cli.output.progress import working
from pybuild.ecosystems.write import Ready, prepared
from pybuild.emit.content import Content
from pybuild.emit.tables.names import chosen_prefix
from pybuild.errors import BuildError, Problem, UsageError
from pybuild.files.say import say
from pybuild.options.option import parse_options
from pybuild.options.packages import ESPHOME, PackageOptions
from pybuild.package.folder import PAGE, refusals, write_tree
from pybuild.package.page import image_page, report_page, verdict
from pybuild.package.report import Report
from pybuild.records import dataclass

if TYPE_CHECKING:
    from pybuild.evidence.write import Evidence
    from pybuild.image import Image
    from pybuild.library import Library
    from pybuild.wake import WakeWords

OK, MISMATCH = 0, 1

Outcome = tuple[int, dict[str, Any]]


@dataclass(frozen=True)
class Filed:
    """The evidence for an auditor, and the folder to write it to."""

    out: Path
    found: Evidence

    @property
    def paths(self) -> list[Path]:
        return [self.out]

    def problems(self) -> list[Problem]:
        from pybuild.evidence.write import refusals

        return refusals(self.out)

    def write(self) -> None:
        from pybuild.evidence.write import write

        write(self.out, self.found)


@dataclass(frozen=True)
class Tree:
    """The files to write to a folder; long: full names are shown; drawn: its page, if
    wanted; filed: evidence for an auditor.

    target   whose kernels it has, and who said so
    package  a package beside others in this folder, or its archives
    """

    out: Path
    force: bool
    long: bool
    made: Library | Image
    target: str
    package: PackageOptions
    drawn: Callable[[], str] | None = None
    filed: Filed | None = None

    def files(self) -> dict[str, Content]:
        files = self.made.files()
        return files if self.drawn is None else {**files, PAGE: self.drawn()}

    @property
    def folder(self) -> Path:
        """The folder that no other tree may be written to."""
        return self.out / self.made.name if self.package.package else self.out

    def ready(self) -> Ready | Folder:
        if not self.package.package:
            return Folder(self.out, self.files(), self.made.name, self.force)
        made = self.made.for_packages()
        return prepared(self.out, made, self.package, self.force)

    def show(self, paths: Sequence[Path]) -> None:
        report = self.made.advised
        say(f"target {self.target}")
        if isinstance(report, Report):
            tables.show(report_page(report, self.long))
        else:
            tables.show(image_page(report))
        for path in paths:
            say(f"wrote {path}")
        say(verdict(report))


@dataclass(frozen=True)
class Folder:
    """A tree that is not a package."""

    out: Path
    files: Mapping[str, Content]
    name: str
    force: bool

    @property
    def paths(self) -> list[Path]:
        return [self.out]

    def problems(self) -> list[Problem]:
        return refusals(self.out, self.files, self.name, self.force)

    def write(self) -> None:
        write_tree(self.out, self.files, self.name, self.force)


def build(jobs: Sequence[argparse.Namespace]) -> Outcome:
    """Writes all trees, or nothing."""
    trees: list[Tree] = []
    errors: list[BuildError] = []
    for args in jobs:
        try:
            with located(args):
                trees.append(_tree(args))
        except BuildError as error:
            errors.append(error)
    for index, tree in enumerate(trees):
        if tree.folder in [other.folder for other in trees[:index]]:
            errors.append(BuildError("--out", f"two trees would be in {tree.folder}"))
    raise_all(errors)
    ready: list[Ready | Folder] = []
    for tree in trees:
        try:
            ready.append(tree.ready())
        except BuildError as error:
            errors.append(error)
    filed = [tree.filed for tree in trees if tree.filed]
    for each in (*ready, *filed):
        found = each.problems()
        errors += [BuildError.of(found)] if found else []
    raise_all(errors)
    for each in (*ready, *filed):
        each.write()
    if not jobs[0].json:
        for tree, each in zip(trees, ready, strict=True):
            tree.show([*each.paths, *(tree.filed.paths if tree.filed else ())])
    equal = all(one.found.ok for one in filed)
    facts = [tree.made.advised.to_json() for tree in trees]
    said = facts[0] if len(facts) == 1 else {"trees": facts}
    return (OK if equal else MISMATCH), said


def _tree(args: argparse.Namespace) -> Tree:
    """The tree that the arguments describe.

    Errors  BuildError with everything that is wrong with its models and options
    """
    if args.out is None:
        hint = "give a model file, or a name in crt.toml (this folder has none)"
        raise_all(
            [
                BuildError(path, "there is no such file", hint)
                for path in args.models
                if not Path(path).exists()
            ]
        )
        raise BuildError("--out", "is missing", "-o DIR, the folder to write")
    out, target = Path(args.out), boards.target_said(args)
    if ESPHOME in args.package:
        return Tree(out, args.force, args.long, _wake_words(args), target,
                    _package(args))  # fmt: skip
    if len(args.models) > 1:
        if args.evidence:
            hint = "build each by itself for its evidence"
            raise BuildError("--evidence", "is for one model", hint)
        if args.data:
            raise BuildError("--data", "is for one model: each has samples of its own")
        image = _image(args)
        drawn = image.to_html if args.html else None
        return Tree(out, args.force, args.long, image, target, _package(args), drawn)
    for option in ("exclusive", "connect"):
        if getattr(args, option):
            raise BuildError(f"--{option}", "needs several models")
    if args.data and not (args.html or args.evidence):
        raise BuildError("--data", "is drawn on a page", "--html, or --evidence DIR")
    made = built(args, args.models[0])
    package, drawn = _package(args), _drawn(args, made)
    return Tree(
        out, args.force, args.long, made, target, package, drawn, _filed(args, made)
    )


def _filed(args: argparse.Namespace, made: Library) -> Filed | None:
    """The evidence to write, if --evidence is given.

    Errors  BuildError for samples that do not fit
    """
    if not args.evidence:
        return None
    from pybuild.evidence.write import evidence

    if args.labels and not args.data:
        raise UsageError("--labels", "needs --data")
    with working(f"gathering evidence of {made.name}") as progress:
        found = evidence(made, args.data, args.labels, progress)
    return Filed(Path(args.evidence), found)


def _drawn(args: argparse.Namespace, made: Library) -> Callable[[], str] | None:
    """A function that makes the page, if --html is given.

    Errors  BuildError for samples that do not fit
    """
    from pybuild.cli.report import samples_of_page

    if not args.html and args.evidence:
        return None
    samples = samples_of_page(args, made)
    return partial(made.to_html, samples=samples) if args.html else None


def _package(args: argparse.Namespace) -> PackageOptions:
    """The options of packages.

    Errors  BuildError for --archive of no package
    """
    asked, _ = parse_options(PackageOptions, chosen(PackageOptions, args))
    if asked.archive and not asked.package:
        raise BuildError("--archive", "needs --package", "--package NAME")
    if args.html and asked.package:
        raise BuildError("--html", "does not apply to packages", "crt report MODEL")
    return asked


def _image(args: argparse.Namespace) -> Image:
    if args.quantise:
        raise BuildError("--quantise", "is for one model: each has data of its own")
    whole, members = _members(args)
    found: dict[str, pybuild.Model] = {}
    errors: list[BuildError] = []
    for name, path, own in members:
        if name in found:
            what = f"another model is named '{name}' too"
            hint = "--name FILE=NAME gives it another"
            errors.append(BuildError(Path(path).name, what, hint))
        try:
            with located(own):
                found[name] = loaded(own, path, alone=False)
        except BuildError as error:
            errors.append(error)
    raise_all(errors)
    say_if_long(found, options(args)["target"])
    with working("building " + ", ".join(found)):
        return pybuild.build_image(
            found,
            name=whole,
            exclusive=args.exclusive,
            connect=args.connect,
            **options(args),
        )


def _wake_words(args: argparse.Namespace) -> WakeWords:
    """The models behind one front end, each a wake word or voice.

    Errors  BuildError with everything that is wrong with options and manifests
    """
    from pybuild.wake import FRONT, build_wake_words

    for option in ("quantise", "evidence", "data", "exclusive", "connect"):
        if getattr(args, option):
            raise BuildError(f"--{option}", "does not apply to --package esphome")
    whole, members = _members(args)
    fronts = {own.fronts.get(path) for _, path, own in members}
    if fronts != {FRONT}:
        what = "is for nets that hear the features of micro wake word"
        raise BuildError("--package esphome", what, f"--front {FRONT}")
    found: dict[str, pybuild.Model] = {}
    for name, path, own in members:
        if name in found:
            what = f"another model is named '{name}' too"
            hint = "--name FILE=NAME gives it another"
            raise BuildError(Path(path).name, what, hint)
        alone = argparse.Namespace(**{**vars(own), "fronts": {}})
        with located(own):
            found[name] = loaded(alone, path, alone=False)
    paths = {name: path for name, path, _ in members}
    with working("building " + ", ".join(found)):
        return build_wake_words(paths, whole, found, **options(args))


def _members(
    args: argparse.Namespace,
) -> tuple[str | None, list[tuple[str, str, argparse.Namespace]]]:
    """The image's name; of each model its name, its file, and how it is read."""
    if args.members:
        return args.name[-1], [(n, own.models[0], own) for n, own in args.members]
    whole, names = chosen_names(args.models, args.name)
    found = [(chosen_prefix(names.get(p), p), p, args) for p in args.models]
    return whole, found

"""What each verb does: options to library calls, results to tables or JSON.

Returns (exit code, facts for --json); never prints to stdout with --json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pybuild
from pybuild.cli import tables
from pybuild.cli.progress import working
from pybuild.errors import BuildError, Problem
from pybuild.package.report import Report

OK, MISMATCH = 0, 1

Outcome = tuple[int, dict[str, Any]]


def inspect(args: argparse.Namespace) -> Outcome:
    """Everything about one model, or everything that is wrong with it."""
    library = _built(args, args.model)
    facts = {"model": Path(args.model).name, "problems": []}
    facts |= library.report.to_json()
    if not args.json:
        tables.show_report(library.report)
    return OK, facts


def build(args: argparse.Namespace) -> Outcome:
    """Writes all trees, or none."""
    many = len(args.models) > 1
    if many and args.name:
        raise BuildError("--name", "names one model, but several are given")
    out = Path(args.out)
    parent = out.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=parent) as folder:
        made = Path(folder) / "made"
        reports = _trees(args, made, many)
        _put(made, out, args.force, [r.name for r in reports], many)
    if not args.json:
        for report in reports:
            tables.show_report(report)
        print(f"wrote {args.out}")
    plain = [report.to_json() for report in reports]
    return OK, {"models": plain} if many else plain[0]


def _trees(args: argparse.Namespace, made: Path, many: bool) -> list[Report]:
    """Every model's tree in `made`: the one there, or each in a folder of its name.

    Errors  BuildError with the problems of all models
    """
    reports: list[Report] = []
    errors: list[BuildError] = []
    for index, model in enumerate(args.models):
        tree = made / str(index) if many else made
        tree.parent.mkdir(exist_ok=True)
        try:
            report = _built(args, model, str(tree)).report
        except BuildError as error:
            errors.append(error)
            continue
        if report.name in {other.name for other in reports}:
            what = f"another model is named '{report.name}' too"
            errors.append(BuildError(model, what, "build one by itself with --name"))
        elif many:
            os.rename(tree, made / report.name)
        reports.append(report)
    _raise_all(errors)
    return reports


def check(args: argparse.Namespace) -> Outcome:
    """Exit 1 where a value differs."""
    from pybuild.run.check import check as compare

    if Path(args.model).is_dir():
        hint = "crt check MODEL with the options of the build"
        raise BuildError(args.model, "is a folder; check takes the model file", hint)
    library = _built(args, args.model)
    with working(f"checking {Path(args.model).name}") as progress:
        result = compare(
            args.model,
            library,
            backends=tuple(dict.fromkeys(args.backend)),
            ref=args.ref,
            samples=args.samples,
            per_layer=args.per_layer,
            seed=args.seed,
            progress=progress,
        )
    if not args.json:
        tables.show_check(result)
    return OK if result.ok else MISMATCH, result.to_json()


def bench(args: argparse.Namespace) -> Outcome:
    from pybuild.run.bench import bench as measure

    library = _built(args, args.model)
    with working(f"timing {Path(args.model).name}"):
        result = measure(
            library,
            backend=args.backend,
            runs=args.runs,
            against=args.model if args.against else None,
            seed=args.seed,
        )
    if not args.json:
        tables.show_bench(result)
    return OK, result.to_json()


VERBS: dict[str, Callable[[argparse.Namespace], Outcome]] = {
    "inspect": inspect,
    "build": build,
    "check": check,
    "bench": bench,
}


def _built(
    args: argparse.Namespace, path: str, out: str | None = None
) -> pybuild.Library:
    """The model with the options of the command line, as a tree in `out` if given."""
    with working(f"building {Path(path).name}"):
        model = pybuild.load(path, input_dims=dict(args.input_dim))
        problems = model.problems()
        if problems:
            raise BuildError.of(problems)
        return model.build(
            out,
            name=args.name,
            rounding=args.rounding,
            input=args.input,
            target=args.target,
            optimise=args.optimise,
            ram_limit=args.ram_limit,
            layout=dict(args.layout),
        )


def _raise_all(errors: list[BuildError]) -> None:
    """One exception for all; its exit code is the least: an invalid model first."""
    if errors:
        worst = min(errors, key=lambda error: error.exit_code)
        found: list[Problem] = [p for error in errors for p in error.problems]
        raise type(worst).of(found)


def _put(made: Path, out: Path, force: bool, names: list[str], many: bool) -> None:
    """Moves a finished tree to its place; what else is there stays.

    Errors  BuildError where `out` holds files that are no earlier build of ours
    """
    if out.exists() and not out.is_dir():
        raise BuildError(str(out), "is a file", "give a folder")
    if not out.exists():
        os.rename(made, out)
        os.chmod(out, 0o755)
        return
    for name in names:
        place = out / name if many else out
        if not force and not _free(place, name):
            what = "holds other files than an earlier build of this model"
            raise BuildError(str(place), what, "another folder, or --force")
    shutil.copytree(made, out, dirs_exist_ok=True, copy_function=_replace)


def _free(place: Path, name: str) -> bool:
    """Nothing is there, or an earlier build of the same name."""
    if not place.exists() or not any(place.iterdir()):
        return True
    try:
        return bool(json.loads((place / "report.json").read_text())["name"] == name)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _replace(source: str, target: str) -> str:
    os.replace(source, target)
    return target

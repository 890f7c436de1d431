"""What each verb does: options to library calls, results to tables or JSON.

Returns (exit code, facts for --json); never prints to stdout with --json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pybuild
from pybuild.cli import boards, tables
from pybuild.cli.names import chosen_names
from pybuild.cli.options import chosen
from pybuild.cli.params import params
from pybuild.cli.progress import working
from pybuild.cli.quantise import quantised, reference_of
from pybuild.emit.names import chosen_prefix
from pybuild.emit.text import Content
from pybuild.errors import BuildError, Problem
from pybuild.options.option import of_words
from pybuild.options.table import BuildOptions, LoadOptions, QuantiseOptions
from pybuild.package.curve import svg
from pybuild.package.folder import write_file, write_tree
from pybuild.package.page import image_page, report_page
from pybuild.select.devices import table_of

OK, MISMATCH = 0, 1

Outcome = tuple[int, dict[str, Any]]


def inspect(args: argparse.Namespace) -> Outcome:
    """Everything about one model, or everything that is wrong with it."""
    library = _built(args, args.model)
    facts: dict[str, Any] = {"model": Path(args.model).name, "problems": []}
    facts |= library.report.to_json()
    if not args.json:
        tables.show(report_page(library.report, args.long))
    if args.ram_curve is not None:
        points = library.ram_curve()
        facts["ram_curve"] = [asdict(point) for point in points]
        facts["ram_bound"] = library.ram_bound()
        if not args.json:
            tables.show_curve(points, facts["ram_bound"])
        if args.ram_curve:
            drawing = svg(library.name, points)
            write_file(Path(args.ram_curve), drawing)
    return OK, facts


def build(args: argparse.Namespace) -> Outcome:
    """Writes one tree, or nothing."""
    if args.out is None:
        raise BuildError("--out", "is missing", "-o DIR, the folder to write")
    if len(args.models) > 1:
        return _build_image(args)
    for option in ("exclusive", "connect"):
        if getattr(args, option):
            raise BuildError(f"--{option}", "needs several models")
    library = _built(args, args.models[0])
    _write(args, library.name, library.files)
    if not args.json:
        tables.show(report_page(library.report, args.long))
        print(f"wrote {args.out}")
    return OK, library.report.to_json()


def _build_image(args: argparse.Namespace) -> Outcome:
    if args.quantise:
        raise BuildError("--quantise", "is for one model: each has data of its own")
    whole, names = chosen_names(args.models, args.name)
    loaded: dict[str, pybuild.Model] = {}
    errors: list[BuildError] = []
    for path in args.models:
        name = chosen_prefix(names.get(path), path)
        if name in loaded:
            what = f"another model is named '{name}' too"
            hint = "--name FILE=NAME gives it another"
            errors.append(BuildError(Path(path).name, what, hint))
        try:
            loaded[name] = _loaded(args, path, alone=False)
        except BuildError as error:
            errors.append(error)
    _raise_all(errors)
    with working("building " + ", ".join(loaded)):
        image = pybuild.build_image(
            loaded,
            name=whole,
            exclusive=args.exclusive,
            connect=args.connect,
            **_options(args),
        )
    _write(args, image.name, image.files)
    if not args.json:
        tables.show(image_page(image.report))
        print(f"wrote {args.out}")
    return OK, image.report.to_json()


def _write(
    args: argparse.Namespace,
    name: str,
    files: Callable[[], Mapping[str, Content]],
) -> None:
    write_tree(Path(args.out), files(), name, args.force)


def check(args: argparse.Namespace) -> Outcome:
    """Exit 1 where a value differs."""
    from pybuild.run.check import check as compare

    if Path(args.model).is_dir():
        hint = "crt check MODEL with the options of the build"
        raise BuildError(args.model, "is a folder; check takes the model file", hint)
    library = _built(args, args.model)
    if args.on != boards.HOST:
        return boards.check(args, library)
    with working(f"checking {Path(args.model).name}") as progress:
        result = compare(
            args.model,
            library,
            backends=args.backend,
            ref=reference_of(args, library) or "auto",
            samples=args.samples,
            per_layer=args.per_layer,
            seed=args.seed,
            progress=progress,
        )
    if not args.json:
        tables.show_check(result, str if args.long else library.plan.graph.shown)
    return OK if result.ok else MISMATCH, result.to_json()


def bench(args: argparse.Namespace) -> Outcome:
    from pybuild.run.bench import bench as measure

    library = _built(args, args.model)
    if args.on != boards.HOST:
        return boards.bench(args, library)
    with working(f"timing {Path(args.model).name}"):
        result = measure(
            library,
            backend=args.backend,
            runs=args.runs,
            against=args.model if args.against else None,
            seed=args.seed,
        )
    if not args.json:
        tables.show_bench(result, args.long)
    return OK, result.to_json()


def run(args: argparse.Namespace) -> Outcome:
    """Runs once on the arrays of a file."""
    return boards.run(args, _built(args, args.model))


def debug(args: argparse.Namespace) -> Outcome:
    """Exit 1 where a layer differs from the reference."""
    from pybuild.params.files import read_arrays
    from pybuild.run.layers import debug as look

    given = None
    if args.data is not None:
        given = read_arrays(Path(args.data).read_bytes(), Path(args.data).name)
    library = _built(args, args.model)
    ref = reference_of(args, library)
    result = look(args.model, library, given, ref, args.backend)
    if not args.json:
        tables.show_debug(result, args.long)
    return OK if result.ok else MISMATCH, result.to_json()


VERBS: dict[str, Callable[[argparse.Namespace], Outcome]] = {
    "inspect": inspect,
    "build": build,
    "check": check,
    "bench": bench,
    "run": run,
    "debug": debug,
    "params": params,
    "boards": boards.boards,
}


def _built(args: argparse.Namespace, path: str) -> pybuild.Library:
    """The model, planned with the options of the command line."""
    boards.must_be_here(args)
    whole, names = chosen_names([path], args.name)
    with working(f"building {Path(path).name}"):
        try:
            model = _loaded(args, path)
        except BuildError as error:
            raise error.with_more(_wrong_options(args)) from None
        return model.build(name=names.get(path, whole), **_options(args))


def also_wrong(args: argparse.Namespace) -> list[Problem]:
    """What is wrong with models besides `args.wrong`; nothing is planned."""
    found: list[Problem] = []
    wrong = {problem.where for problem in args.wrong}
    if not wrong & {one.where for one in of_words(QuantiseOptions)}:
        args.quantise = None  # sound, and takes its time
    for path in args.models if args.verb == "build" else [args.model]:
        try:
            model = _loaded(args, path)
            found += model.problems(**_options(args))
        except BuildError as error:
            found += error.problems
    return [problem for problem in found if problem not in args.wrong]


def _loaded(args: argparse.Namespace, path: str, alone: bool = True) -> pybuild.Model:
    """alone: it is built next, which says what no kernel is for

    Errors  BuildError with every problem of the model
    """
    kept = args.state
    first = {} if args.quantise else kept  # samples give what is state later
    model = pybuild.load(path, **{**chosen(LoadOptions, args), "state": first})
    problems = [] if alone and not args.quantise else model.problems()
    if problems:
        raise BuildError.of(problems)
    made = quantised(args, model)
    return made if first else made.with_state(kept)


def _wrong_options(args: argparse.Namespace) -> tuple[Problem, ...]:
    """What is wrong with the table of devices, whatever the model is."""
    try:
        table_of(_options(args)["target"])
    except BuildError as error:
        return error.problems
    return ()


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """What Model.build takes besides a name."""
    own = boards.target_of(args)
    target = {0: own, **args.device} if args.device else own
    return {**chosen(BuildOptions, args), "target": target}


def _raise_all(errors: list[BuildError]) -> None:
    """One exception for all; its exit code is the least: an invalid model first."""
    if errors:
        worst = min(errors, key=lambda error: error.exit_code)
        found: list[Problem] = [p for error in errors for p in error.problems]
        raise type(worst).of(found)

"""The verbs of the command: options to library calls, results to tables or JSON.

Returns (exit code, facts for --json); never prints to stdout with --json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.cli import boards
from pybuild.cli.chips import fit
from pybuild.cli.compare import compare
from pybuild.cli.init import init
from pybuild.cli.models import built
from pybuild.cli.output import tables
from pybuild.cli.output.progress import working
from pybuild.cli.params import params
from pybuild.cli.quantise import reference_of
from pybuild.cli.rebuild import rebuild
from pybuild.cli.report import report
from pybuild.cli.run import run
from pybuild.cli.sweep import sweep
from pybuild.errors import BuildError, UsageError
from pybuild.files.read import SAMPLES, read_bytes
from pybuild.files.say import say
from pybuild.package.folder import write_file
from pybuild.package.grid import Grid
from pybuild.package.page import report_page
from pybuild.traces.command import trace

if TYPE_CHECKING:
    from pybuild.library import Library

OK, MISMATCH = 0, 1

Outcome = tuple[int, dict[str, Any]]


def inspect(args: argparse.Namespace) -> Outcome:
    """Everything about one model, or everything that is wrong with it."""
    if args.on != boards.HOST and args.stage != "asm":
        raise UsageError("--on", "applies to --stage asm only", "crt bench --on BOARD")
    library = built(args, args.model)
    if args.stage is not None:
        return _stage(args, library)
    facts: dict[str, Any] = {"model": Path(args.model).name, "problems": []}
    # what would save RAM takes as long as all else
    report = library.advised if args.long or args.json else library.report
    facts |= report.to_json()
    boards.say_target(args)
    if not args.json:
        tables.show(report_page(report, args.long))
    if args.ram_curve is not None:
        points = library.ram_curve()
        facts["ram_curve"] = [asdict(point) for point in points]
        facts["ram_bound"] = library.ram_bound()
        if not args.json:
            tables.show_curve(points, facts["ram_bound"])
        if args.ram_curve:
            write_file(Path(args.ram_curve), _drawn(library, facts["ram_bound"]))
    return OK, facts


def _stage(args: argparse.Namespace, library: Library) -> Outcome:
    """--json: tables as lists of rows, all else as text."""
    from pybuild.watch.stages import stage_page

    ran = None
    if args.on != boards.HOST:
        library, ran = boards.ran(args, library)
    page = stage_page(library, args.stage, args.layer, ran)
    if not args.json:
        tables.show(page)
    plain = [asdict(one) if isinstance(one, Grid) else one for one in page]
    return OK, {"model": Path(args.model).name, "stage": args.stage, "found": plain}


def _drawn(library: Library, bound: int) -> str:
    """Its RAM curve; with the boards that `crt boards` knows."""
    from pybuild.package.curve_svg import Curve, svg
    from pybuild.targets.board import board_names, load_board

    target = library.targets[0].name
    title = library.name if target == "generic" else f"{library.name} on {target}"
    known = {name: load_board(name).ram.size for name in board_names()}
    points, chosen = library.ram_curve(), library.ram_point()
    return svg(Curve(title, points, chosen, bound, known))


def check(args: argparse.Namespace) -> Outcome:
    """Exit 1 where a value differs."""
    from pybuild.verify.check import check as compare

    if Path(args.model).is_dir():
        hint = "crt check MODEL with the options of the build"
        raise BuildError(args.model, "is a folder; check takes the model file", hint)
    if args.labels and not args.data:
        raise UsageError("--labels", "needs --data")
    library = built(args, args.model)
    own = boards.own_samples(args, library)
    if args.on != boards.HOST or args.port:
        return boards.check(args, library, own)
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
            own=own,
        )
    boards.say_target(args)
    if not args.json:
        tables.show_check(result, str if args.long else library.plan.graph.shown)
    else:
        for note in result.notes:
            say(f"note: {note}", error=True)
    return OK if result.ok else MISMATCH, result.to_json()


def bench(args: argparse.Namespace) -> Outcome:
    from pybuild.verify.bench import bench as measure

    args = boards.with_board(args)
    library = built(args, args.model)
    if args.on != boards.HOST or args.port:
        return boards.bench(args, library)
    with working(f"timing {Path(args.model).name}"):
        result = measure(
            library,
            backend=args.backend,
            runs=args.runs,
            against=args.model if args.against else None,
            seed=args.seed,
        )
    boards.say_target(args)
    if not args.json:
        tables.show_bench(result, args.long)
    return OK, result.to_json()


def debug(args: argparse.Namespace) -> Outcome:
    """Exit 1 where a layer differs from the reference."""
    from pybuild.params.files import read_arrays
    from pybuild.verify.layers import debug as look

    given = None
    if args.data is not None:
        given = read_arrays(read_bytes(args.data, SAMPLES), Path(args.data).name)
    library = built(args, args.model)
    ref = reference_of(args, library)
    result = look(args.model, library, given, ref, args.backend)
    boards.say_target(args)
    if not args.json:
        tables.show_debug(result, args.long)
    return OK if result.ok else MISMATCH, result.to_json()


VERBS: dict[str, Callable[[argparse.Namespace], Outcome]] = {
    "inspect": inspect,
    "report": report,
    "compare": compare,
    "check": check,
    "bench": bench,
    "run": run,
    "debug": debug,
    "fit": fit,
    "sweep": sweep,
    "init": init,
    "rebuild": rebuild,
    "trace": trace,
    "params": params,
    "boards": boards.boards,
}

"""`crt boards`, and the `--on BOARD` of check and bench.

Options, files in and out, tables; what a board does is pybuild.boards'.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pybuild
from pybuild.cli.output import tables
from pybuild.cli.output.progress import working
from pybuild.cli.quantise import reference_of
from pybuild.errors import BuildError, Problem, UsageError
from pybuild.files.say import say
from pybuild.progress import stage

if TYPE_CHECKING:
    from pybuild.boards.bench import BoardBench
    from pybuild.boards.device import Device
    from pybuild.package.curve import Fit
    from pybuild.quantisation.samples import Samples

HOST = "host"
OK, MISMATCH = 0, 1
# what a board's results are not compared with, and what to do instead
_ON_HOST = {
    "ref": (
        ", which must equal the host",
        "check the host with --ref, the board without",
    ),
    "against": ("", "time it with --on host"),
}
_COLUMNS = ("board", "cpu", "flash", "RAM", "compilers", "simulators", "missing")

Outcome = tuple[int, dict[str, Any]]


# ---- options ------------------------------------------------------------------


def target_of(args: argparse.Namespace) -> str:
    """Whose kernels to build: as asked, else the board's core's."""
    if "target" in args.given:
        return str(args.given["target"])
    on = getattr(args, "on", HOST)
    if on == HOST:
        return "generic"
    from pybuild.targets.board import load_board

    return load_board(on).core.target


def target_said(args: argparse.Namespace) -> str:
    """Whose kernels an output is about, and who said so, for its first line:
    cortex-m4, from board mps2-an386
    """
    from pybuild.targets.names import target_named

    asked = target_of(args)
    name = target_named(asked).name
    if "target" in args.given:
        origin = args.origin.get("target", "--target")
        return f"{name}, from {origin}{'' if asked == name else f' {asked}'}"
    if getattr(args, "on", HOST) != HOST:
        return f"{name}, from board {args.on}"
    return f"{name}: C for any CPU; --target CPU uses that core's instructions"


def say_target(args: argparse.Namespace) -> None:
    """Prints the first line of an output, unless it is JSON."""
    if not args.json:
        say(f"target {target_said(args)}")


def device_of(args: argparse.Namespace) -> Device:
    from pybuild.boards.device import open_device
    from pybuild.targets.names import core_of

    # kernels for no core in particular are built as code of the board's own
    core = str(args.target) if core_of(args.target) else ""
    chosen = args.on, args.toolchain, args.simulator, core, args.optimise
    return open_device(*chosen, both=bool(args.device), cores=args.cores)


def _idle(args: argparse.Namespace) -> Iterator[Problem]:
    """Words of the command line that another one leaves without meaning."""
    on, data = getattr(args, "on", HOST), getattr(args, "data", None)
    beside, idle = "--on host", ["toolchain", "simulator", "key-file"]
    if on != HOST:
        beside, idle = f"--on {on}", ["backend", "runs", "key-file"]
    elif getattr(args, "port", None):
        beside = "--port"
        idle = ["ref", "backend", "against", "toolchain", "simulator"]
    if getattr(args, "port", None) and args.cores > 1:
        what = "cannot be combined with --port: a board that is called runs one core"
        yield Problem("--cores", what)
    pairs = [(word, beside) for word in idle]
    if data is not None:
        pairs += [("samples", "--data"), ("seed", "--data")]
    for word, other in pairs:
        here = word in args.given and word not in args.origin
        if here and args.given[word] != "auto":
            hint = "--on BOARD" if other == "--on host" else ""
            hint = "--port ADDRESS" if word == "key-file" else hint
            yield Problem(f"--{word}", f"cannot be combined with {other}", hint)


def must_be_here(args: argparse.Namespace) -> None:
    """Checks the arguments before anything is built for a board.

    Errors  BuildError that says what to install, and which options have no meaning
    """
    idle = list(_idle(args))
    if idle:
        raise BuildError.of(idle)
    if getattr(args, "on", HOST) == HOST:
        return
    for option, (why, instead) in _ON_HOST.items():
        asked = getattr(args, option, None)
        if asked not in (None, "auto"):
            what = f"--{option} {asked} does not apply to a board{why}"
            raise BuildError("--on", what, instead)
    note = device_of(args).note
    if note:
        say(f"note: {note}", error=True)


# ---- verbs --------------------------------------------------------------------


def boards(args: argparse.Namespace) -> Outcome:
    """Lists all boards, or writes the files of one."""
    if args.out is not None:
        return _export(args)
    from pybuild.boards.available import board_facts

    facts = board_facts(args.board)
    if not args.json:
        _show([_row(one) for one in facts])
        for why in sorted({one["why"] for one in facts if one["why"]}):
            say(why)
    return OK, {"boards": facts}


def _show(rows: list[list[str]]) -> None:
    """A table; some lines for each board where that is too wide."""
    kinds = ("left", "left", "right", "right", "left", "left", "left")
    columns = list(zip(_COLUMNS, kinds, strict=True))
    room = tables.width()
    if room is None or tables.fits(columns, rows, room):
        tables.table("", columns, rows)
        return
    for name, cpu, flash, ram, *rest in rows:
        head = f"{name}: {cpu}, flash {flash}, RAM {ram}"
        for line in textwrap.wrap(head, room, subsequent_indent=" " * 12):
            say(line)
        for heading, text in zip(_COLUMNS[4:], rest, strict=True):
            lines = textwrap.wrap(text, max(room - 12, 20), break_on_hyphens=False)
            say(f"{heading:>10}  " + f"\n{'':12}".join(lines))


def _row(one: Mapping[str, Any]) -> list[str]:
    tools = ", ".join(tool["name"] for tool in one["toolchains"]) or "none"
    counting = set(one["counts"])
    machines = ", ".join(
        name if name in counting else f"{name} (does not count)"
        for name in one["simulators"]
    )
    missing = "; ".join(one["missing"]) or "nothing"
    sizes = [f"{one[key] // 1024:,}K" for key in ("flash", "ram")]
    return [one["name"], one["cpu"], *sizes, tools, machines or "none", missing]


def _export(args: argparse.Namespace) -> Outcome:
    from pybuild.boards.firmware.export import board_files
    from pybuild.package.folder import write_beside
    from pybuild.targets.board import load_board
    from pybuild.targets.toolchain import choose_toolchain

    if args.board is None:
        raise BuildError("--out", "needs a board", "crt boards BOARD -o DIR")
    board = load_board(args.board)
    files = board_files(board, choose_toolchain(args.toolchain, board.core))
    write_beside(Path(args.out), files)
    if not args.json:
        say(f"wrote {args.out}")
    return OK, {"board": board.name, "files": sorted(files)}


def own_samples(args: argparse.Namespace, library: pybuild.Library) -> Samples | None:
    """The samples of --data as inputs of the model; for a stream, of the whole
    window."""
    from pybuild.quantisation.samples import samples_of

    if args.data is None:
        return None
    graph = library.plan.graph
    graph = library.of_window() if graph.windows else graph
    labels = getattr(args, "labels", None)
    path = Path(labels) if labels else None
    return samples_of(graph, args.data, path, finite=False)


def check(
    args: argparse.Namespace, library: pybuild.Library, own: Samples | None
) -> Outcome:
    """Exit 1 where a value differs from this machine's."""
    from pybuild.boards.check import check_on_board

    if args.port:
        return _check_remote(args, library, own)
    device = device_of(args)
    with working(f"checking {Path(args.model).name} on {device.board.name}"):
        done = check_on_board(
            device, library, args.model, args.samples, args.per_layer, args.seed, own,
            reference_of(args, library) or "auto",
        )  # fmt: skip
    say_target(args)
    if not args.json:
        called = str if args.long else library.plan.graph.shown
        tables.show_check(done.result, called)
        show_fit(done.fit)
    return OK if done.result.ok else MISMATCH, done.to_json()


def _check_remote(
    args: argparse.Namespace, library: pybuild.Library, own: Samples | None
) -> Outcome:
    from pybuild.rpc.check import check_remote

    if args.on != HOST or args.per_layer:
        option = "on" if args.on != HOST else "per-layer"
        raise UsageError("--port", f"and --{option} cannot be combined")
    said = f"checking {Path(args.model).name} at {args.port}"
    with working(said) as progress, _remote(args.port):
        result = check_remote(
            args.port, library, args.model, args.samples, args.seed, own, progress,
            args.key_file,
        )  # fmt: skip
    say_target(args)
    if not args.json:
        tables.show_check(result)
    return OK if result.ok else MISMATCH, result.to_json()


def with_board(args: argparse.Namespace) -> argparse.Namespace:
    """The arguments of a bench, on a board if several cores are to be counted: time on
    this machine is of one.

    Errors  BuildError where no board has so many of the target's cores
    """
    if args.cores == 1 or args.on != HOST or args.port:
        return args
    from pybuild.boards.device import boards_hint, boards_with
    from pybuild.targets.names import target_named

    target = target_named(target_of(args)).name
    known = boards_with(args.cores, target)
    if not known:
        what = f"no board that is simulated has {args.cores} equal cores for {target}"
        raise BuildError("--cores", what, boards_hint(args.cores))
    say(f"note: counted on {known[0]}; --on BOARD takes another", error=True)
    return argparse.Namespace(**{**vars(args), "on": known[0]})


def bench(args: argparse.Namespace, library: pybuild.Library) -> Outcome:
    from pybuild.boards.bench import bench_program
    from pybuild.boards.device import program_of

    if args.port:
        return _bench_remote(args, library)
    device = device_of(args)
    with working(f"bench of {Path(args.model).name} on {device.board.name}") as shown:
        stage(shown, "compiling")
        program = program_of(device, library)
        stage(shown, "counting")
        shown(1, 2)
        result = bench_program(device, program, args.seed)
    from pybuild.chips.pace import cycles_on

    rough = None
    if result.cycles is None and library.tables.cores == 1:
        rough = cycles_on(device.core.target, program.library)
    say_target(args)
    if not args.json:
        show_bench(result, args.long, rough)
    return OK, {**result.to_json(), "rough_cycles": rough}


def ran(
    args: argparse.Namespace, library: pybuild.Library
) -> tuple[pybuild.Library, Mapping[str, Sequence[tuple[int, bool]]]]:
    """The number of times a board executes each line, and the library that fits it."""
    from pybuild.boards.executed import executed

    device = device_of(args)
    compiled = library if library.processor else library.again(emit="obj")
    with working(f"counting {Path(args.model).name} on {device.board.name}"):
        found = executed(device, compiled)
    assert isinstance(found.library, pybuild.Library)  # as it was given
    return found.library, found.counts


def _bench_remote(args: argparse.Namespace, library: pybuild.Library) -> Outcome:
    from pybuild.rpc.bench import bench_remote

    if args.on != HOST:
        raise UsageError("--port", "and --on cannot be combined")
    said = f"timing {Path(args.model).name} at {args.port}"
    with working(said) as progress, _remote(args.port):
        result = bench_remote(
            args.port, library, args.runs, args.seed, progress, args.key_file
        )
    say_target(args)
    if not args.json:
        rows = [
            [str(i), ", ".join(stage.layers), f"{stage.ticks:,}",
             f"{1e6 * stage.seconds:,.1f}"]
            for i, stage in enumerate(result.stages)
        ]  # fmt: skip
        columns = [("stage", "right"), ("layers", "left"), ("ticks", "right")]
        where = f"{result.model} on {result.board} at {result.port}"
        tables.table(where, [*columns, ("us", "right")], rows)
        told, clock = result.seconds, f"{result.hz:,.0f} Hz"
        say(f"run    {1e6 * told.median:,.1f} us, of {result.runs} runs", end="")
        say(f" ({1e6 * told.min:,.1f} to {1e6 * told.max:,.1f}), clock {clock}")
    return OK, result.to_json()


@contextmanager
def _remote(port: str) -> Iterator[None]:
    """Reports errors on the line as errors of the port."""
    from pybuild.rpc.line import RemoteError

    try:
        yield
    except RemoteError as error:
        what = str(error).removeprefix(f"{port}: ")
        raise BuildError(port, what) from None


def show_fit(fit: Fit | None) -> None:
    """Why another plan was taken than that of the options."""
    if fit is not None:
        say(f"plan   for a board of {fit.room:,} bytes, --ram-limit {fit.limit}: {fit}")


def show_bench(
    result: BoardBench, long: bool = False, rough: int | None = None
) -> None:
    """rough: cycles by a rough estimate, where no timings of the core are published"""
    columns = [("layer", "name"), ("operator", "left")]
    columns += [("MACs", "right"), ("instructions", "right"), ("per MAC", "right")]
    columns.append(("cycles", "right"))
    rows = [
        [x.name if long else x.short, x.op, f"{x.macs:,}", f"{x.instructions:,}",
         f"{x.instructions / x.macs:.2f}" if x.macs else "",
         "-" if x.cycles is None else f"{x.cycles:,}"]
        for x in result.layers
    ]  # fmt: skip
    device, ram, flash = result.device, result.ram, result.flash
    where = f"{device.board.name} ({device.core.name})"
    tables.table(f"{result.model} on {where}", columns, rows)
    say(f"total  {result.instructions:,} instructions of one inference, counted")
    if result.worst is not None and result.worst.instructions is not None:
        say(f"most   {result.worst.instructions:,} instructions for any input")
    elif result.worst is not None:
        say(f"most   not known: {'; '.join(result.worst.open)}")
    if result.cycles is not None:
        say(f"cycles {result.cycles:,} estimated from the core's published timings")
    elif rough is not None:
        say(f"cycles ~{rough:,}, a rough estimate as in crt fit: ", end="")
        say("no timings of the core are published")
    if len(result.cores) > 1:
        each = ", ".join(f"{spent:,}" for spent in result.cores)
        share = "" if result.share is None else f", {result.share:.2f} of one core's"
        share += "" if result.alone is None else f" {result.alone:,}"
        say(f"cores  {each}; {result.wall:,} from begin to end{share}; ", end="")
        say(f"stack of the second {ram.second:,} (at most {ram.second_bound:,})")
    held = ram.arena + ram.instance
    say(
        f"RAM    {held:,} bytes: arena {ram.arena:,}, instance {ram.instance:,}", end=""
    )
    say(f"; RAM with stack {held + ram.stack:,}: ", end="")
    say(f"stack {ram.stack:,} (at most {ram.stack_bound:,})", end="")
    say(f"; the program's other data {ram.data:,}")
    if long:
        frames = (f"{frame.name} {frame.bytes:,}" for frame in result.chain)
        say(f"chain  {', '.join(frames)}")
    show_fit(result.fit)
    say(f"flash  runtime {flash.runtime:,}, kernels {flash.kernels:,}", end="")
    say(f", tables {flash.tables:,}, weights {flash.weights:,}", end="")
    say(f", board {flash.board:,} bytes")
    say(f"by     {device.toolchain}, {device.simulator.name}")

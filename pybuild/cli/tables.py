"""Results as tables for people; knows only the values that verbs hand over."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pybuild.package.curve import Point
    from pybuild.package.image_report import ImageReport
    from pybuild.package.report import Boundary, Layer, RegionUse, Report, Stored
    from pybuild.run.bench import BenchResult
    from pybuild.run.check import CheckResult
    from pybuild.run.layers import DebugResult

# of a pipe or file, where nobody says how wide it is
PLAIN_WIDTH = 100
NAME_WIDTH = 48

Row = Sequence[str]


def table(title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Row]) -> None:
    """Prints rows under (heading, "left" | "right") columns."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    made = Table(box=box.SIMPLE, show_edge=False)
    for heading, side in columns:
        justify: Literal["left", "right"] = "right" if side == "right" else "left"
        made.add_column(heading, justify=justify, overflow="fold")
    for row in rows:
        made.add_row(*row)
    console = Console(width=width, highlight=False, markup=False)
    if title:
        console.print(title, style="bold", soft_wrap=True)
    console.print(made)


def short(name: str) -> str:
    """A name that fits a table: converters make some of hundreds of characters."""
    half = NAME_WIDTH // 2
    return name if len(name) <= NAME_WIDTH else f"{name[:half]}…{name[1 - half :]}"


def show_report(report: Report) -> None:
    _show_layers(report.layers)
    total = f"{report.macs:,} multiply-accumulates"
    ram, flash = report.ram, report.flash
    print(f"RAM    arena {ram.arena:,} bytes (lower bound {ram.lower_bound:,})", end="")
    print(f", instance {ram.instance:,}")
    print(f"flash  weights {flash.weights:,}, tables {flash.tables:,} bytes")
    print(f"work   {total}")
    for role, tensors in (("input", report.inputs), ("output", report.outputs)):
        for tensor in tensors:
            print(f"{role:6} {_boundary(tensor)}")
    for number, stage in enumerate(report.stages):
        if stage.steps > 1:
            names = ", ".join(short(name) for name in stage.layers)
            print(f"stage  {number}: {stage.steps} steps in lock step: {names}")
    for row in report.tensors:
        if row.rows:
            over = f" of {short(row.of)}" if row.of else ""
            print(f"{row.how:6} {short(row.tensor)}: {row.rows} rows{over}")
    if report.state:
        warm = f"; warm after {report.warm_runs} runs" if report.warm_runs else ""
        print(f"state  {report.state:,} bytes when saved, in the arena{warm}")
    if ram.unpacked:
        print(f"RAM    unpacked weights {ram.unpacked:,} bytes, for all instances")
    _show_stored("parameter", report.parameters)
    _show_stored("packed constant", report.packed)
    for device in report.devices:
        print(
            f"device {device.index} ({device.target}): {device.layers} layers, "
            f"arena {device.arena:,} bytes"
        )
    show_regions(report.regions)
    for copy in report.copies:
        print(f"copy   {copy.tensor}: {copy.bytes:,} bytes, {copy.why}")
    if report.emit == "obj":
        print(f"object for {report.cpu} {report.features}".rstrip())
    print(f"equal  {report.reference} (rounding {report.rounding})")


def show_regions(regions: Sequence[RegionUse]) -> None:
    whole = max(1, sum(region.moved for region in regions))
    for region in regions:
        print(
            f"region {region.name}: {region.bytes:,} of {region.limit:,} bytes", end=""
        )
        print(f", {region.speed}, {region.moved / whole:.1%} of bytes moved", end="")
        print(f", {region.copied:,} of weights copied" if region.copied else "")


def show_curve(points: Sequence[Point], bound: int) -> None:
    columns = [("RAM", "right"), ("instructions", "right")]
    rows = [(f"{p.ram:,}", f"{p.instructions:.3f}") for p in points]
    table("RAM against instructions, of the fastest plan's", columns, rows)
    over = min(p.ram for p in points) / bound
    print(f"no plan by rows is below {bound:,} bytes; the smallest is {over:.2f} times")


def _show_stored(kind: str, rows: Sequence[Stored]) -> None:
    if not rows:
        return
    columns = [(kind, "left"), ("bytes", "right"), ("in flash", "right")]
    columns += [("saved", "right"), ("arranged", "left")]
    shown = []
    for row in rows:
        saved = f"{100 * (row.bytes - row.stored) / max(row.bytes, 1):.1f} %"
        form = "row-major" if row.layout == 0 else f"for its kernel ({row.layout:08x})"
        form += f", second copy of {short(row.copy_of)}" if row.copy_of else ""
        sizes = (f"{row.bytes:,}", f"{row.stored:,}", saved)
        shown.append((short(row.name), *sizes, form if kind == "parameter" else ""))
    table("", columns, shown)


def show_image(report: ImageReport) -> None:
    columns = [("model", "left"), ("arena", "right"), ("weights", "right")]
    columns += [("tables", "right"), ("MACs", "right")]
    rows = [
        (m.name, f"{m.ram.arena:,}", f"{m.flash.weights:,}", f"{m.flash.tables:,}",
         f"{m.macs:,}")
        for m in report.models
    ]  # fmt: skip
    table(report.name, columns, rows)
    ram, flash = report.ram, report.flash
    print(f"RAM    arena {ram.arena:,} bytes (all apart {ram.separate:,})", end="")
    print(f", instances {ram.instance:,}")
    print(f"flash  weights {flash.weights:,}, tables {flash.tables:,} bytes", end="")
    print(f"; sharing saves {flash.saved:,}")
    for region in report.regions:
        print(f"region {region.name}: {region.bytes:,} of {region.limit:,} bytes")
    for group in report.exclusive:
        print(f"turns  {', '.join(group)}")
    for wire in report.connections:
        print(f"wire   {wire.ends}: {wire.bytes:,} bytes")
    for shared in report.shared:
        if shared.kind == "constant":
            users = ", ".join(shared.models)
            print(f"shared {shared.symbol}: {shared.bytes:,} bytes, {users}")


def _show_layers(layers: Sequence[Layer]) -> None:
    columns = [("layer", "left"), ("operator", "left")]
    columns += [("MACs", "right"), ("out bytes", "right")]
    rows = [(short(x.name), x.op, f"{x.macs:,}", f"{x.out_bytes:,}") for x in layers]
    table("", columns, rows)


def _boundary(tensor: Boundary) -> str:
    dims = ",".join(map(str, tensor.shape))
    text = f"{tensor.name}: {tensor.dtype}[{dims}]"
    if tensor.scale is not None:
        text += f", real = {tensor.scale:.6g} * (q - {tensor.zero_point})"
    return text


def show_check(result: CheckResult) -> None:
    columns = [("back end", "left"), ("mismatches", "right")]
    columns += [("max |diff|", "right"), ("first bad layer", "left")]
    rows = [
        (name, f"{t.mismatches:,}", f"{t.max_abs:g}", short(t.first_layer or "-"))
        for name, t in result.backends.items()
    ]
    table(f"{result.model} against {result.reference}", columns, rows)
    scope = f"{result.tensors} tensors" if result.per_layer else "outputs"
    print(f"{result.samples} samples, {scope}; {result.tolerance}")
    for note in result.notes:
        print(f"note: {note}")
    print("equal" if result.ok else "NOT equal")


def show_debug(result: DebugResult) -> None:
    heads = ("min", "max", "mean", "zeros", "saturated")
    columns = [("layer", "left"), ("operator", "left")]
    columns += [(head, "right") for head in heads]
    if result.reference:
        columns += [("mismatches", "right"), ("max |diff|", "right")]
    rows = []
    for x in result.layers:
        row = [short(x.layer), x.op, f"{x.min:g}", f"{x.max:g}", f"{x.mean:.4g}"]
        row += [f"{x.zeros:,}", f"{x.saturated:,}"]
        if result.reference and x.against is None:
            row += ["-", "-"]
        elif x.against is not None:
            row += [f"{x.against.mismatches:,}", f"{x.against.max_abs:g}"]
        rows.append(row)
    table(f"{result.model}, back end {result.backend}", columns, rows)
    if result.reference:
        print(f"against {result.reference}; {result.tolerance}")
        first = result.first_layer
        print(f"first layer that differs: {first}" if first else "equal")


def show_bench(result: BenchResult) -> None:
    columns = [("layer", "left"), ("operator", "left")]
    columns += [("MACs", "right"), ("microseconds", "right")]
    rows = [
        (short(x.name), x.op, f"{x.macs:,}", f"{x.seconds * 1e6:,.1f}")
        for x in result.layers
    ]
    table(f"{result.model} on this machine, back end {result.backend}", columns, rows)
    times = result.seconds
    print(
        f"{result.runs} runs, one thread: median {times.median * 1e6:,.1f} us", end=""
    )
    print(f", min {times.min * 1e6:,.1f}, max {times.max * 1e6:,.1f}")
    if result.against is not None:
        other = result.against
        print(f"{other.name}: median {other.seconds.median * 1e6:,.1f} us", end="")
        print(f", ratio {other.ratio:.2f}")

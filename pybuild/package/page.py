"""A report as tables and lines for people, the same on a terminal and in a notebook.
Knows only the report's values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pybuild.ir.graph import Graph, Tensor
from pybuild.package.grid import NAME, NUMBER, TEXT, Grid, Page, grid
from pybuild.package.image_report import ImageReport
from pybuild.package.memory import CONVERTED
from pybuild.package.report import (
    FLOAT_REFERENCE,
    FOLLOWED,
    Boundary,
    CoresUse,
    Layer,
    RegionUse,
    Report,
    Stored,
    boundary,
    layers,
)
from pybuild.package.totals import totals
from pybuild.quantisation.report import Quantisation

# rows of a table of noisy layers, worst first; --json has them all
NOISY = 12
# times the file, beyond which flash is said to be large; arrays that are named then
_MUCH, _NAMED = 1.1, 4
# operators of any type and shape, and why they are slow
_ANY_TYPE = {
    "conv": "a convolution of types that no layer has",
    "map": "element by element", "reduce": "element by element",
}  # fmt: skip
_SOME = 0.02  # of a model's instructions, from which on that is said


def report_page(report: Report, long: bool = False) -> Page:
    """long: layers and tensors by the names of the file, not by those for people"""
    names = _Names(report, long)
    return (
        _layers(report.layers, long),
        *_sizes(report),
        *_general(report, names),
        *_rows(report, names),
        *_weights(report, names),
        *_places(report, names),
        *_promises(report),
        *(f"less   {one}" for one in report.savings),
        *(quantisation_page(report.quantisation, long) if report.quantisation else ()),
    )


class _Names:
    """How a layer, tensor or parameter of the report is called."""

    def __init__(self, report: Report, long: bool) -> None:
        self.report, self.long = report, long

    def __call__(self, name: str) -> str:
        return name if self.long else self.report.short(name)


def _layers(layers: Sequence[Layer], long: bool) -> Grid:
    columns = [("layer", NAME), ("operator", TEXT)]
    columns += [("MACs", NUMBER), ("out bytes", NUMBER)]
    rows = [
        (x.name if long else x.short, x.op, f"{x.macs:,}", f"{x.out_bytes:,}")
        for x in layers
    ]
    return grid("", columns, rows)


def graph_page(graph: Graph) -> Page:
    """The contents of a model, before its cost is known."""
    rows = layers(graph)
    inputs = (boundary(graph.tensor(name)) for name in graph.inputs)
    outputs = (boundary(graph.tensor(name)) for name in graph.outputs)
    work = f"work   {sum(row.macs for row in rows):,} multiply-accumulates"
    return (_layers(rows, False), work, *_ends(inputs, outputs))


def tensors_page(
    inputs: Iterable[Tensor], outputs: Iterable[Tensor], parameters: Iterable[Tensor]
) -> Page:
    """The inputs, outputs and parameters of an instance."""
    columns = [("", TEXT), ("name", NAME), ("type", TEXT), ("real", TEXT)]
    roles = (("input", inputs), ("output", outputs), ("parameter", parameters))
    rows = []
    for role, tensors in roles:
        for row in map(boundary, tensors):
            real = "" if row.scale is None else _real(row)
            rows.append((role, row.name, _type(row), real))
    return (grid("", columns, rows),)


def _sizes(report: Report) -> Iterator[str]:
    ram, flash = report.ram, report.flash
    bound = f"({ram.lower_bound:,} alive at once)"
    whole = totals(report)
    parts = f"arena {ram.arena:,} {bound}, instance {ram.instance:,}"
    parts += f", weights unpacked for all instances {ram.unpacked:,}" * (
        ram.unpacked > 0
    )
    yield f"RAM    {whole.ram:,} bytes without stack: {parts}"
    held = f"weights {flash.weights:,}, tables {flash.tables:,} bytes"
    share = (flash.weights + flash.tables) / max(report.file_bytes, 1)
    held += f" ({share:.2f} of the file)" * (report.file_bytes > 0)
    yield f"flash  {held}, code {whole.code:,} by estimate"
    if flash.removed_channels:
        gone = f"{flash.removed_channels:,} channels that never change are removed"
        gone += f", with {flash.removed:,} bytes of constants"
        yield f"note   {gone}; results stay equal bit for bit"
    if report.file_bytes and share > _MUCH:
        yield f"note   flash is larger than the file: {_largest(report)}"
    spent = f"{whole.instructions:,} instructions by estimate"
    yield f"work   {report.macs:,} multiply-accumulates, {spent}"
    yield from _ends(report.inputs, report.outputs)
    if report.signatures:
        mine, *others = report.signatures
        yield f"signature {mine} of {len(others) + 1}; others: {', '.join(others)}"


def _general(report: Report, names: _Names) -> Iterator[str]:
    """The share of operators that take any type and shape, an element at a time."""
    ops = {row.name: row.op for row in report.layers}
    rows = [row for row in report.kernels if ops.get(row.layer) in _ANY_TYPE]
    spent = sum(row.instructions for row in rows)
    share = spent / max(totals(report).instructions, 1)
    if share > _SOME:
        counts = Counter(ops[row.layer] for row in rows).most_common()
        kinds = ", ".join(f"{op} {count} ({_ANY_TYPE[op]})" for op, count in counts)
        most = max(rows, key=lambda row: row.instructions).layer
        yield f"slow   {share:.0%} of the instructions, by estimate: {kinds}"
        yield f"       most in {names(most)}"


def _largest(report: Report) -> str:
    """The largest arrays in flash, in bytes."""
    rows = [(row.symbol, row.bytes) for row in report.weights]
    rows.append(("tables of layers and tensors", report.flash.tables))
    rows.sort(key=lambda row: -row[1])
    return ", ".join(f"{name} {size:,}" for name, size in rows[:_NAMED]) + " bytes"


def _ends(inputs: Iterable[Boundary], outputs: Iterable[Boundary]) -> Iterator[str]:
    """Inputs and outputs: under these names they are set and got."""
    for role, tensors in (("input", inputs), ("output", outputs)):
        for row in tensors:
            real = "" if row.scale is None else f", real = {_real(row)}"
            yield f"{role:6} {row.name}: {_type(row)}{real}"


def _type(row: Boundary) -> str:
    return f"{row.dtype}[{','.join(map(str, row.shape))}]"


def _real(row: Boundary) -> str:
    return f"{row.scale:.6g} * (q - {row.zero_point})"


def _rows(report: Report, names: _Names) -> Iterator[str]:
    for number, stage in enumerate(report.stages):
        if stage.steps > 1:
            mine = ", ".join(map(names, stage.layers))
            yield f"stage  {number}: {stage.steps} steps in lock step: {mine}"
    for row in report.tensors:
        if row.placement == CONVERTED:
            yield f"set    {names(row.tensor)} keeps {names(row.shares_with)} alone"
        if row.rows:
            over = f" of {names(row.shares_with)}" if row.shares_with else ""
            rows = "1 row" if row.rows == 1 else f"{row.rows} rows"
            yield f"{row.placement:6} {names(row.tensor)}: {rows}{over}"
    if report.cores is not None:
        yield f"cores  {_cores(report.cores, report.ram.arena)}"
    if report.state:
        warm = f"; warm after {report.warm_runs} runs" if report.warm_runs else ""
        yield f"state  {report.state:,} bytes when saved, in the arena{warm}"


def _cores(use: CoresUse, arena: int) -> str:
    if not use.sliced:
        return f"one: {use.cores} would take no less time"
    share = f"{use.share:.2f} of one core's instructions by estimate"
    more = f"arena {arena:,} instead of {use.arena:,} bytes"
    return f"{use.cores}: {share}, {use.sliced} of {use.steps} steps in slices, {more}"


def _weights(report: Report, names: _Names) -> Iterator[Grid | str]:
    stored = (
        ("parameter", report.parameters),
        ("packed constant", report.packed_constants),
    )
    for kind, rows in stored:
        if rows:
            yield _stored(kind, rows, names)


def _stored(kind: str, stored: Sequence[Stored], names: _Names) -> Grid:
    columns = [(kind, NAME), ("bytes", NUMBER), ("in flash", NUMBER)]
    columns += [("saved", NUMBER), ("arranged", TEXT)]
    rows = []
    for row in stored:
        saved = f"{100 * (row.bytes - row.stored) / max(row.bytes, 1):.1f} %"
        form = "row-major" if row.layout == 0 else f"for its kernel ({row.layout:08x})"
        form += f", second copy of {names(row.copy_of)}" if row.copy_of else ""
        sizes = (f"{row.bytes:,}", f"{row.stored:,}", saved)
        rows.append((names(row.name), *sizes, form if kind == "parameter" else ""))
    return grid("", columns, rows)


def _places(report: Report, names: _Names) -> Iterator[str]:
    for device in report.devices:
        yield (
            f"device {device.index} ({device.target}): {device.layers} layers, "
            f"arena {device.arena:,} bytes"
        )
    yield from region_lines(report.regions)
    for copy in report.copies:
        yield f"copy   {names(copy.tensor)}: {copy.bytes:,} bytes, {copy.reason}"


def region_lines(regions: Sequence[RegionUse]) -> Iterator[str]:
    whole = max(1, sum(region.moved for region in regions))
    for region in regions:
        text = f"region {region.name}: {region.bytes:,} of {region.limit:,} bytes"
        text += f", {region.speed}, {region.moved / whole:.1%} of bytes moved"
        text += f", {region.copied:,} of weights copied" if region.copied else ""
        yield text


def _promises(report: Report) -> Iterator[str]:
    if report.emit == "obj":
        yield f"object for {report.cpu} {report.features}".rstrip()
    if report.reference == FLOAT_REFERENCE:
        yield "floats will be near the reference's; crt check compares"
    else:
        yield (
            f"bits   will follow {FOLLOWED[report.rounding]} "
            f"(rounding {report.rounding}); crt check compares"
        )


def verdict(report: Report | ImageReport) -> str:
    """What was built, in one line; of several models without code, which they share."""
    if isinstance(report, ImageReport):
        ram, flash = report.ram, report.flash
        held = f"{flash.weights + flash.tables:,} of weights and tables in flash"
        return f"sum    {ram.arena + ram.instance:,} bytes of RAM without stack, {held}"
    whole = totals(report)
    spent = f"{whole.instructions:,} instructions"
    guess = f"{whole.flash:,} of flash and {spent} by estimate"
    return f"sum    {whole.ram:,} bytes of RAM without stack; {guess}"


def quantisation_page(report: Quantisation, long: bool = False) -> Page:
    """The loss by quantising, by layer and in total."""
    columns = [("layer", NAME), ("operator", TEXT), ("in", TEXT)]
    columns.append(("signal to noise", NUMBER))
    rows = [
        (row.name if long else row.short, row.op, row.kind, _decibels(row.snr))
        for row in report.layers[:NOISY]
    ]
    title = f"Quantised by {report.method} over {report.samples} samples"
    return (grid(title, columns, rows), *_losses(report, long))


def _losses(report: Quantisation, long: bool) -> Iterator[str]:
    left = len(report.layers) - NOISY
    if left > 0:
        yield f"and {left} less noisy layers"
    for row in report.floats:
        yield f"float  {row.name if long else row.short} ({row.op}): {row.reason}"
    done = ["weights fitted"] * report.fitted
    done += [f"{report.equalised} groups of tensors equalised"] * (report.equalised > 0)
    done += ["biases corrected"] * report.bias_corrected
    if done:
        yield f"also   {', '.join(done)}"
    yield f"error  {report.error:.2%} of the outputs, root mean square"
    if report.score:
        s = report.score
        rights = f"{s.right_float} of {s.samples} in float"
        yield f"right  {rights}, {s.right_quantised} quantised"


def _decibels(value: float | None) -> str:
    return "none lost" if value is None else f"{value:.1f} dB"


def image_page(report: ImageReport) -> Page:
    columns = [("model", NAME), ("arena", NUMBER), ("weights", NUMBER)]
    columns += [("tables", NUMBER), ("MACs", NUMBER)]
    rows = [
        (m.name, f"{m.ram.arena:,}", f"{m.flash.weights:,}", f"{m.flash.tables:,}",
         f"{m.macs:,}")
        for m in report.models
    ]  # fmt: skip
    return (grid(report.name, columns, rows), *_image_lines(report))


def _image_lines(report: ImageReport) -> Iterator[str]:
    ram, flash = report.ram, report.flash
    apart = f"(all apart {ram.separate:,})"
    parts = f"arena {ram.arena:,} {apart}, instances {ram.instance:,}"
    yield f"RAM    {ram.arena + ram.instance:,} bytes without stack: {parts}"
    sizes = f"weights {flash.weights:,}, tables {flash.tables:,} bytes"
    yield f"flash  {sizes}; sharing saves {flash.saved:,}"
    for region in report.regions:
        yield f"region {region.name}: {region.bytes:,} of {region.limit:,} bytes"
    for group in report.exclusive:
        yield f"turns  {', '.join(group)}"
    for wire in report.connections:
        yield f"wire   {wire.ends}: {wire.bytes:,} bytes"
    for shared in report.shared:
        if shared.kind == "constant":
            users = ", ".join(shared.models)
            yield f"shared {shared.symbol}: {shared.bytes:,} bytes, {users}"

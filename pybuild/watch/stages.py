"""The results of each stage of a build: the graph after each pass, the kernels that a
layer could have, the plan, and a kernel's loops, C, LLVM IR and assembly.

Reads what there is; makes nothing that a build would not make.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pybuild.bounds.layers import LayerBounds, bounds
from pybuild.emit.kernels import c, llvm
from pybuild.emit.llvm.object import assembly
from pybuild.errors import BuildError, fitting
from pybuild.host.jit import vector_features
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Func
from pybuild.ir.loop_text import text as loop_text
from pybuild.kernels.base.external import External
from pybuild.library import Library
from pybuild.package.grid import NAME, NUMBER, TEXT, Page, grid
from pybuild.select.choose import Option
from pybuild.select.devices import processor_of
from pybuild.targets.llvm import LLVM

# of each function: of each instruction how often it was executed, and whether it only
# fills up to an address
Ran = Mapping[str, Sequence[tuple[int, bool]]]
_UNTOLD = "how often each line was executed cannot be told"


def stage_page(
    library: Library,
    stage: str,
    layer: str | None = None,
    ran: Ran | None = None,
) -> Page:
    """The stage for people.

    stage   as --stage has it; layer: short name or the file's; None: all there are
    ran     for assembly: how often each instruction of a function was executed, and
            whether it only fills up to an address
    Errors  BuildError for a layer that is not there, and for assembly of no core
    """
    made: Mapping[str, Callable[[Library, str | None], Iterator[object]]] = {
        "passes": _passes,
        "kernels": _kernels,
        "plan": _plan,
        "loop": _loops,
        "c": _c,
        "llvm": _llvm,
        "asm": functools.partial(_assembly, ran=ran or {}),
        "bounds": _bounds,
    }
    known = [library.plan.graph.called(node) for node in library.plan.graph.nodes]
    if layer is not None and not _is_there(library, stage, layer):
        what = f"there is no layer '{layer}'"
        raise BuildError("--stage", what, fitting(layer, known))
    return tuple(made[stage](library, layer))  # type: ignore[arg-type]


def _nodes(graph: Graph, layer: str) -> list[Node]:
    return [node for node in graph.nodes if graph.is_called(layer, node)]


def _is_there(library: Library, stage: str, layer: str) -> bool:
    """Passes know layers that are gone after them, too."""
    if stage != "passes":
        return bool(_nodes(library.plan.graph, layer))
    graphs = library.model.after_each_pass(library.options)
    return any(_nodes(graph, layer) for _, graph in graphs)


# ---- passes ------------------------------------------------------------------------


def _lines(graph: Graph) -> list[tuple[str, frozenset[str]]]:
    """A line for each node by short names, and what it may be called."""
    made = []
    for node in graph.nodes:
        attrs = " ".join(f"{k}={node.attrs[k]!r}" for k in sorted(node.attrs))
        reads = ", ".join(graph.shown(name) if name else "-" for name in node.inputs)
        outs = [graph.tensor(name) for name in node.outputs]
        makes = ", ".join(
            f"{graph.shown(t.name)}: {t.dtype.value}{list(t.shape)}" for t in outs
        )
        where = f" on device {node.device}" if node.device else ""
        line = f"{makes} = {node.op}({reads}) {attrs}".rstrip() + where
        own = (node.name, *node.outputs, graph.called(node))
        made.append((line, frozenset([*own, *map(graph.shown, node.outputs)])))
    return made


def _passes(library: Library, layer: str | None) -> Iterator[str]:
    """The changes of each pass, as a diff; for one layer, only lines that name it."""
    graphs = library.model.after_each_pass(library.options)
    before = _lines(graphs[0][1])
    head, first = graphs[0]
    yield f"{head}: {len(first.nodes)} nodes"
    if layer is None:
        yield from (f"  {line}" for line, _ in before)
    else:
        yield from (f"  {line}" for line, names in before if layer in names)
    for name, graph in graphs[1:]:
        after = _lines(graph)
        own = {line for line, names in (*before, *after) if layer in names}
        old, new = [line for line, _ in before], [line for line, _ in after]
        changed = [
            line
            for line in difflib.ndiff(old, new)
            if line[:2] in ("- ", "+ ") and (layer is None or line[2:] in own)
        ]
        if changed:
            yield f"{name}: {len(graph.nodes)} nodes"
            yield from changed
        before = after


# ---- kernels -----------------------------------------------------------------------


def _kernels(library: Library, layer: str | None) -> Iterator[object]:
    """The candidates of each layer with their prices, as the choice saw them."""
    graph = library.plan.graph
    chosen = {
        step.node.output: step.candidate
        for step in library.plan.steps
        if step.node.outputs
    }
    columns = [("", TEXT), ("kernel", NAME), ("instructions", NUMBER)]
    columns += [("times", NUMBER), ("code", NUMBER), ("with tables", NUMBER)]
    for node in graph.nodes:
        options = library.kernels.get(node.output, ())
        if not options or (layer is not None and not graph.is_called(layer, node)):
            continue
        step = chosen.get(node.output)
        mine = next((o for o in options if step and o.computes(step)), None)
        rows = [_row(option, mine) for option in options if option.func is not None]
        if rows:
            yield grid(f"{graph.called(node)} ({node.op})", columns, rows)


def _row(option: Option, mine: Option | None) -> tuple[str, ...]:
    """A row of the table; mine: the chosen kernel; None: the layer moves no bytes."""
    times = option.instructions / max(mine.instructions if mine else 0, 1)
    mark = "chosen" if option is mine else ("" if option.usable else "by rows only")
    sizes = f"{option.bytes:,}", f"{option.bytes + option.tables:,}"
    return (
        mark,
        option.kernel,
        f"{option.instructions:,}",
        f"{times:.2f}" * bool(mine),
        *sizes,
    )


# ---- plan --------------------------------------------------------------------------


def _plan(library: Library, layer: str | None) -> Iterator[object]:
    """Steps in their stages, and what lies where."""
    graph, plan = library.plan.graph, library.plan
    rows = []
    for number, stage in enumerate(plan.stages):
        for index in range(stage.first, stage.end):
            step = plan.steps[index]
            if layer is not None and not graph.is_called(layer, step.node):
                continue
            func = step.candidate.func
            kernel = func.name if func is not None else "(task)"
            work = f"{step.candidate.images * step.candidate.bands:,}"
            where = f"{step.scratch_at:,}" if step.scratch_at >= 0 else ""
            called = graph.called(step.node)
            scratch = f"{step.candidate.scratch:,}"
            rows.append((str(number), str(index), called, kernel, work, scratch, where))
    columns = [("stage", NUMBER), ("step", NUMBER), ("layer", NAME), ("kernel", NAME)]
    columns += [("calls", NUMBER), ("scratch", NUMBER), ("at", NUMBER)]
    yield grid("Steps", columns, rows)
    for facts in library.report.stages:
        yield from facts.drawing
    columns = [("region", TEXT), ("at", NUMBER), ("bytes", NUMBER)]
    columns += [("alive in steps", TEXT), ("holds", NAME)]
    shown = [row for row in library.tables.memory if layer is None or layer in row.what]
    places = [(m.region, f"{m.at:,}", f"{m.bytes:,}", m.live, m.what) for m in shown]
    yield grid("Memory", columns, places)
    size, bound = plan.arena_bytes, plan.lower_bound
    yield f"arena {size:,} bytes; no order of this plan is below {bound:,}"


# ---- bounds ------------------------------------------------------------------------


def _bounds(library: Library, layer: str | None) -> Iterator[object]:
    """Loads and stores of each kernel, and which are proven to stay inside."""
    graph = library.plan.graph
    known = {graph.called(node) for node in _nodes(graph, layer)} if layer else None
    shown = [x for x in bounds(library.plan) if known is None or x.layer in known]
    columns = [("layer", NAME), ("kernel", NAME), ("loads and stores", NUMBER)]
    columns += [("inside", TEXT)]
    rows = [(x.layer, x.kernel, f"{x.accesses:,}", _inside(x)) for x in shown]
    yield grid("Loads and stores, for any input", columns, rows)
    for one in shown:
        yield from (f"{one.layer}: {what}" for what in one.open)


def _inside(found: LayerBounds) -> str:
    if found.foreign:
        return "not known: the user's own"
    return f"{len(found.open)} not proven" if found.open else "proven"


# ---- a kernel ----------------------------------------------------------------------


def _funcs(library: Library, layer: str | None) -> Iterator[tuple[str, Func]]:
    """Kernels as the files have them, and the layers that they serve."""
    graph = library.plan.graph
    wanted = None
    if layer is not None:
        wanted = {graph.called(node) for node in _nodes(graph, layer)}
    for func, users in library.tables.kernels:
        layers = list(dict.fromkeys(user.layer for user in users))
        if wanted is None or wanted & set(layers):
            yield f"{func.name}: {', '.join(layers)}", func


def _loops(library: Library, layer: str | None) -> Iterator[str]:
    for title, func in _funcs(library, layer):
        yield f"# {title}"
        yield _foreign(func) or loop_text(func)


def _c(library: Library, layer: str | None) -> Iterator[str]:
    for title, func in _funcs(library, layer):
        yield f"/* {title} */"
        yield _foreign(func) or c.function(func)


def _llvm(library: Library, layer: str | None) -> Iterator[str]:
    features = vector_features()
    if library.targets[0].name not in ("generic", "host"):
        features = processor_of(library.options.target).has
    for title, func in _funcs(library, layer):
        yield f"; {title}"
        yield _foreign(func) or llvm.function(func, features=features)


def _foreign(func: Func) -> str:
    return f"{func.name} is the user's own" if isinstance(func, External) else ""


def _assembly(library: Library, layer: str | None, ran: Ran) -> Iterator[str]:
    """By LLVM, for the core of the build; instructions of each block and in all, and
    before each line how often it was executed."""
    if library.targets[0].name not in LLVM:
        what = f"asm needs a core, which '{library.targets[0].name}' is not"
        raise BuildError("--stage", what, "--target cortex-m4")
    processor = processor_of(library.options.target)
    bodies = _functions(assembly(library.tables, processor, library.options.optimise))
    shown: set[str] = set()
    for title, func in _funcs(library, layer):
        for name in _called(func.name, bodies):
            body = bodies[name]
            count = sum(map(_is_instruction, body))
            head = title if name == func.name else f"{name}, which kernels call"
            often = _often(library, func) if name == func.name else ""
            if name not in shown:
                shown.add(name)
                yield f"@ {head}: {count} instructions of {processor.cpu}{often}"
                yield "\n".join(_executed(name, _counted(body), ran))


def _executed(name: str, lines: Iterable[str], ran: Ran) -> Iterator[str]:
    """Lines of a function, each instruction behind how often it was executed."""
    if name not in ran:
        yield from lines
        return
    kept = list(lines)
    own = sum(map(_is_instruction, kept))
    made = sum(not fills for _, fills in ran[name]) + sum(map(_fills, kept))
    if own != made:
        yield f"@ the linker made {made} instructions of {own}: " + _UNTOLD
        yield from kept
        return
    counts = [*ran[name], (0, False)]
    for line in kept:
        while counts[0][1] and not _fills(line):
            yield f"{counts.pop(0)[0]:>12,} \tnop\t@ up to the next address"
        times = f"{counts.pop(0)[0]:,}" if _is_instruction(line) else ""
        yield f"{times:>12} {line}"


def _fills(line: str) -> bool:
    """An instruction that does nothing."""
    return line.split()[0] in ("nop", "nop.w")


def _often(library: Library, func: Func) -> str:
    """The number of calls of a kernel in an inference; layers in lock step call it for
    each band.
    """
    rows = (row for row in library.tables.steps if row.kernel == func.name)
    calls = sum(row.images * row.bands for row in rows)
    return f", called {calls:,} time{'s' * (calls != 1)} an inference"


def _called(name: str, bodies: Mapping[str, list[str]]) -> list[str]:
    """A function and those of the model that it calls, directly or not."""
    found, todo = list[str](), [name]
    while todo:
        name = todo.pop()
        if name in bodies and name not in found:
            found.append(name)
            todo += [word for line in bodies[name] for word in line.split()[1:2]]
    return found


def _functions(text: str) -> dict[str, list[str]]:
    """The lines of each function of an assembly file."""
    found: dict[str, list[str]] = {}
    now: list[str] | None = None
    for line in text.splitlines():
        name = line.partition(":")[0]
        if re.match(r"[A-Za-z_]", line):
            now = found.setdefault(name, [])
        elif line.startswith(".Lfunc_end"):
            now = None
        elif now is not None and _is_code(line):
            now.append(line.rstrip())
    return found


def _is_code(line: str) -> bool:
    """Instructions and labels that they jump to; no directive."""
    word = line.split("@")[0].strip()
    return bool(word) and (line.startswith(".L") or not word.startswith("."))


def _is_instruction(line: str) -> bool:
    return line[:1].isspace()


def _counted(body: list[str]) -> Iterator[str]:
    """Each label with the instructions up to the next one."""
    starts = [i for i, line in enumerate(body) if not _is_instruction(line)]
    for index, line in enumerate(body):
        if _is_instruction(line):
            yield line
            continue
        end = next((i for i in starts if i > index), len(body))
        yield f"{line.split()[0]:24}@ {end - index - 1} instructions"

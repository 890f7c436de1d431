"""The comments of the generated C: on kernels, memory and tables.

Words only: C's own rules for comments are c.py's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pybuild.emit.tables.tables import MemoryRow, Tables, User
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Func
from pybuild.kernels.base.candidate import Candidate, RowAccess

# names that are listed before the rest is only counted
_NAMED, _GROUPS = 3, 4

# a label and its text
Fields = list[tuple[str, str]]


def few(names: Iterable[str], most: int = _NAMED) -> str:
    """The first names, and how many more there are."""
    known = list(dict.fromkeys(names))
    if len(known) <= most + 1:
        return ", ".join(known)
    return f"{', '.join(known[:most])} and {len(known) - most} more"


def kernel_fields(func: Func, users: Sequence[User]) -> Fields:
    """The fields of a kernel's comment: what it computes, which layers use it, and its
    arguments."""
    lines = func.doc.splitlines()
    fields = [(line[:10].strip(), line[10:]) for line in lines]
    fields += [("Layers" if not at else "", text) for at, text in enumerate(_of(users))]
    if users:
        fields.append(("p[]", _pointers([user.pointers for user in users])))
    if func.args:
        fields.append(("a[]", ", ".join(arg.name for arg in func.args)))
    return fields


def _of(users: Sequence[User]) -> list[str]:
    """A line for the layers that are alike."""
    groups: dict[tuple[str, str], list[str]] = {}
    for user in users:
        groups.setdefault((user.model, user.what), []).append(user.layer)
    lines = []
    for (model, what), layers in list(groups.items())[:_GROUPS]:
        whose = f"{model}: " if model else ""
        lines.append(f"{whose}{few(layers)}: {what}")
    rest = list(groups.items())[_GROUPS:]
    if rest:
        count = sum(len(layers) for _, layers in rest)
        models = few(model for (model, _), _ in rest if model)
        whose = f" of {models}" if models else ""
        lines.append(f"and {count} more layer{'s' * (count > 1)}{whose}")
    return lines


def _pointers(lists: Sequence[tuple[tuple[str, int], ...]]) -> str:
    """A comment on the pointers; with numbers if all layers have the same."""
    first = lists[0]
    if any(other != first for other in lists):
        return f"in this order: {', '.join(what for what, _ in first)}"
    found, at = [], 0
    for what, count in first:
        where = str(at) if count == 1 else f"{at}-{at + count - 1}"
        found.append(f"{where} {what}")
        at += count
    return ", ".join(found)


def pointers_of(candidate: Candidate) -> tuple[tuple[str, int], ...]:
    """The roles of a kernel's pointers p[], and how many pointers each has."""
    found = []
    for role, accesses in (("output", candidate.outputs), ("input", candidate.inputs)):
        several = len(accesses) > 1
        for number, access in enumerate(accesses, 1):
            name = f"{role} {number}" if several else f"the {role}"
            found.append((_rows_of(name, access), access.window))
    found += [(packed.role, 1) for packed in candidate.constants]
    if candidate.scratch:
        found.append(("scratch", 1))
    return tuple(found)


def _rows_of(name: str, access: RowAccess) -> str:
    if access.window > 1:
        return f"rows of {name}"
    return f"row of {name}" if access.rows > 1 else f"all of {name}"


def operation(node: Node, graph: Graph) -> str:
    """Operator, window and shapes, for readers of the C."""

    def shape(name: str) -> str:
        return f"[{','.join(map(str, graph.tensor(name).shape))}]"

    where = f" on device {node.device}" if node.device else ""
    reads = " ".join(shape(n) for n in node.inputs if n and n not in graph.constants)
    makes = " ".join(shape(n) for n in node.outputs)
    return f"{node.op}{_window(node, graph)} {reads} -> {makes}{where}"


def _window(node: Node, graph: Graph) -> str:
    kernel = node.attrs.get("kernel", ())
    if node.op in ("conv2d", "depthwise_conv2d"):
        weights = graph.tensor(node.inputs[1]).shape
        kernel = weights[1:3] if node.op == "conv2d" else weights[:2]
    words = ["x".join(map(str, kernel))] if kernel else []
    for name, word in (("strides", "stride"), ("dilations", "dilation")):
        steps = node.attrs.get(name, ())
        if kernel and any(step > 1 for step in steps):
            same = steps[:1] if len(set(steps)) == 1 else steps
            words.append(f"{word} {'x'.join(map(str, same))}")
    if kernel and any(node.attrs.get("pads", ())):
        words.append("padded")
    if node.attrs.get("groups", 1) > 1 and kernel:
        words.append(f"groups {node.attrs['groups']}")
    return "".join(f" {word}" for word in words)


def memory_lines(tables: Tables) -> list[str]:
    """The map of the memory that a run uses."""
    if not tables.memory:
        return []
    lines = [
        "What a run keeps where: offset, bytes, live range in steps, what it is.",
    ]
    for row in tables.regions:
        mine = [r for r in tables.memory if r.region == row.name]
        if mine:
            lines += ["", f"{row.name}: {row.bytes} bytes", *_aligned(mine)]
    return lines


def _aligned(rows: Sequence[MemoryRow]) -> list[str]:
    wide = [max(len(str(r.at)) for r in rows), max(len(str(r.bytes)) for r in rows)]
    live = max(len(r.live) for r in rows)
    return [
        f"  {r.at:>{wide[0]}} {r.bytes:>{wide[1]}}  {r.live:<{live}}  {r.what}"
        for r in rows
    ]


def once(comments: Sequence[str]) -> str:
    """The comment of an array that several layers share: the first layer, then the
    others."""
    first, *more = dict.fromkeys(comments)
    others = few(comment.split(",")[0] for comment in more)
    return f"{first}\nand {others}" if more else first

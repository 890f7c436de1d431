"""Why each layer has the kernel that it has: rows of the report.

Values only; knows no code.
"""

from __future__ import annotations

from pybuild.plan.plan import Plan
from pybuild.records import dataclass, renamed
from pybuild.select.choose import Option, Options


@dataclass(frozen=True)
class Alternative:
    """A kernel that could have computed a layer, as estimated; bytes of its code."""

    kernel: str
    instructions: int
    bytes: int


@renamed(why="reason")
@dataclass(frozen=True)
class KernelChoice:
    """A layer's kernel: instructions of an inference and bytes of code, both as
    estimated; other layers may share the code. output: the tensor that it makes.
    """

    layer: str
    kernel: str
    instructions: int
    bytes: int
    reason: str
    alternatives: tuple[Alternative, ...]
    output: str = ""


@dataclass(frozen=True)
class CodePiece:
    """A kernel, or a function that kernels share, bytes of it as estimated, and the
    short names of what it computes.
    """

    name: str
    bytes: int
    layers: tuple[str, ...]


def code_pieces(plan: Plan, options: Options) -> tuple[CodePiece, ...]:
    """Each once, the largest first."""
    sizes: dict[str, int] = {}
    users: dict[str, list[str]] = {}
    for key, (_, option) in _used(plan, options).items():
        sizes.update(option.pieces)
        for name in option.pieces:
            users.setdefault(name, []).append(plan.graph.shown(key))
    order = sorted(sizes, key=lambda name: (-sizes[name], name))
    return tuple(CodePiece(name, sizes[name], tuple(users[name])) for name in order)


def _used(plan: Plan, options: Options) -> dict[str, tuple[str, Option]]:
    """The name and the kernel of each layer, by its output."""
    used: dict[str, tuple[str, Option]] = {}
    for step in plan.steps:
        if not step.node.outputs:
            continue  # it waits for a device
        for option in options.get(step.node.output, ()):
            if option.func is not None and option.computes(step.candidate):
                used.setdefault(step.node.output, (step.node.name, option))
    return used


def kernel_choices(plan: Plan, options: Options) -> tuple[KernelChoice, ...]:
    """A row for each layer that has a kernel, in the order of the plan."""
    used = _used(plan, options)
    pieces: dict[str, int] = {}
    for _, option in used.values():
        pieces.update(option.pieces)
    rows = []
    for key, (layer, option) in used.items():
        others = [o for o in options[key] if o is not option]
        rows.append(
            KernelChoice(
                layer,
                option.kernel,
                option.instructions,
                option.bytes,
                _why(option, others, pieces),
                tuple(Alternative(o.kernel, o.instructions, o.bytes) for o in others),
                key,
            )
        )
    return tuple(rows)


def _why(option: Option, others: list[Option], pieces: dict[str, int]) -> str:
    """pieces: of all kernels that are used, and their bytes"""
    if not others:
        return "the only one"
    fastest = min(others, key=lambda o: o.instructions)
    more = option.instructions - fastest.instructions
    if more <= 0:
        return "the fastest"
    saved = sum(size for name, size in fastest.pieces.items() if name not in pieces)
    if saved:
        return f"saves {saved} bytes of code for {more} instructions"
    return "needs less memory"

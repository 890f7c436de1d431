"""A stage in lock step as a drawing, for the readers of the generated C."""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.plan.plan import Plan, Step
from pybuild.plan.schedule.stages import Stage
from pybuild.records import dataclass


@dataclass(frozen=True)
class Arrow:
    """From a step of the plan, or a tensor that is there before the stage, to a step.

    rows  that a ring between them holds; 0: the tensor is whole
    """

    maker: int | str
    reader: int
    rows: int


def arrows(plan: Plan, stage: Stage) -> list[Arrow]:
    """All arrows of a stage: those from outside first, then in the order of the
    steps."""
    steps = plan.steps[stage.first : stage.end]
    makers = {a.tensor: i for i, s in enumerate(steps) for a in s.candidate.outputs}
    given: dict[str, list[Arrow]] = {}
    found: list[Arrow] = []
    for index, step in enumerate(steps):
        reader = stage.first + index
        for access in step.candidate.inputs:
            maker, name = makers.get(access.tensor), access.tensor
            if maker is None:
                given.setdefault(name, []).append(Arrow(name, reader, 0))
            elif maker != index:
                ring = plan.rings.get(name)
                rows = ring.rows if ring is not None else 0
                found.append(Arrow(stage.first + maker, reader, rows))
    return [*(one for each in given.values() for one in each), *found]


def drawn(plan: Plan, stage: Stage) -> list[str]:
    """Lines such as "0 conv2d -3-> 1 add": from step to step, the rows between them.

    A tensor that is whole has an arrow without a number; => ends in memory that
    outlives the stage.
    """
    steps = plan.steps[stage.first : stage.end]
    every = arrows(plan, stage)
    edges: dict[int, list[tuple[int, str]]] = {}
    for arrow in every:
        if isinstance(arrow.maker, int):
            at, end = arrow.maker - stage.first, arrow.reader - stage.first
            edges.setdefault(at, []).append((end, _arrow(arrow.rows)))
    lines = []
    for arrow in every:
        if isinstance(arrow.maker, str):
            path = _path(arrow.reader - stage.first, steps, stage, edges)
            lines.append(f"{plan.graph.shown(arrow.maker)} -> {path}")
    for index in sorted(edges):
        while edges[index]:
            lines.append(_path(index, steps, stage, edges))
    return lines


def _arrow(rows: int) -> str:
    return f"-{rows}->" if rows else "->"


def _path(
    at: int,
    steps: Sequence[Step],
    stage: Stage,
    edges: dict[int, list[tuple[int, str]]],
) -> str:
    """The path from a step along readers that are not drawn yet."""
    text = _label(at, steps, stage)
    drawn_any = False
    while edges.get(at):
        at, arrow = edges[at].pop(0)
        text += f" {arrow} {_label(at, steps, stage)}"
        drawn_any = True
    if at == len(steps) - 1 and (drawn_any or len(steps) == 1):
        text += " =>"
    return text


def _label(index: int, steps: Sequence[Step], stage: Stage) -> str:
    return f"{stage.first + index} {steps[index].node.op}"

"""A stage in lock step as a drawing, for the readers of the generated C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybuild.plan.plan import Plan, Step
from pybuild.plan.schedule.lock_step import Ring
from pybuild.plan.schedule.stages import Stage


def drawn(plan: Plan, stage: Stage) -> list[str]:
    """Lines such as "0 conv2d -3-> 1 add": from step to step, the rows between them.

    A tensor that is whole has an arrow without a number; => ends in memory that
    outlives the stage.
    """
    steps = plan.steps[stage.first : stage.end]
    makers = {a.tensor: i for i, s in enumerate(steps) for a in s.candidate.outputs}
    edges: dict[int, list[tuple[int, str]]] = {}
    given: dict[str, list[int]] = {}
    for index, step in enumerate(steps):
        for access in step.candidate.inputs:
            maker = makers.get(access.tensor)
            if maker is None:
                given.setdefault(access.tensor, []).append(index)
            elif maker != index:
                arrow = _arrow(access.tensor, plan.rings)
                edges.setdefault(maker, []).append((index, arrow))
    lines = []
    for name, readers in given.items():
        for reader in readers:
            path = _path(reader, steps, stage, edges)
            lines.append(f"{plan.graph.shown(name)} -> {path}")
    for index in sorted(edges):
        while edges[index]:
            lines.append(_path(index, steps, stage, edges))
    return lines


def _arrow(tensor: str, rings: Mapping[str, Ring]) -> str:
    ring = rings.get(tensor)
    return "->" if ring is None else f"-{ring.rows}->"


def _path(
    at: int,
    steps: Sequence[Step],
    stage: Stage,
    edges: dict[int, list[tuple[int, str]]],
) -> str:
    """From a step along readers that are not drawn yet."""
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

"""The placement of each tensor of a plan, for people: whole, a ring, over another, a
view.

Values only; the plan has decided them.
"""

from __future__ import annotations

from pybuild.emit.tables.stage_drawing import Arrow, arrows, drawn
from pybuild.plan.buffers.sharing import find_views
from pybuild.plan.plan import Plan
from pybuild.plan.schedule.stages import Stage
from pybuild.records import dataclass, renamed

# placement of an input of which only what it is converted to is held
CONVERTED = "converted"


@renamed(how="placement", of="shares_with")
@dataclass(frozen=True)
class Held:
    """How the plan holds a tensor, by the file's name and by one that people read.

    placement    "whole"; "ring" of `rows` rows; "in place": over `shares_with`, row by
                 row if it has rows; "view": bytes of `shares_with`; "none": where the
                 user binds it; "converted": to `shares_with`, when it is set
    bytes        of memory that is its own
    """

    tensor: str
    short: str
    placement: str
    bytes: int
    rows: int = 0
    shares_with: str = ""


@dataclass(frozen=True)
class StageFacts:
    """Layers that one stage computes, in lock step if there are several.

    arrows  of a stage in lock step: from step to step (by number of the plan), and the
            rows between them; drawing: the same as in the C
    """

    steps: int
    layers: tuple[str, ...]
    arrows: tuple[Arrow, ...] = ()
    drawing: tuple[str, ...] = ()


def held(plan: Plan) -> tuple[Held, ...]:
    """Every tensor that is computed or given."""
    graph, views = plan.graph, find_views(plan.graph)
    found = []
    for name, tensor in graph.tensors.items():
        if name in graph.constants or name not in plan.places:
            continue
        root, ring = views.of(name).root, plan.rings.get(name)
        owner, short = plan.owners.get(root, root), graph.shown(name)
        if root != name:
            row = Held(name, short, "view", 0, shares_with=root)
        elif ring is not None and ring.home != name:
            row = Held(name, short, "in place", 0, ring.rows, ring.home)
        elif ring is not None:
            row = Held(name, short, "ring", ring.rows * ring.pitch, ring.rows)
        elif name in plan.converted:
            row = Held(name, short, CONVERTED, 0, shares_with=plan.converted[name])
        elif plan.places[name].region < 0:
            row = Held(name, short, "none", 0)
        elif owner != name:
            row = Held(name, short, "in place", 0, shares_with=owner)
        else:
            row = Held(name, short, "whole", tensor.bytes)
        found.append(row)
    return tuple(found)


def stages(plan: Plan) -> tuple[StageFacts, ...]:
    """The stages in their order."""
    return tuple(_stage(plan, stage) for stage in plan.stages)


def _stage(plan: Plan, stage: Stage) -> StageFacts:
    steps = plan.steps[stage.first : stage.end]
    layers = tuple(step.node.name for step in steps if step.is_layer)
    if not stage.links:
        return StageFacts(len(steps), layers)
    made = tuple(arrows(plan, stage)), tuple(drawn(plan, stage))
    return StageFacts(len(steps), layers, *made)

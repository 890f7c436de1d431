"""The report of one model's build, put together of what its parts say."""

from __future__ import annotations

from collections.abc import Callable

from pybuild.bounds.static import layer_limits
from pybuild.cores.core_plan import Spread
from pybuild.emit.tables.tables import Tables
from pybuild.options.table import BuildOptions
from pybuild.package.choices import code_pieces, kernel_choices
from pybuild.package.memory import held, stages
from pybuild.package.occupancy import occupancy
from pybuild.package.provenance import Origin, command_of, provenance_of
from pybuild.package.report import (
    CoreStep,
    CoresUse,
    Flash,
    Ram,
    Report,
    boundary,
    copies,
    devices,
    layer,
    layers,
    promise,
    regions,
)
from pybuild.package.stored import stored
from pybuild.package.structure import graph_facts, weight_facts
from pybuild.plan.plan import Plan
from pybuild.select.choose import Options
from pybuild.select.devices import processor_of, table_of


def made_report(
    model: Origin,
    plan: Plan,
    tables: Tables,
    rounding: str,
    options: BuildOptions,
    offered: Options,
    image: Callable[[], bytes],
    spread: Spread | None = None,
) -> Report:
    """The cost of the build, and the reference that its results equal.

    offered  what could compute each layer; image: of parameters
    """
    graph, targets = plan.graph, table_of(options.target)
    rows = layers(graph)
    kernels = kernel_choices(plan, offered)
    parameters, packed = stored(plan, model.graph, image, tables.named)
    processor = processor_of(options.target) if options.emit == "obj" else None
    return Report(
        name=tables.name,
        ram=Ram(
            tables.arena_bytes,
            tables.instance_bytes,
            plan.lower_bound,
            tables.unpacked_bytes,
        ),
        flash=Flash(
            tables.weight_bytes + tables.image_bytes,
            tables.table_bytes,
            tables.stage_bytes,
            *graph.removed,
        ),
        macs=sum(row.macs for row in rows),
        inputs=tuple(boundary(graph.tensor(n)) for n in graph.inputs),
        outputs=tuple(boundary(graph.tensor(n)) for n in graph.outputs),
        layers=rows,
        rounding=rounding,
        reference=promise(graph, rounding),
        copies=copies(plan),
        devices=devices(plan, targets),
        regions=regions(plan),
        tensors=held(plan),
        stages=stages(plan),
        state=tables.state_bytes,
        warm_runs=tables.warm_runs,
        cores=None if spread is None else cores_use(spread),
        signatures=graph.signatures,
        parameters=parameters,
        packed_constants=packed,
        quantisation=model.quantisation,
        optimise=options.optimise,
        kernels=kernels,
        provenance=provenance_of(model.recipe, options),
        graph=graph_facts(plan, targets, kernels),
        weights=weight_facts(tables),
        memory=occupancy(plan),
        code=code_pieces(plan, offered),
        bounds=layer_limits(plan, targets),
        command=command_of(model.recipe, tables.name, options),
        file_bytes=model.file_bytes,
        emit=options.emit,
        target=targets[0].name,
        cpu=processor.cpu if processor else "",
        features=processor.features if processor else "",
    )


def cores_use(found: Spread) -> CoresUse:
    """How several cores share the work, for a report."""
    share = round(found.ratio, 3) if found.pays else 1.0
    facts = found.cores, found.sliced, found.steps
    graph, shared = found.plan.graph, []
    for step in found.shared:
        row = layer(step.node, graph)
        own = step.cores, step.meetings, step.meeting
        shared.append(CoreStep(row.name, row.short, row.op, *own))
    costs = found.one, found.several
    return CoresUse(*facts, share, found.arena, *costs, tuple(shared))

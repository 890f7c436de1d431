"""The graph of a build after its passes: streams, devices, what states become."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pybuild.errors import BuildError, all_known
from pybuild.ir.graph import Graph
from pybuild.options.table import BuildOptions
from pybuild.passes import Seen
from pybuild.passes.ends.windows import with_windows
from pybuild.passes.legalise import of_numbers
from pybuild.passes.state import assigned, inputs_as_state, state_as_inputs
from pybuild.passes.stream import streamed
from pybuild.select.devices import on_devices
from pybuild.targets.target import Target


def for_devices(
    graph: Graph,
    asked: BuildOptions,
    table: Sequence[Target],
    seen: Seen = lambda name, graph: None,
) -> Graph:
    """The steps after the passes: streams, devices, state, and which layers read known
    numbers."""
    graph = streamed(graph, streams(asked.stream, graph))
    seen("streamed", graph)
    graph = inputs_as_state(
        on_devices(state_as_inputs(graph), table, asked.place), graph
    )
    seen("on_devices", graph)
    graph = with_windows(graph)
    seen("with_windows", graph)
    graph = assigned(graph)
    seen("assigned", graph)
    if asked.nan == "ignore":
        graph = of_numbers(graph)
        seen("of_numbers", graph)
    return graph


def streams(given: Collection[str], graph: Graph) -> dict[str, tuple[int, int]]:
    """Axis and frames (0: the fewest) of each input that is a stream."""
    found: dict[str, tuple[int, int]] = {}
    for text in given:
        name, _, where = text.rpartition("=")
        axis, colon, frames = where.partition(":")
        try:
            numbers = int(axis), int(frames) if colon else 0
        except ValueError:
            hint = "AXIS, AXIS:FRAMES or INPUT=AXIS:FRAMES"
            raise BuildError("--stream", f"'{text}' is not an axis", hint) from None
        all_known([name] if name else [], graph.inputs, "--stream")
        for one in [name] if name else graph.inputs:
            found[one] = numbers
    return found

"""The graphs in which a model may be written, and what plans them all."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate
from pybuild.options.table import BuildOptions
from pybuild.passes.ends.planes import by_planes
from pybuild.passes.ends.when_set import converted
from pybuild.passes.ends.windows import with_long_windows
from pybuild.passes.sums import with_sums
from pybuild.plan.request import Planner, Planners
from pybuild.records import dataclass
from pybuild.select.choose import Options, is_better, narrowed, options_of
from pybuild.select.core_prices import PRICES
from pybuild.select.devices import offers
from pybuild.targets.target import Target


@dataclass(frozen=True)
class Ways:
    """A graph after all passes, the targets of its devices, and what is asked of it."""

    graph: Graph
    table: Sequence[Target]
    asked: BuildOptions

    @property
    def all(self) -> Planners:
        """What plans them all."""
        return Planners(self.planners, self._converting)

    def _converting(self) -> tuple[Planner, ...]:
        """Planners for graphs whose inputs are converted when they are set."""
        other = converted(self.graph, self.asked.lazy or ())
        return () if other is None else replace(self, graph=other).planners

    @functools.cached_property
    def planners(self) -> tuple[Planner, ...]:
        """A planner for the graph, and one for each other way to write it: an image
        with channels first is read row by row; windows are kept with what is new in
        them."""
        ways: list[Graph | None] = [self.graph]
        if self.asked.push or self.asked.plan == "rows":
            ways.append(by_planes(self.graph))
        if not self.asked.push:
            ways.append(with_long_windows(self.graph))
        graphs = (way for way in ways if way is not None)
        return tuple(Planner(*self._kernels(g), len(self.table)) for g in graphs)

    def _kernels(
        self, graph: Graph
    ) -> tuple[Graph, dict[str, list[Candidate]], Options]:
        """The kernels that the plan may use for each layer, and all that there were.

        By rows it depends on memory which kernels fit. Else sums are the ends of
        layers, where that is worth more, on a core that is known: on this machine each
        layer has its own time.
        """
        table, optimise = self.table, self.asked.optimise
        found = offers(graph, table, optimise)
        targets = {node.output: table[node.device] for node in graph.nodes}
        options = options_of(found, targets)
        if self.asked.plan == "rows" or self.asked.push:
            return graph, found, options
        known = all(target.name in PRICES for target in table)
        ended = with_sums(graph) if known else graph
        ends = tuple(node for node in ended.nodes if node.of)
        if ends:
            gone = {one.output for node in ends for one in node.of}
            made = {layer: c for layer, c in found.items() if layer not in gone}
            made |= offers(replace(graph, nodes=ends), table, optimise)
            fewer = options_of(made, targets)
            sums = [found[node.output][0] for node in ends]
            calls = sum(c.images * c.bands for c in sums)
            if optimise == "ram" or is_better(fewer, options, optimise, calls):
                graph, found, options = ended, made, fewer
        if optimise == "ram":  # it depends on memory here, too
            return graph, found, options
        return graph, narrowed(found, options, optimise), options

"""Plans for the user's options: of one graph and its kernels, as often as needed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from pybuild.errors import BuildError, LimitError, Problem
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate
from pybuild.options.regions import OPTION, RegionSpec
from pybuild.options.table import BuildOptions
from pybuild.passes.ends.when_set import conversions
from pybuild.plan.advice import less_ram
from pybuild.plan.buffers.sharing import find_views
from pybuild.plan.choice import DEAR, FAIR, MOST_COST_RAM, is_worth
from pybuild.plan.make import make_plan
from pybuild.plan.plan import Plan, estimate, spent_inputs
from pybuild.plan.regions.regions import check_limits
from pybuild.plan.schedule.saved import Saved
from pybuild.records import dataclass
from pybuild.select.choose import Options, Weighed


@dataclass(frozen=True)
class Planner:
    """Everything from which plans of one graph are made.

    kernels  the candidates of each layer; prices: their costs
    devices  the number of devices, the CPU included
    known    facts about stages that earlier plans found
    """

    graph: Graph
    kernels: Mapping[str, list[Candidate]]
    prices: Options
    devices: int
    known: Saved = field(default_factory=Saved, repr=False, compare=False)
    _made: dict[str, Plan] = field(default_factory=dict, repr=False, compare=False)

    def plan(self, asked: BuildOptions) -> Plan:
        """Return the plan for these options.

        Errors  BuildError, LimitError
        """
        key = repr(asked)
        if key not in self._made:
            self._made[key] = self._plan(asked)
        plan, graph = self._made[key], self.graph
        advice = partial(
            less_ram, plan.graph, kernels=[step.candidate for step in plan.steps],
            pushed=plan.pushed, spent=self._spent(asked),
        )  # fmt: skip
        alone = asked.cores == 1  # slices for several are chosen after the plan of one
        check_limits(graph, plan.regions, asked.ram_limit, advice, alone)
        return plan

    def _spent(self, asked: BuildOptions) -> tuple[str, ...]:
        by_rows = asked.plan == "rows" or bool(asked.push)
        return spent_inputs(self.graph, asked.input, by_rows and not asked.regions)

    def _plan(self, asked: BuildOptions) -> Plan:
        by_rows = asked.plan == "rows"
        rows, ram = by_rows or bool(asked.push), asked.optimise == "ram"
        weighed = Weighed(self.prices, asked.optimise) if rows or ram else None
        lazy = (*(asked.lazy or ()), *conversions(self.graph))
        limits = asked.ram_limit
        limit = limits.get(0) if isinstance(limits, Mapping) else limits
        usual = replace(asked, push=(), ram_limit=None)
        return make_plan(
            self.graph, lambda node, _: self.kernels[node.output],
            asked.input == "keep", limit, lazy,
            asked.compress, by_rows, regions_of(asked.regions, self.devices),
            asked.push, weighed, self._spent(asked),
            asked.optimise, self.known, partial(self.plan, usual),
        )  # fmt: skip


# the most bytes of a plan that converts inputs when they are set, relative to one whose
# inputs have memory: callers cannot fill converted inputs in place
_CONVERTED = 0.95


@dataclass(frozen=True)
class Planners:
    """Alternative graphs of one model; each build takes the one with the best plan.

    converting  makes further alternatives, in which inputs are converted when they are
                set
    """

    usual: tuple[Planner, ...]
    converting: Callable[[], tuple[Planner, ...]] = field(repr=False, compare=False)

    def plan(self, asked: BuildOptions) -> tuple[Planner, Plan]:
        """Return the plan with the fewest bytes at an acceptable price, or the fastest
        that keeps to a limit; of equal plans the first. Alternatives that convert
        inputs when they are set are tried if that may save memory at the peak.

        Errors  if no alternative has a plan: a limit's with the fewest bytes, or else
                the first alternative's
        """
        best: tuple[Planner, Plan] | BuildError
        try:
            best = _best(self.usual, asked)
        except BuildError as error:
            best = error
        if isinstance(best, BuildError) or self._saves(best[1], asked):
            best = _best(self.ways, asked)
        return best

    @functools.cached_property
    def ways(self) -> tuple[Planner, ...]:
        """All alternatives."""
        return (*self.usual, *self.converting())

    def _saves(self, plan: Plan, asked: BuildOptions) -> bool:
        """Return True if an input is in memory at the peak and an allowed alternative
        would convert it when it is set."""
        views, there = find_views(plan.graph), {block.name for block in plan.peak}
        none = {*plan.lazy, *plan.pushed, *plan.graph.state}
        held = (n for n in plan.graph.inputs if n not in none)
        if not any(views.of(name).root in there for name in held):
            return False
        return any(_converts(w.graph, asked) for w in self.ways[len(self.usual) :])


def _best(ways: Sequence[Planner], asked: BuildOptions) -> tuple[Planner, Plan]:
    """Return the best plan of some alternatives, with its planner.

    Errors  if none has a plan: a limit's with the fewest bytes, or else the first's
    """
    made, errors = list[tuple[Planner, Plan, int]](), list[BuildError]()
    for one in ways:
        if not _converts(one.graph, asked):
            continue
        try:
            plan = one.plan(asked)
        except BuildError as error:
            errors.append(error)
            continue
        made.append((one, plan, estimate(plan, one.prices)))
    if not made:
        raise min(errors, key=_least)
    fastest = min(cost for _, _, cost in made)
    if asked.ram_limit is not None:
        return next((one, plan) for one, plan, cost in made if cost == fastest)
    thrifty = asked.optimise == "ram" or asked.push
    fair = MOST_COST_RAM if thrifty else FAIR
    able = (each for each in made if each[2] <= fair * fastest)
    best = min(able, key=lambda each: _weight(each[1]))
    others = (each for each in made if each[2] <= DEAR * fastest)
    less = min(others, key=lambda each: _weight(each[1]))
    better = is_worth(_weight(less[1]), _weight(best[1]))
    planner, plan, _ = less if better else best
    return planner, plan


def _least(error: BuildError) -> float:
    least = error.least if isinstance(error, LimitError) else None
    return float("inf") if least is None else least


def _weight(plan: Plan) -> float:
    return plan.arena_bytes * (1.0 if plan.converted else _CONVERTED)


def _converts(graph: Graph, asked: BuildOptions) -> bool:
    """Return True if the options allow the graph's inputs to be converted when they are
    set, or if the graph converts none."""
    names = conversions(graph)
    if not names:
        return True
    if asked.api == "tvm":  # whose callers fill inputs where they are
        return False
    by_rows = asked.plan == "rows" and not asked.push and not asked.regions
    free = asked.input != "keep" and asked.compress != "lz4-layer"
    return by_rows and free and not names.keys() & {*(asked.lazy or ())}


def regions_of(specs: Sequence[RegionSpec], devices: int) -> Sequence[RegionSpec]:
    """Return the regions that the user defined, checked.

    Errors  BuildError with everything that is wrong
    """
    found = []
    for spec in specs:
        if spec.device >= devices:
            what = f"'{spec.name}' is for device {spec.device}, but there are "
            what += f"{devices} devices"
            hint = "+device1 for the first of --device; leave it out for the CPU"
            found.append(Problem(OPTION, what, hint))
        if spec.weights and spec.device:
            what = f"weights cannot be copied to '{spec.name}', which is a device's"
            found.append(Problem(OPTION, what, "parameters can: --params"))
    if found:
        raise BuildError.of(found)
    return specs

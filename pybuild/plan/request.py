"""A plan as options ask for it: of one graph and its kernels, as often as wanted."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate
from pybuild.options.regions import OPTION, RegionSpec
from pybuild.options.table import BuildOptions
from pybuild.passes.ends.when_set import conversions
from pybuild.plan.buffers.sharing import find_views
from pybuild.plan.choice import DEAR, FAIR, MOST_COST_RAM, is_worth
from pybuild.plan.make import make_plan
from pybuild.plan.plan import Plan, estimate, spent_inputs
from pybuild.plan.schedule.saved import Saved
from pybuild.records import dataclass
from pybuild.select.choose import Options, Weighed


@dataclass(frozen=True)
class Planner:
    """The facts from which a plan is made.

    kernels  what could compute each layer; prices: what that takes
    devices  how many there are, the CPU included
    known    what plans have found of stages
    """

    graph: Graph
    kernels: Mapping[str, list[Candidate]]
    prices: Options
    devices: int
    known: Saved = field(default_factory=Saved, repr=False, compare=False)
    _made: dict[str, Plan] = field(default_factory=dict, repr=False, compare=False)

    def plan(self, asked: BuildOptions) -> Plan:
        """The plan for a request.

        Errors  BuildError, LimitError
        """
        key = repr(asked)
        if key not in self._made:
            self._made[key] = self._plan(asked)
        return self._made[key]

    def _plan(self, asked: BuildOptions) -> Plan:
        by_rows = asked.plan == "rows"
        rows, ram = by_rows or bool(asked.push), asked.optimise == "ram"
        weighed = Weighed(self.prices, asked.optimise) if rows or ram else None
        lazy = (*(asked.lazy or ()), *conversions(self.graph))
        spent = spent_inputs(self.graph, asked.input, rows and not asked.regions)
        unpushed = replace(asked, push=(), ram_limit=None)
        return make_plan(
            self.graph, lambda node, _: self.kernels[node.output],
            asked.input == "keep", asked.ram_limit, lazy,
            asked.compress, by_rows, regions_of(asked.regions, self.devices),
            asked.push, weighed, spent,
            asked.optimise, self.known, partial(self.plan, unpushed),
        )  # fmt: skip


# of the bytes of a plan whose inputs have memory, what one whose inputs are converted
# when they are set may need at most: callers cannot fill those in place
_CONVERTED = 0.95


@dataclass(frozen=True)
class Planners:
    """Ways to write one model, of which each build takes the best.

    converting  makes more of them, where inputs are converted when they are set
    """

    usual: tuple[Planner, ...]
    converting: Callable[[], tuple[Planner, ...]] = field(repr=False, compare=False)

    def plan(self, asked: BuildOptions) -> tuple[Planner, Plan]:
        """Return the plan with the fewest bytes at an acceptable price, or the fastest
        that keeps to a limit; of equal plans the first. Inputs that could be converted
        when they are set are, if that saves memory at the peak.

        Errors  of the first, where none has a plan
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
        """All of them."""
        return (*self.usual, *self.converting())

    def _saves(self, plan: Plan, asked: BuildOptions) -> bool:
        """True if inputs that may be converted when they are set are in memory at the
        peak."""
        views, there = find_views(plan.graph), {block.name for block in plan.peak}
        none = {*plan.lazy, *plan.pushed, *plan.graph.state}
        held = (n for n in plan.graph.inputs if n not in none)
        if not any(views.of(name).root in there for name in held):
            return False
        return any(_converts(w.graph, asked) for w in self.ways[len(self.usual) :])


def _best(ways: Sequence[Planner], asked: BuildOptions) -> tuple[Planner, Plan]:
    """The best plan of some ways.

    Errors  of the first, where none has a plan
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
        raise errors[0]
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


def _weight(plan: Plan) -> float:
    return plan.arena_bytes * (1.0 if plan.converted else _CONVERTED)


def _converts(graph: Graph, asked: BuildOptions) -> bool:
    """True if the inputs that the graph converts when they are set may be converted
    then, or there are none."""
    names = conversions(graph)
    if not names:
        return True
    if asked.api == "tvm":  # whose callers fill inputs where they are
        return False
    by_rows = asked.plan == "rows" and not asked.push and not asked.regions
    free = asked.input != "keep" and asked.compress != "lz4-layer"
    return by_rows and free and not names.keys() & {*(asked.lazy or ())}


def regions_of(specs: Sequence[RegionSpec], devices: int) -> Sequence[RegionSpec]:
    """The checked regions.

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

"""Finds options that would reduce RAM. Each is planned: nothing is guessed.

Asked of a build that is there; knows options and plans, no kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

from pybuild.emit.tables.tables import Tables
from pybuild.errors import BuildError, LimitError
from pybuild.ir.graph import Graph
from pybuild.options.option import keywords
from pybuild.options.table import BuildOptions
from pybuild.package.curve import Point
from pybuild.package.report import Report
from pybuild.package.saving import Saving
from pybuild.passes.ends.integer_ends import integer_ends
from pybuild.passes.layout import LEAST_RANK, layout_of
from pybuild.plan.buffers.sharing import find_views
from pybuild.plan.choice import by_rows
from pybuild.plan.plan import Plan, estimate
from pybuild.plan.request import Planner, Planners
from pybuild.records import dataclass
from pybuild.select.choose import Options

# of the bytes of the arena, what is worth a line
_WORTH = 0.95
# bytes of constants beyond which nothing is tried: each try may hold them anew
_HEAVY = 4 << 20
# a limit that every plan keeps to
_PLENTY = 1 << 40

Change = tuple[tuple[str, ...], dict[str, Any]]


# options that change neither the graph nor what could compute it
_PLANNED = {"input", "lazy", "push", "optimise"}
_ALIKE = {"balanced", "ram"}


class Build(Protocol):
    """The part of a planned model that is needed here."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> Any: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def options(self) -> BuildOptions: ...
    @property
    def planner(self) -> Planner | None: ...
    @property
    def planners(self) -> Planners | None: ...
    @property
    def kernels(self) -> Options: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def report(self) -> Report: ...
    def again(self, **changed: Any) -> Build: ...


class Choice(Build, Protocol):
    """The part of a planned model that is needed for its other plans."""

    @property
    def tables(self) -> Tables: ...
    @property
    def _curve(self) -> Curve: ...
    @property
    def _least(self) -> int: ...
    def arena_sizes(self) -> list[int]:
        """The bytes of arena that are worth a limit."""
        ...


class Advised:
    """The part of a Library that advises further options."""

    @property
    def kernels(self: Build) -> Options:
        """The kernels that could compute each layer."""
        return self.planner.prices if self.planner else {}

    @functools.cached_property
    def advised(self: Build) -> Report:
        """The report with the options that would save RAM; they are planned, which
        takes a part of the time of the build."""
        return replace(self.report, savings=find_savings(self))

    def ram_curve(self: Choice) -> tuple[Point, ...]:
        """The plans that --ram-limit gives, from the smallest to the fastest. Each has
        the bytes and the instructions of the build with its `limit`.

        Errors  BuildError for pushed inputs: they leave no choice
        """
        if self.plan.pushed:
            what = "does not apply to pushed inputs"
            raise BuildError("--ram-curve", what, "leave out --push")
        return self._curve.points

    def ram_point(self: Choice) -> Point:
        """This plan as a point of ram_curve()."""
        return self._curve.of(self.plan, self.kernels)

    def least_arena(self: Choice) -> int | None:
        """The arena of the smallest plan that --ram-limit gives; None if there is no
        choice: rows are pushed, or memory is in several regions."""
        plan = self.plan
        if plan.pushed or len(plan.regions) != 1:
            return None
        return min(plan.arena_bytes, self._least or plan.arena_bytes)

    @functools.cached_property
    def _least(self: Choice) -> int:
        """The fewest bytes that are known to build as a limit; 0: none are."""
        try:
            return limited(self, 0)[0].arena_bytes
        except LimitError as error:
            return error.least or 0

    @functools.cached_property
    def _curve(self: Choice) -> Curve:
        return curve_of(self)


@dataclass(frozen=True)
class Curve:
    """Plans between the smallest and the fastest; instance: bytes beside the arena."""

    plans: tuple[tuple[Plan, Options], ...]
    instance: int

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(self.of(*one) for one in self.plans)

    def of(self, plan: Plan, kernels: Options) -> Point:
        """The point of a plan."""
        arena, fastest = plan.arena_bytes, max(estimate(*self.plans[-1]), 1)
        times = estimate(plan, kernels) / fastest
        return Point(arena + self.instance, times, arena, by_rows(plan))


def limited(build: Build, limit: int) -> tuple[Plan, Options]:
    """The plan of the same build with --ram-limit, and the kernels' prices.

    Errors  LimitError
    """
    if build.planners is None or build.options.cores > 1:
        other = build.again(ram_limit=limit)
        return other.plan, other.kernels
    planner, plan = build.planners.plan(replace(build.options, ram_limit=limit))
    return plan, planner.prices


def curve_of(build: Choice) -> Curve:
    """The plans of all limits worth a try that no other plan beats in bytes and
    instructions. A plan may be smaller than its limit: it then is that of its own
    size, with which the limit is tried again."""
    mine, found = (build.plan, build.kernels), dict[int, tuple[Plan, Options]]()
    sizes = {_PLENTY, build.plan.arena_bytes, build._least}
    for limit in sorted({*sizes, *build.arena_sizes()}, reverse=True):
        made: tuple[Plan, Options] | None = None
        while limit not in found:
            try:
                made = limited(build, limit)
            except LimitError:
                break
            found[limit] = made
            limit = made[0].arena_bytes
    front: list[tuple[Plan, Options]] = []
    for limit in sorted(found):
        one = found[limit]
        if one[0].arena_bytes < limit:
            continue
        if not front or estimate(*one) < estimate(*front[-1]):
            front.append(one)
    return Curve(tuple(front) or (mine,), build.tables.instance_bytes)


def find_savings(build: Build) -> tuple[Saving, ...]:
    """The options that would save a twentieth of the arena or more, few instructions
    first; nothing for more than 4 MB of constants."""
    plan = build.plan
    if len(plan.regions) != 1 or plan.graph.is_placed or plan.graph.storage:
        return ()
    if sum(value.nbytes for value in plan.graph.constants.values()) > _HEAVY:
        return ()
    found, tries = list[Saving](), _Tries(build)
    for options, changed in changes(build):
        try:
            other, kernels = tries.plan(changed)
        except BuildError:
            continue  # an input that is not read by rows, say
        arena, best = other.arena_bytes, _best_within(found, options)
        if arena <= _WORTH * min(plan.arena_bytes, best):
            times = estimate(other, kernels) / max(estimate(plan, build.kernels), 1)
            found.append(Saving(options, changed, arena, plan.arena_bytes, times))
    return tuple(sorted(found, key=lambda one: (one.instructions, one.arena)))


class _Tries:
    """Plans with some options changed; kernels of a graph are made once."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self._made: dict[str, Build] = {"": build}

    def plan(self, changed: dict[str, Any]) -> tuple[Plan, Options]:
        """The plan, and what there was to choose from."""
        chosen = self.build.options
        rest = {key: value for key, value in changed.items() if key in _PLANNED}
        alike = {chosen.optimise, rest.get("optimise", chosen.optimise)}
        if len(alike) > 1 and not alike <= _ALIKE:
            rest = {}
        if any(_is_first(self.build.graph, name) for name in rest.get("push", ())):
            rest = {}  # its rows have another layout
        if "boundary" in changed:
            made = _as_integers(self.build)
            return made.plan, made.kernels
        first = {key: value for key, value in changed.items() if key not in rest}
        key = repr(first) if first else ""
        if key not in self._made:
            self._made[key] = self.build.again(**first)
        made = self._made[key]
        if not rest:
            return made.plan, made.kernels
        if made.planners is None or made.options.plan != "rows":
            other = self.build.again(**changed)
            return other.plan, other.kernels
        planner, plan = made.planners.plan(replace(made.options, **rest))
        return plan, planner.prices


def _as_integers(build: Build) -> Build:
    """The same build of a net whose inputs and outputs are integers too."""
    model = build.model.with_graph(integer_ends(build.model.graph))
    made: Build = model.build(name=build.name, **keywords(build.options))
    return made


def _best_within(found: list[Saving], options: tuple[str, ...]) -> int | float:
    """The fewest bytes with some of these options alone."""
    less = [one.arena for one in found if set(one.options) < set(options)]
    return min(less, default=float("inf"))


def that_fit(build: Build, room: int) -> tuple[str, ...]:
    """The options to try that need at most so many bytes, the cheapest first."""
    tries, found = _Tries(build), list[tuple[int, str]]()
    for options, changed in changes(build):
        if "lazy" in changed:
            continue  # those bytes are then beside the arena
        try:
            plan, kernels = tries.plan(changed)
        except BuildError:
            continue
        if plan.arena_bytes <= room:
            found.append((estimate(plan, kernels), " ".join(options)))
    return tuple(words for _, words in sorted(found))


def changes(build: Build) -> Iterator[Change]:
    """The changes to try: unused options that could help the tensors alive at the peak;
    few of them first."""
    plan, chosen = build.plan, build.options
    made = build.model.quantisation
    if made is not None and made.boundary != "int8":
        yield ("--boundary int8",), {"boundary": "int8"}
    if chosen.plan == "whole" and not chosen.push:
        yield ("--plan rows",), {"plan": "rows"}
    held, results = _held_inputs(plan), _held_outputs(plan)
    if held:
        yield from _of_inputs(held, build.graph, chosen)
    if results:
        yield _lazy(results, chosen)
    if held and results:
        yield _lazy((*held, *results), chosen)
    large = tuple(name for name in _in_memory(plan) if _is_large(plan, name))
    if large and not plan.graph.windows:
        yield from _of_rows(large, chosen)
    if chosen.optimise in ("balanced", "speed") and chosen.ram_limit is None:
        yield ("--optimise ram",), {"optimise": "ram"}


def _in_memory(plan: Plan) -> tuple[str, ...]:
    """Inputs that the arena holds."""
    none = plan.pushed | plan.lazy | {*plan.graph.state}
    return tuple(name for name in plan.graph.inputs if name not in none)


def _is_large(plan: Plan, name: str) -> bool:
    """True if the arena could be smaller without it, if all else stayed."""
    return plan.graph.tensor(name).bytes >= (1 - _WORTH) * plan.arena_bytes


def _held_inputs(plan: Plan) -> tuple[str, ...]:
    """Inputs that are alive at the peak, or whose copy in another order is."""
    graph, views = plan.graph, find_views(plan.graph)
    there = {block.name for block in plan.peak}
    near = set(there)
    for node in reversed(graph.nodes):
        if node.op in ("transpose", "quantize") and node.output in near:
            near.add(node.inputs[0])
    names = _in_memory(plan)
    return tuple(n for n in names if views.of(n).root in there or n in near)


def _held_outputs(plan: Plan) -> tuple[str, ...]:
    """Outputs that are alive at the peak, which their reader could keep."""
    graph, views = plan.graph, find_views(plan.graph)
    there = {block.name for block in plan.peak}
    none = plan.lazy | {*graph.inputs} | {state.next for state in graph.state.values()}
    names = (name for name in graph.outputs if name not in none)
    return tuple(n for n in names if views.of(n).root in there and _is_large(plan, n))


def _of_inputs(
    names: tuple[str, ...], given: Graph, chosen: BuildOptions
) -> Iterator[Change]:
    if chosen.input == "keep":
        yield ("--input reuse",), {"input": "reuse"}
    held = _lazy(names, chosen)
    yield held
    yield from _turned(names, given, chosen)
    yield from _turned(names, given, chosen, held)


def _lazy(names: tuple[str, ...], chosen: BuildOptions) -> Change:
    """Inputs and outputs in memory of the caller's."""
    return _words("--lazy", names), {"lazy": (*(chosen.lazy or ()), *names)}


def _of_rows(names: tuple[str, ...], chosen: BuildOptions) -> Iterator[Change]:
    yield _words("--push", names), {"push": (*chosen.push, *names)}


def _turned(
    names: tuple[str, ...],
    given: Graph,
    chosen: BuildOptions,
    more: Change = ((), {}),
) -> Iterator[Change]:
    """Inputs with channels last, where the file has them first."""
    turned = [n for n in names if n not in chosen.layout and _is_first(given, n)]
    if turned:
        words = _words("--layout", tuple(f"{name}=nhwc" for name in turned))
        layout = {**chosen.layout, **dict.fromkeys(turned, "nhwc")}
        yield (*words, *more[0]), {"layout": layout, **more[1]}


def _is_first(graph: Graph, name: str) -> bool:
    """True if its channels are first, and copied to be last."""
    rank = len(graph.tensor(name).shape)
    return rank >= LEAST_RANK and layout_of(graph, name) == "nchw"


def _words(option: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{option} {name}" for name in names)

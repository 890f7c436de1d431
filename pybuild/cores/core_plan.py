"""A plan whose kernels several equal cores compute together, where that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from pybuild.cores.disjoint import are_disjoint
from pybuild.cores.slices import sliced
from pybuild.errors import LimitError, Problem
from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.external import External
from pybuild.options.table import BuildOptions
from pybuild.plan.plan import Plan
from pybuild.plan.request import Planner, Planners
from pybuild.records import dataclass
from pybuild.select.choose import options_of
from pybuild.select.prices import price
from pybuild.targets.target import Target

OPTION = "--cores"
# CRT_CORES_MAX of crt/cores.h
MOST = 4
# instructions that crt takes for several cores, beside those for one: of a run, of a
# shared call for each further core, of a step that the first computes alone; counted on
# a Cortex-M0+, a Cortex-M33 takes a sixth less
_RUN, _MEET, _ALONE = 110, 115, 40
# of one core's instructions, what several may take by estimate: kernels as slices are
# estimated to some percent
_PAYS = 0.95
# of one core's arena, what a plan for several may have, if some plan has that
_RAM = 1.1
_ALIGN = 16
# of the fastest plan's instructions, what one within that may take, where RAM is not
# what was asked for
_DEAR = 1.05
# of a meeting's instructions, what a layer takes for which another kernel is looked at
_WORTH = 10
# plans that are made to find one within that
_MOST_TRIES = 12


@dataclass(frozen=True)
class SharedStep:
    """A step on several cores: estimated instructions in all its calls of a run.

    cores     of each core; 0: it has no slice
    meetings  after its calls; meeting: the first core's instructions for them, or to
              find that there are none
    """

    node: Node
    cores: tuple[int, ...]
    meetings: int
    meeting: int

    @property
    def span(self) -> int:
        """Instructions from begin to end."""
        return max(self.cores) + self.meeting


@dataclass(frozen=True)
class Spread:
    """A plan for several cores beside the plan for one.

    plan, planner  for so many `cores`; those of one core where several never pay
    one, several   estimated instructions of all kernels, from begin to end
    arena          bytes of one core's plan
    sliced         steps that all cores compute, of `steps` that have a kernel
    shared         what each core does of each of these; (): one core runs
    """

    planner: Planner
    plan: Plan
    cores: int
    one: int
    several: int
    arena: int
    sliced: int
    steps: int
    shared: tuple[SharedStep, ...] = ()

    @property
    def pays(self) -> bool:
        """True if several cores take less time than one."""
        return self.sliced > 0

    @property
    def ratio(self) -> float:
        return self.several / max(self.one, 1)


@dataclass(frozen=True)
class _Tried:
    """A plan with these kernels, and their estimated instructions."""

    planner: Planner
    plan: Plan
    cost: int

    @property
    def sliced(self) -> int:
        return sum(bool(step.candidate.slices) for step in self.plan.steps)


def planned(
    planners: Planners, asked: BuildOptions, table: Sequence[Target]
) -> tuple[Planner, Plan, Spread | None]:
    """The plan, with what made it. Slices for several cores are chosen after a plan for
    one, so they may exceed a limit that it keeps to: the plan without a limit is then
    taken, if that keeps to it.

    Errors  BuildError
    """
    if asked.cores == 1:
        return (*planners.plan(asked), None)
    try:
        several = spread(*planners.plan(asked), asked, table)
    except LimitError:
        free, limit = replace(asked, ram_limit=None), asked.ram_limit
        limit = limit.get(0) if isinstance(limit, Mapping) else limit
        several = spread(*planners.plan(free), free, table, limit)
        if limit is None or several.plan.arena_bytes > limit:
            raise
    return several.planner, several.plan, several


def spread(
    planner: Planner,
    plan: Plan,
    asked: BuildOptions,
    table: Sequence[Target],
    limit: int | None = None,
) -> Spread:
    """The plan for as many cores as are asked for: the same layers by the same kernels.

    It takes the fastest slices if their plan has at most a tenth more memory; else, of
    as few layers as that takes, slices with which outputs may still lie over inputs,
    or slices of kernels with less scratch, where these are not much slower or RAM is
    what was asked for.

    limit  bytes that the plan shall have at most
    """
    target, cores = table[0], asked.cores
    chosen = _chosen(planner, plan)
    own = (replace(s.candidate, finish=None) for s in plan.steps if s.candidate.func)
    one = sum(price(c, target).instructions for c in own)
    fast = {
        n: _any_sliced(planner.kernels[n], c, target, cores) for n, c in chosen.items()
    }
    most = _RAM * plan.arena_bytes
    most = most if limit is None else min(most, limit)

    def tried(made: Mapping[str, Candidate]) -> _Tried:
        kernels = dict(planner.kernels)
        for layer, c in made.items():
            kernels[layer] = [replace(c, spare=False)]
            if c.finish is not None:  # a plan for whole tensors takes another
                whole = (o for o in planner.kernels[layer] if o.finish is None)
                kernels[layer] += [sliced_candidate(o, target, cores) for o in whole]
        targets = {node.output: target for node in planner.graph.nodes}
        options = options_of(kernels, targets)
        other = Planner(planner.graph, kernels, options, planner.devices)
        found = other.plan(asked)
        return _Tried(other, found, _cost(found, target, cores))

    best = tried(fast)
    if best.plan.arena_bytes > most:
        small = {
            n: _any_sliced(planner.kernels[n], c, target, cores, in_place=True)
            for n, c in chosen.items()
        }
        best = _smaller(fast, small, best, most, tried)
    if best.plan.arena_bytes > most and asked.optimise != "speed":
        lean = {n: _lean(planner.kernels[n], c, target) for n, c in fast.items()}
        found = _smaller(fast, lean, best, most, tried)
        thrifty = asked.optimise == "ram" or limit is not None
        dear = _PAYS * one if thrifty else min(_DEAR * best.cost, _PAYS * one)
        best = found if found.cost <= dear else best
    steps = sum(step.candidate.func is not None for step in plan.steps)
    if not best.sliced or best.cost > _PAYS * one:
        return Spread(planner, plan, cores, one, one, plan.arena_bytes, 0, steps)
    facts = cores, one, best.cost, plan.arena_bytes, best.sliced, steps
    shared = tuple(_shared(best.plan, target, cores))
    return Spread(best.planner, best.plan, *facts, shared)


def _any_sliced(
    kernels: Sequence[Candidate],
    c: Candidate,
    target: Target,
    cores: int,
    in_place: bool = False,
) -> Candidate:
    """The candidate in slices; where it has none, the fastest slices of another kernel,
    if they are faster than the candidate on one core. in_place: as for
    sliced_candidate."""
    own = sliced_candidate(c, target, cores, in_place)
    alone = price(replace(c, finish=None), target).instructions if c.func else 0
    if own.slices or c.finish is not None or alone < _WORTH * _MEET:
        return own
    others = (
        sliced_candidate(o, target, cores, in_place)
        for o in kernels
        if o.finish is None and o is not c and {*c.in_place} <= {*o.in_place}
    )
    found = [o for o in others if o.slices]
    best = min(found, key=lambda o: _instructions(o, target, cores), default=own)
    return best if _instructions(best, target, cores) < alone else own


def _lean(kernels: Sequence[Candidate], c: Candidate, target: Target) -> Candidate:
    """The fastest slices of another kernel that take less scratch; `c`, if there are
    none."""
    cores = len(c.slices)
    if c.scratch == 0 or cores == 0 or c.finish is not None:
        return c
    others = [o for o in kernels if cores * o.scratch < c.scratch and o.finish is None]
    made = [sliced_candidate(o, target, cores) for o in others]
    found = [one for one in made if one.slices and one.scratch < c.scratch]
    return min(found, key=lambda o: _instructions(o, target, cores), default=c)


def _smaller(
    fast: Mapping[str, Candidate],
    small: Mapping[str, Candidate],
    first: _Tried,
    most: float,
    tried: Callable[[Mapping[str, Candidate]], _Tried],
) -> _Tried:
    """A plan within `most` bytes, if one is found: layers take their small slices, the
    one first with which the plan gets smallest. Else the fastest plan."""
    made, best, tries = dict(fast), first, _MOST_TRIES
    left = [name for name in fast if fast[name] != small[name]]
    while left and tries > 0:
        found = [(name, tried({**made, name: small[name]})) for name in left[:tries]]
        tries -= len(found)
        name, best = min(found, key=lambda one: (one[1].plan.arena_bytes, one[1].cost))
        if best.plan.arena_bytes <= most:
            return best
        made[name] = small[name]
        left.remove(name)
    return first


def _cost(plan: Plan, target: Target, cores: int) -> int:
    """The estimated instructions of a plan's kernels on several cores, from begin to
    end."""
    return _RUN + sum(step.span for step in _shared(plan, target, cores))


def _shared(plan: Plan, target: Target, cores: int) -> Iterator[SharedStep]:
    for step in plan.steps:
        if step.candidate.func is not None:
            own = replace(step.candidate, finish=None)
            each, meetings, meeting = _by_core(own, target, cores)
            yield SharedStep(step.node, each, meetings, meeting or _ALONE)


def _chosen(planner: Planner, plan: Plan) -> Mapping[str, Candidate]:
    """The kernel that the plan has for each layer."""
    first: dict[str, Candidate] = {}
    for step in plan.steps:
        first.setdefault(step.node.output, step.candidate)
    found: dict[str, Candidate] = {}
    for layer, kernels in planner.kernels.items():
        mine = [c for c in kernels if layer in first and _is(c, first[layer])]
        if mine:
            found[layer] = mine[0]
    return found


def _is(one: Candidate, other: Candidate) -> bool:
    """True if they do the same work: a plan may have named its tensors anew."""
    return _work(one) == _work(other)


def _work(c: Candidate) -> tuple[object, ...]:
    return c.func, c.args, c.images, c.bands, c.scratch


def sliced_candidate(
    c: Candidate, target: Target, cores: int, in_place: bool = False
) -> Candidate:
    """The candidate with the fastest proven slices; itself, if none are faster.

    in_place  only those with which outputs may lie over inputs as before
    """
    finish = c.finish and sliced_candidate(c.finish, target, cores, in_place)
    plain = replace(c, finish=finish) if finish is not c.finish else c
    is_known = c.func is not None and not isinstance(c.func, External)
    if not is_known or c.over is not None or c.also_in_place:
        return plain
    alone = _instructions(replace(c, finish=None), target, cores)
    size = -(-c.scratch // _ALIGN) * _ALIGN
    found: list[tuple[int, int, Candidate]] = []
    for number, one in enumerate(sliced(c)):
        shares = tuple(
            (*c.args, *share, core * size)
            for core, share in enumerate(one.shares(cores))
        )
        made = replace(
            plain,
            func=one.func,
            args=(*c.args, 0, one.extent, 0),
            slices=shares,
            scratch=cores * size,
        )
        cost = _instructions(replace(made, finish=None), target, cores)
        found.append((cost, number, made))
    for cost, _, made in sorted(found, key=lambda each: each[:2]):
        if cost >= alone:
            break
        proven, kept = are_disjoint(made, made.slices)
        lost = kept != c.in_place
        if proven and not (lost and (in_place or c.finish is not None)):
            return replace(made, in_place=kept)
    return plain


def _instructions(c: Candidate, target: Target, cores: int) -> int:
    """The estimated instructions of a candidate from begin to end: those of its longest
    slice, and of meeting; with what ends its work."""
    rest = _instructions(c.finish, target, cores) if c.finish is not None else 0
    each, _, meeting = _by_core(replace(c, finish=None), target, cores)
    return rest + max(each) + meeting


def _by_core(
    c: Candidate, target: Target, cores: int
) -> tuple[tuple[int, ...], int, int]:
    """The estimated instructions of each core, how often they meet, and what that
    takes."""
    if not c.slices:
        alone = price(c, target).instructions
        return (alone, *(0,) * (cores - 1)), 0, 0
    each = (price(replace(c, args=args), target).instructions for args in c.slices)
    calls = c.images * c.bands
    return tuple(each), calls, calls * _MEET * (cores - 1)


def cores_problems(asked: BuildOptions, several_models: bool = False) -> list[Problem]:
    """What does not go together with several cores yet."""
    if asked.cores == 1:
        return []
    others = {
        "--push": (bool(asked.push), "rows are computed as they come, by one core"),
        "--device": (
            isinstance(asked.target, Mapping) and len(asked.target) > 1,
            "a device is another processor, not another core",
        ),
        "several models": (
            several_models or not asked.alone,
            "kernels that models share have no slices",
        ),
    }
    found = []
    if asked.cores > MOST:
        found.append(Problem(OPTION, f"{asked.cores} are too many", f"1 to {MOST}"))
    return found + [
        Problem(OPTION, f"cannot be combined with {word}: {why}", f"leave out {OPTION}")
        for word, (given, why) in others.items()
        if given
    ]

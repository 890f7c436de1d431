"""Inputs that the caller hands over in rows: a step without a kernel provides the rows,
in lock step with the layers that read them. Knows rows, no addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import TASK_INPUT, Candidate, RowAccess
from pybuild.plan.buffers.sharing import Views
from pybuild.plan.choice import FAIR, HARDLY, is_worth, ordered
from pybuild.plan.plan import Plan
from pybuild.plan.schedule.lock_step import PUSH
from pybuild.plan.schedule.stages import Arrangement, Search, without_spare

OPTION = "--push"
# allowed instructions, relative to the fastest plan: users who push rows want little
# RAM first, but pay only for RAM that is saved; the first allows no extra cost
_COSTS = (1.0, 1.05, 1.25, 1.5, 3.0)
_HINT = "its first layers must be convolutions, pools or the like, over rows"

Nodes = Sequence[tuple[Node, Sequence[Candidate]]]


def pushed_plan(
    search: Search,
    pushed: Collection[str],
    made: Callable[[Arrangement], Plan],
    limit: int | None,
    anyway: Callable[[], Plan],
    cost: Callable[[Plan], float],
) -> Plan:
    """Return the plan with the fewest bytes whose inputs arrive in rows. Kernels that
    save bytes at a price are used if they save many bytes, if other kernels cost as
    much, or if nothing else keeps to the limit.

    cost    returns the instructions of a plan's kernels
    Errors  of arrange_fed
    """

    def best(able: Search) -> Plan:
        found = arrange_fed(able, pushed)
        return fastest_of_smallest(found, made, limit, anyway)

    usual = without_spare(search)
    if usual is search:
        return best(search)
    try:
        plan = best(usual)
    except BuildError:
        return best(search)
    few, more = sorted((plan, best(search)), key=lambda one: one.arena_bytes)
    if limit is not None and more.arena_bytes > limit:
        return few
    fair = cost(few) <= FAIR * cost(more)
    return few if fair or is_worth(few.arena_bytes, more.arena_bytes) else more


def fastest_of_smallest(
    ways: Sequence[Arrangement],
    made: Callable[[Arrangement], Plan],
    limit: int | None,
    anyway: Callable[[], Plan],
) -> Plan:
    """Return the fastest plan that is hardly larger than the smallest. `ways` are in
    order of rising cost; the first, which is the fastest, is taken if no plan saves
    bytes compared with `anyway`.

    limit   of the arena: it is kept at any price
    anyway  makes the plan whose inputs are held in memory; called only if needed
    """
    sizes = [made(found).arena_bytes for found in ways]
    most = min(sizes) * HARDLY
    if limit is not None and min(sizes) <= limit:
        most = min(most, limit)
    number = next(i for i, size in enumerate(sizes) if size <= most)
    if number and limit is None and most >= anyway().arena_bytes:
        number = 0
    return made(ways[number])


def arrange_fed(search: Search, pushed: Collection[str]) -> list[Arrangement]:
    """Return arrangements whose first steps provide the rows of pushed inputs. For each
    allowed cost they have the fewest bytes; the fastest is first."""
    graph = search.graph
    twice = {*pushed} & {*search.lazy}
    both = [f"'{name}'" for name in graph.inputs if name in twice]
    if both:
        what = f"{', '.join(both)} cannot be lazy, too: rows are copied as they come"
        raise BuildError(OPTION, what, "leave out --lazy")
    search = fed_search(search, pushed)
    found = [ordered(search, cost).least(cost) for cost in _COSTS]
    if not found[-1].steps:
        names = ", ".join(f"'{name}'" for name in graph.inputs if name in pushed)
        what = f"no order of the layers takes the rows of {names} as they come"
        raise BuildError(OPTION, what, _HINT)
    return [one for one in found if one.steps]


def fed_search(search: Search, pushed: Collection[str]) -> Search:
    """Return the search space in which these inputs arrive in rows.

    Errors  BuildError for an input that is not read row by row
    """
    graph = search.graph
    feeds = _feeds(graph, search.nodes, search.views, pushed)
    others = tuple(name for name in graph.inputs if name not in pushed)
    inside = replace(graph, inputs=others)
    return replace(search, graph=inside, nodes=[*feeds, *search.nodes])


def _feeds(
    graph: Graph, nodes: Nodes, views: Views, pushed: Collection[str]
) -> list[tuple[Node, list[Candidate]]]:
    """Return the steps that provide the rows of pushed inputs.

    Errors  BuildError for an input that is not read row by row, or that is a batch
    """
    found, problems = [], []
    for index, name in enumerate(graph.inputs):
        if name not in pushed:
            continue
        first = next((graph.called(n) for n, _ in nodes if name in n.inputs), "none")
        forms = _forms(nodes, views, name)
        images, rows, size = forms.pop() if len(forms) == 1 else (0, 0, 0)
        if images * rows * size != graph.tensor(name).bytes:
            what = f"input '{name}' is not read row by row: its first layer is "
            turned = any(n.op == "transpose" and name in n.inputs for n, _ in nodes)
            hint = f"--layout {name}=nhwc: pixels come as rows" if turned else _HINT
            problems.append(Problem(OPTION, f"{what}'{first}'", hint))
            continue
        if images > 1:
            what = f"input '{name}' is {images} images, which '{first}' reads in turn"
            problems.append(Problem(OPTION, what, "push a single one: a batch of 1"))
            continue
        made = Candidate(
            func=None,
            args=(TASK_INPUT, index),
            outputs=(RowAccess(name, rows, size),),
            inputs=(),
            bands=rows,
        )
        found.append((Node(PUSH, name, (), (name,)), [made]))
    if problems:
        raise BuildError.of(problems)
    return found


def _forms(nodes: Nodes, views: Views, name: str) -> set[tuple[int, int, int]]:
    """Return (images, rows, bytes of a row; 0: all rows at once) of an input, for each
    way in which kernels that run in lockstep read it."""
    found = set()
    root = views.of(name).root
    for _, candidates in nodes:
        bands = max(c.bands for c in candidates)
        for candidate in candidates:
            for access in candidate.inputs:
                if views.of(access.tensor).root == root and candidate.bands == bands:
                    size = access.row_bytes if access.stride else 0
                    found.add((candidate.images, access.rows, size))
    return found

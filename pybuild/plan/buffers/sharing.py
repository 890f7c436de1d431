"""Which tensors share memory: views of each other, and results in place.

A group is a set of tensors that are windows of one tensor; a block is a piece
of memory that one group, or several in turn (in place), occupy.
Knows no addresses: offsets here are inside a group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.ops.shape import ASSIGN
from pybuild.plan.buffers.views import concat_parts, slice_offset
from pybuild.records import dataclass


class View(NamedTuple):
    """A tensor as bytes [at, at + bytes) of its group's root tensor."""

    root: str
    at: int


@dataclass(frozen=True)
class Views:
    """The views of a graph, and the nodes that move no bytes because of them."""

    views: Mapping[str, View]
    dropped: frozenset[str]  # outputs of nodes that move no bytes

    def of(self, tensor: str) -> View:
        return self.views.get(tensor) or View(tensor, 0)


def find_views(graph: Graph) -> Views:
    """Find the reshapes, leading slices and leading concatenations that are views. A
    state's next value lies in the state's place if an assignment or the layer that
    computes it (state_in_place.py) writes it there. If the file prescribes storage,
    only reshapes whose output lies where their input does are views. An input and an
    output, or two outputs, never share a group: each can be bound to the user's own
    memory."""
    finder = _Finder(graph)
    finder.assign()
    if graph.storage:
        for node in graph.nodes:
            if node.op == "reshape" and _lies_there(node, graph):
                finder.alias(node, 0)
        return Views(finder.flat(), frozenset(finder.dropped))
    for node in graph.nodes:
        match node.op:
            case "reshape":
                finder.alias(node, 0)
            case "slice":
                at = slice_offset(node, graph)
                if at is not None:
                    finder.alias(node, at)
    for node in graph.nodes:
        if node.op == "concat":
            finder.join(node)
    finder.settle()
    return Views(finder.flat(), frozenset(finder.dropped))


def _lies_there(node: Node, graph: Graph) -> bool:
    blocks = {graph.storage.get(n) for n in (node.inputs[0], node.output)}
    return None in blocks or len(blocks) == 1


@dataclass
class _Finder:
    graph: Graph
    parent: dict[str, View] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    bound: dict[str, str] = field(init=False)  # group root -> boundary tensor
    assigned: frozenset[str] = field(init=False)  # what states become
    by_node: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        names = (*self.graph.inputs, *self.graph.outputs, *self.graph.state)
        self.bound = {name: name for name in names}
        nodes = [node for node in self.graph.nodes if node.op == ASSIGN]
        nexts = {state.next for state in self.graph.state.values()}
        self.assigned = frozenset({node.inputs[0] for node in nodes} | nexts)
        self.by_node = frozenset(node.output for node in nodes)

    def find(self, tensor: str) -> View:
        at = 0
        while tensor in self.parent:
            view = self.parent[tensor]
            at += view.at
            tensor = view.root
        return View(tensor, at)

    def assign(self) -> None:
        """Make the results of assignments views of their states."""
        for name, state in self.graph.state.items():
            if state.next in self.by_node:
                self.parent[state.next] = View(name, 0)

    def settle(self) -> None:
        """Make a state's next value a view of the state if a layer writes it there."""
        for name, state in self.graph.state.items():
            root = self.find(state.next).root
            if root != name:
                self.parent[root] = View(name, 0)

    def alias(self, node: Node, at: int) -> None:
        """Make the output a window of the input, unless something forbids it."""
        source, made = node.inputs[0], node.output
        if source in self.graph.constants:
            return
        view = self.find(source)
        if made in self.assigned and view.root in self.graph.state:
            return  # may be another, that has its next value before
        if made in self.bound:
            size = self.graph.tensor(view.root).bytes
            if view.root in self.bound or size != self.graph.tensor(made).bytes:
                return
            self.bound[view.root] = made
        self.parent[made] = View(view.root, view.at + at)
        self.dropped.add(made)

    def join(self, node: Node) -> None:
        """Make each part of a leading concatenation a window of the result."""
        parts = concat_parts(node, self.graph)
        if parts is None or len(set(node.inputs)) != len(node.inputs):
            return
        target = self.find(node.output)
        for name, _ in parts:
            view = self.find(name)
            whole = self.graph.tensor(view.root).bytes == self.graph.tensor(name).bytes
            fixed = name in self.graph.constants or view.root in self.bound
            if fixed or not whole or view.root == target.root:
                return
        if len({self.find(name).root for name, _ in parts}) != len(parts):
            return
        for name, at in parts:
            self.parent[self.find(name).root] = View(target.root, target.at + at)
        self.dropped.add(node.output)

    def flat(self) -> dict[str, View]:
        return {name: self.find(name) for name in self.parent}


@dataclass(frozen=True)
class Block:
    """Memory that is in use from step `first` to step `last`, both included.

    first -1: given before the run; last == step count: read after it
    """

    name: str
    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Storage:
    """Blocks, and which one holds each group's root tensor."""

    blocks: tuple[Block, ...]
    block_of: Mapping[str, str]


def scratch_of(node: Node) -> str:
    """The name of a node's working memory."""
    return f"{node.output} (scratch)"


@dataclass
class _Life:
    bytes: int
    first: int
    last: int
    groups: list[str]


def lifetimes(
    graph: Graph,
    steps: Sequence[tuple[Node, Candidate]],
    views: Views,
    keep_inputs: bool,
    lazy: Collection[str] = (),
) -> Storage:
    """Return the storage of all groups over the steps, with results in place if
    possible.

    lazy  inputs and outputs without memory, and so without a block
    """
    alone = [[step] for step in range(len(steps))]
    storage = staged(graph, steps, alone, views, keep_inputs, lazy)
    return Storage((*storage.blocks, *scratch(steps)), storage.block_of)


def staged(
    graph: Graph,
    steps: Sequence[tuple[Node, Candidate]],
    stages: Sequence[Sequence[int]],
    views: Views,
    keep_inputs: bool,
    without: Collection[str] = (),
) -> Storage:
    """Return the same as `lifetimes` for stages of steps, without scratch.

    stages   the numbers of each stage's steps; a stage's tensors are all alive at once
    without  tensors that get no block
    """
    stage_of = [stage for stage, each in enumerate(stages) for _ in each]
    lives = _group_lives(graph, steps, views, keep_inputs, stage_of)
    for name in without:
        lives.pop(views.of(name).root, None)
    block: dict[str, str] = {root: root for root in lives}
    for stage, each in enumerate(stages):
        if len(each) == 1:
            node, candidate = steps[each[0]]
            _try_in_place(graph, node, candidate, views, (lives, block, stage))
    blocks = [b for b in _blocks(lives) if block[b.name] == b.name]
    return Storage(tuple(blocks), {root: block[root] for root in lives})


def groups(
    graph: Graph,
    steps: Sequence[tuple[Node, Candidate]],
    views: Views,
    keep_inputs: bool,
) -> list[Block]:
    """Return one block for each group of views, named by its root."""
    return _blocks(_group_lives(graph, steps, views, keep_inputs, range(len(steps))))


def scratch(steps: Sequence[tuple[Node, Candidate]]) -> list[Block]:
    """Return a scratch block for each step that needs one."""
    return [
        Block(scratch_of(node), candidate.scratch, index, index)
        for index, (node, candidate) in enumerate(steps)
        if candidate.scratch
    ]


def _blocks(lives: Mapping[str, _Life]) -> list[Block]:
    return [Block(root, x.bytes, x.first, x.last) for root, x in lives.items()]


def _group_lives(
    graph: Graph,
    steps: Sequence[tuple[Node, Candidate]],
    views: Views,
    keep_inputs: bool,
    stage_of: Sequence[int],
) -> dict[str, _Life]:
    after = stage_of[-1] + 1 if stage_of else 0
    lives: dict[str, _Life] = {}

    def touch(tensor: str, when: int) -> None:
        root = views.of(tensor).root
        life = lives.get(root)
        if life is None:
            lives[root] = _Life(graph.tensor(root).bytes, when, when, [root])
        else:
            life.first, life.last = min(life.first, when), max(life.last, when)

    for name in graph.inputs:
        touch(name, -1)
        if keep_inputs:
            touch(name, after)
    for name in graph.state:
        touch(name, -1)
        touch(name, after)
    for (node, _), stage in zip(steps, stage_of, strict=True):
        for name in (*node.outputs, *node.inputs):
            if name and name not in graph.constants:
                touch(name, stage)
    for name in graph.outputs:
        if graph.sampled:  # it is read while the next samples come
            touch(name, -1)
        touch(name, after)
    return lives


def _try_in_place(
    graph: Graph,
    node: Node,
    candidate: Candidate,
    views: Views,
    state: tuple[dict[str, _Life], dict[str, str], int],
) -> None:
    """Give the output's group the memory of an input that is last read here."""
    lives, block, index = state
    made = views.of(node.output).root
    if made not in lives:
        return
    if lives[made].first != index or graph.tensor(made).bytes != lives[made].bytes:
        return
    for position in candidate.in_place:
        name = node.inputs[position]
        if not name or name in graph.constants:
            continue
        owner = block.get(views.of(name).root)
        if owner is None:
            continue
        life = lives[owner]
        others = {
            block.get(views.of(n).root)
            for n in node.inputs
            if n and n != name and n not in graph.constants
        }
        fits = life.bytes >= lives[made].bytes and views.of(name).at == 0
        same = graph.tensor(name).bytes == graph.tensor(node.output).bytes
        if life.last == index and owner not in others and fits and same:
            life.last = lives[made].last
            life.groups.append(made)
            block[made] = owner
            return

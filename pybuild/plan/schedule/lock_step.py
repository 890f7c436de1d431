"""Steps in lock step: which step waits for which, in which order bands are computed,
and how many rows of each tensor are needed at once. The order is found by simulating
crt/src/lockstep.c, so no formula repeats it. Knows rows and their bytes, no addresses.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import TASK_INPUT, Candidate, RowAccess
from pybuild.plan.buffers.sharing import Views
from pybuild.records import dataclass

PUSH = "push"  # the operator of a step that rows of the caller's come from
# limits of the fields of crt_link: bands and rows ahead, rows that a band makes, and
# links of a stage
_MOST_BANDS, _MOST_MADE, _MOST_LINKS = 32767, 255, 255

Work = tuple[Node, Candidate]


class Link(NamedTuple):
    """A struct crt_link: what a step waits for. Steps count from 1."""

    reader: int
    maker: int
    stride: int
    ahead: int
    rows: int
    made: int
    asker: int = 0


@dataclass(frozen=True)
class Ring:
    """The ring of a tensor's rows: slots of a block, with the rows `at` bytes into each
    slot.

    home   the tensor that owns the memory: this one, or one that overwrites its rows
    Units  rows: number of slots; pitch: bytes from one slot to the next
    """

    home: str
    rows: int
    pitch: int
    at: int = 0


@dataclass(frozen=True)
class Lockstep:
    """The result of joining steps into a stage.

    rings   the rings of tensors that are not held whole, by root
    blocks  bytes of memory for rings, by home
    """

    links: tuple[Link, ...]
    rings: Mapping[str, Ring]
    blocks: Mapping[str, int]


def can_join(candidate: Candidate) -> bool:
    """Return True if a step may share a stage with others."""
    return (
        (candidate.func is not None or candidate.args[0] == TASK_INPUT)
        and candidate.images == 1
        and candidate.bands <= _MOST_BANDS
        and all(access.window <= _MOST_BANDS for access in candidate.inputs)
    )


def join(works: Sequence[Work], views: Views, held: Container[str]) -> Lockstep:
    """Return how the steps, given in plan order, advance together.

    held  roots of tensors that must be whole, as other stages use them too
    """
    tensors = _tensors(works, views)
    links = _links(works, tensors)
    times = band_times([c.bands for _, c in works], links)
    lives = {
        root: life
        for root, tensor in tensors.items()
        if root not in held and (life := _life(tensor, works, times)) is not None
    }
    return Lockstep(tuple(links), *_place(works, views, tensors, lives, times))


# ---- what waits for what ---------------------------------------------------------


@dataclass
class _Tensor:
    """The steps, numbered from 0, that make and read a group of views."""

    makers: list[tuple[int, RowAccess]] = field(default_factory=list)
    readers: list[tuple[int, RowAccess]] = field(default_factory=list)
    at: set[int] = field(default_factory=set)  # offsets of the views
    alike: bool = True  # all see the same rows


def _tensors(works: Sequence[Work], views: Views) -> dict[str, _Tensor]:
    found: dict[str, _Tensor] = {}
    for step, (_, candidate) in enumerate(works):
        for access in candidate.outputs:
            _of(access, views, found).makers.append((step, access))
        for access in candidate.inputs:
            _of(access, views, found).readers.append((step, access))
    for tensor in found.values():
        forms = {(a.rows, a.row_bytes) for _, a in tensor.makers + tensor.readers}
        whole = tensor.at == {0} and len(tensor.makers) < 2
        tensor.alike = len(forms) == 1 and whole
    return found


def _of(access: RowAccess, views: Views, found: dict[str, _Tensor]) -> _Tensor:
    view = views.of(access.tensor)
    if view.root not in found:
        found[view.root] = _Tensor()
    found[view.root].at.add(view.at)
    return found[view.root]


def _links(works: Sequence[Work], tensors: Mapping[str, _Tensor]) -> list[Link]:
    found: dict[int, list[Link]] = {}
    for tensor in tensors.values():
        for reader, access in tensor.readers:
            for maker, made in tensor.makers:
                if maker < reader:
                    bands = works[maker][1].bands
                    numbers = _needs(access, made, bands, tensor.alike)
                    link = Link(reader + 1, maker + 1, *numbers)
                    found.setdefault(reader, []).append(link)
    waited = {link.maker for links in found.values() for link in links}
    for step, (node, candidate) in enumerate(works[:-1]):
        if step + 1 in waited:
            continue
        # the last step also waits for steps whose results no step of the stage reads:
        # for the caller's rows, and for other final steps with as many bands, which it
        # takes along
        bands = candidate.bands
        if node.op == PUSH or bands == works[-1][1].bands:
            stride, ahead = (0, bands) if node.op == PUSH else (1, 1)
            link = Link(len(works), step + 1, stride, ahead, bands, 1)
            found.setdefault(len(works) - 1, []).append(link)
    return [
        link
        for reader in sorted(found, reverse=True)
        for link in sorted(set(found[reader]), key=lambda link: -link.maker)
    ]


def _needs(
    access: RowAccess, made: RowAccess, bands: int, alike: bool
) -> tuple[int, int, int, int]:
    """Return (stride, ahead, rows, made) of a link."""
    if not alike or not 0 < made.stride <= _MOST_MADE:
        return 0, bands, bands, 1
    ahead = max(access.window - access.pad, 0)
    if access.stride == 0:
        return 0, min(ahead, access.rows), access.rows, made.stride
    return access.stride, access.window - access.pad, access.rows, made.stride


def band_times(bands: Sequence[int], links: Sequence[Link]) -> Sequence[Array]:
    """Return the time at which each band of each step is computed."""
    return _simulated(tuple(bands), tuple(links))[0]


# cached: plans of one model have the same stages again and again
@functools.lru_cache(256)
def _simulated(
    bands: tuple[int, ...], links: tuple[Link, ...]
) -> tuple[tuple[Array, ...], Mapping[int, set[int]]]:
    """Return the times of `band_times`, and the links (from 1) through which each step
    was asked for rows. Link 0 stands for no link: the step was run as the last
    unfinished one."""
    done = [0] * (len(bands) + 1)
    times: list[list[int]] = [[] for _ in bands]
    askers: dict[int, set[int]] = {step: set() for step in range(1, len(bands) + 1)}
    needs: list[list[_Need]] = [[] for _ in done]
    for number, link in enumerate(links, 1):
        reader, maker, stride, ahead, rows, made, _ = link
        needs[reader].append((maker, stride, ahead, rows, made, number))
    now = 0
    for last in range(len(bands), 0, -1):
        asked = [(last, 0)]  # by which link; each waits for the one behind it
        while done[last] < bands[last - 1]:
            step, link_of = asked[-1]
            need = _lacking(step, done, needs[step])
            if need is not None:
                asked.append((need[0], need[-1]))
                continue
            assert done[step] < bands[step - 1], "rows that no band makes"
            done[step] += 1
            times[step - 1].append(now)
            now += 1
            askers[step].add(link_of)
            if step != last:
                asked.pop()  # all before it is as it was
    return tuple(np.asarray(each) for each in times), askers


def with_askers(bands: Sequence[int], links: Sequence[Link]) -> list[Link]:
    """Return the links, each with the link that asks for its reader's rows. Only the
    generated tables need this, not a plan."""
    askers = _simulated(tuple(bands), tuple(links))[1]
    found = []
    for link in links:
        known = askers.get(link.reader, set())
        asker = min(known) if len(known) == 1 else 0
        found.append(link._replace(asker=asker if asker <= _MOST_LINKS else 0))
    return found


# maker, stride, ahead, rows, made, and the number of the link
_Need = tuple[int, int, int, int, int, int]


def _lacking(step: int, done: Sequence[int], needs: Sequence[_Need]) -> _Need | None:
    """Return the first need that keeps a step from its next band, or None."""
    bands = done[step]
    for need in needs:
        maker, stride, ahead, rows, made, _ = need
        wanted = bands * stride + ahead
        if done[maker] * made < (wanted if wanted < rows else rows):
            return need
    return None


# ---- how long rows live ------------------------------------------------------------


@dataclass
class _Life:
    """The time at which each row is written, and the time of its last access."""

    made: Array
    last: Array
    row_bytes: int
    home: str = ""
    at: int = 0


def _life(
    tensor: _Tensor, works: Sequence[Work], times: Sequence[Array]
) -> _Life | None:
    """Return the life of a tensor's rows, or None if the tensor must be whole."""
    if not tensor.alike or len(tensor.makers) != 1:
        return None
    ((maker, access),) = tensor.makers
    if access.stride == 0:
        return None
    rows = np.arange(access.rows)
    made = times[maker][rows // access.stride]
    last = made.copy()
    for reader, read in tensor.readers:
        if not read.ring:
            last = last_reads(read, times[reader], last)
    return _Life(made, last, access.row_bytes)


def last_reads(read: RowAccess, when: Array, last: Array) -> Array:
    """Return when each row is last needed, given that a reader computes its bands at
    `when`; `last` are the times so far."""
    later: Array = np.maximum(last, when[-1])
    if read.stride:
        rows = np.arange(read.rows)
        band = np.minimum((rows + read.pad) // read.stride, len(when) - 1)
        inside = (band >= 0) & (band * read.stride - read.pad + read.window > rows)
        last_band = when[np.maximum(band, 0)]
        later = np.where(inside, np.maximum(last, last_band), last)
    return later


def _slots(life: _Life) -> int:
    """Return the smallest ring in which no row is overwritten too early."""
    last = np.maximum.accumulate(life.last)
    newest = np.searchsorted(life.made, life.made, side="right")
    oldest = np.searchsorted(last, life.made, side="left")
    return int((newest - oldest).max())


# ---- rows written over rows --------------------------------------------------------


def _place(
    works: Sequence[Work],
    views: Views,
    tensors: Mapping[str, _Tensor],
    lives: dict[str, _Life],
    times: Sequence[Array],
) -> tuple[dict[str, Ring], dict[str, int]]:
    chains = {root: [root] for root in lives}
    for root, life in lives.items():
        life.home = root
    for step, (node, candidate) in enumerate(works):
        for position in candidate.in_place:
            name = node.inputs[position]
            source = views.of(name).root
            made = views.of(node.output).root
            if source in lives and _follows(step, source, made, tensors, lives, times):
                _take_over(source, made, tensors, lives, chains)
                break
    rings: dict[str, Ring] = {}
    blocks: dict[str, int] = {}
    for home, chain in chains.items():
        pitch = max(lives[r].at + lives[r].row_bytes for r in chain if r in lives)
        maker = tensors[home].makers[0][1]
        rows, limit = maker.ring, maker.rows
        if home not in lives:  # the rows of a whole tensor take theirs over
            pitch, rows = maker.row_bytes, limit
        elif not rows:
            rows = min(_slots(_union([lives[r] for r in chain])), limit)
        for root in chain:
            if root in lives:
                rings[root] = Ring(home, rows, pitch, lives[root].at)
        if home in lives:
            blocks[home] = rows * pitch
    return rings, blocks


def _follows(
    step: int,
    source: str,
    made: str,
    tensors: Mapping[str, _Tensor],
    lives: Mapping[str, _Life],
    times: Sequence[Array],
) -> bool:
    """Return True if each row of `source` is last read by the band that writes the same
    row of `made`."""
    maker = tensors[made].makers
    if not tensors[made].alike or len(maker) != 1:
        return False
    read = next(a for s, a in tensors[source].readers if s == step)
    wrote = maker[0][1]
    one = (1, 1, 0)
    if (read.window, read.stride, read.pad) != one or read.rows != wrote.rows:
        return False
    if (wrote.window, wrote.stride, wrote.pad) != one or wrote.ring:
        return False
    if made not in lives:  # its rows do not move
        own = lives[source]
        end = own.at + own.row_bytes
        if end > wrote.row_bytes or own.home != source:
            return False
        chain = (life for life in lives.values() if life.home == source)
        if any(life.at + life.row_bytes > end for life in chain):
            return False
    return bool((lives[source].last == np.asarray(times[step])).all())


def _take_over(
    source: str,
    made: str,
    tensors: Mapping[str, _Tensor],
    lives: dict[str, _Life],
    chains: dict[str, list[str]],
) -> None:
    """Put the rows of `source`, and of the tensors that it overwrites, into the slots
    of `made`. The row being written never overtakes the row being read: the longer row
    begins first."""
    size = tensors[made].makers[0][1].row_bytes
    chain = chains.pop(lives[source].home)
    shift = max(size - lives[source].row_bytes - lives[source].at, 0)
    for root in chain:
        lives[root].at += shift
        lives[root].home = made
    if made in lives:
        longer = max(size - lives[source].row_bytes, 0)
        lives[made].at = lives[source].at - longer
        chains[made] = [*chain, made]
    else:
        chains[made] = [*chains.get(made, [made]), *chain]


def _union(chain: Sequence[_Life]) -> _Life:
    """Return the joint life of a chain: from a row's first write to its last read."""
    last = chain[0].last
    for life in chain[1:]:
        last = np.maximum(last, life.last)
    return _Life(chain[0].made, last, 0)

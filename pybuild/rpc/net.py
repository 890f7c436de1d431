"""One instance of a model on a board: set, run, get, as pybuild/host/native.py's Net.

Arrays are copied to the board and from it; what lies there is never seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Self

import numpy as np

from pybuild.dtype import Array
from pybuild.host.abi import CrtError, check
from pybuild.host.locks import one_at_a_time
from pybuild.host.named_tensors import Key, Named, fitting, index_of
from pybuild.host.ndarray import sent
from pybuild.host.parameter_image import Weights
from pybuild.host.timing import BenchmarkResult, Timing, laps
from pybuild.ir.graph import Tensor
from pybuild.package.report import layers
from pybuild.plan.plan import Plan
from pybuild.rpc.board import Board, Image
from pybuild.rpc.calls import NONE, Number, gets, outcome, sets

_NANO = 1e9


@one_at_a_time
class RemoteNet(Named):
    """An instance; its memory is the board's.

    plan    of the library in the board's flash
    lock    of the session: of all that is done on the board
    Thread  any, one after the other
    Errors  as Net; RemoteError where the board does not answer
    """

    takes_turns = False  # no other instance uses its memory

    def __init__(self, board: Board, plan: Plan) -> None:
        graph = plan.graph
        self.board, self.plan, self.lock = board, plan, board.lock
        self.inputs = tuple(graph.tensor(name) for name in graph.inputs)
        self.results = tuple(graph.tensor(name) for name in graph.outputs)
        self.parameters = tuple(slot.tensor for slot in plan.slots.values())
        self._number = board.value(Number.CREATE)
        self._release = board.owned(self, self._number)
        self._closed = False
        self._images: list[Image] = []
        self._lenders: dict[int, RemoteNet] = {}
        self._given: set[int] = set()  # inputs
        macs = sum(row.macs for row in layers(graph))
        # seconds of a run: a guess until there was one
        self._takes = 200 * max(macs, 1000) / board.operations_per_second

    @property
    def number(self) -> int:
        """The number of the object on the board.

        Errors  ValueError after close()
        """
        self.must_be_open()
        return self._number

    def must_be_open(self) -> None:
        """Checks that the instance is open.

        Errors  ValueError after close()
        """
        if self._closed:
            raise ValueError("the instance is closed: close() was called")

    def close(self) -> None:
        """Releases memory and parameters on the board, before its next call."""
        self._closed = True
        self._release()
        self._images.clear()
        self._lenders.clear()

    # ---- inputs and outputs ---------------------------------------------------

    def set_input(self, key: Key, value: Any) -> None:
        """Copies an array of the tensor's shape and type to the board."""
        index = index_of(key, self.inputs, "input")
        array = fitting(self.inputs[index], value)
        *parts, last = sets(self.number, index, array, self.board.most)
        if parts:
            self.board.transfer(parts)
        self.board.transfer([last])
        self._lenders.pop(index, None)
        self._given.add(index)

    def is_given(self, key: Key) -> bool:
        """True if an input has a value, whatever becomes of it in a run."""
        return index_of(key, self.inputs, "input") in self._given

    def is_bound(self, key: Key) -> bool:
        """True if runs read an input where another instance has a tensor."""
        return index_of(key, self.inputs, "input") in self._lenders

    @property
    def used_up(self) -> tuple[str, ...]:
        """Inputs whose own memory a run overwrites."""
        return tuple(t.name for t in self.inputs if t.name in self.plan.consumed)

    def borrow_input(self, key: Key) -> Array:
        """A copy of what is in an input; copyfrom() of it sets it."""
        index = index_of(key, self.inputs, "input")
        there = self._got(index, self.inputs[index])
        return sent(there, lambda array: self.set_input(index, array))

    def borrow_output(self, key: Key) -> Array:
        """A copy of an output of the last run."""
        index = index_of(key, self.results, "output")
        return self._got(len(self.inputs) + index, self.results[index])

    get_output = borrow_output

    def _got(self, slot: int, tensor: Tensor) -> Array:
        size = tensor.bytes
        data = self.board.transfer(gets(self.number, slot, size, self.board.most))
        raw = np.frombuffer(data, tensor.dtype.numpy).copy()
        return raw.reshape(tensor.shape)

    def bind_input(self, key: Key, array: Array | None) -> None:
        """None: back home. Arrays of this machine cannot be read there."""
        index = index_of(key, self.inputs, "input")
        if array is not None:
            self._not_there(self.inputs[index].name)
        self.board.value(Number.BIND, self.number, index, NONE, 0)
        self._lenders.pop(index, None)
        self._given.discard(index)

    def bind_output(self, key: Key, array: Array | None) -> None:
        index = index_of(key, self.results, "output")
        if array is not None:
            self._not_there(self.results[index].name)

    def bind_parameter(self, key: Key, array: Array | None) -> None:
        self._not_there(str(key))

    def _not_there(self, name: str) -> NoReturn:
        what = f"'{name}' cannot be where an array of this machine is"
        raise ValueError(f"{what}: set_input and get_output copy it")

    def read_where(self, key: Key, other: RemoteNet, other_key: Key) -> None:
        """Lets runs read an input where another instance on the board, or this one,
        has an output, else an input.
        """
        if other.board is not self.board:
            raise ValueError("the other module is on another board")
        index = index_of(key, self.inputs, "input")
        names = [tensor.name for tensor in other.results]
        if not isinstance(other_key, str) or other_key in names:
            there = len(other.inputs)
            there += index_of(other_key, other.results, "output")
        else:
            there = index_of(other_key, other.inputs, "input")
        self.board.value(Number.BIND, self.number, index, other.number, there)
        self._lenders[index] = other
        self._given.add(index)

    # ---- runs -----------------------------------------------------------------

    def setup(self) -> None:
        """Checks that everything is bound.

        Errors  CRT_ERR_UNBOUND naming what is missing
        """
        self._ended(Number.SETUP, 0)

    def go(self) -> None:
        self.ticks(1)

    def ticks(self, count: int) -> int:
        """Runs so many times; returns the ticks of the board's counter."""
        link = self.board.link
        start, resent = link.line.clock(), link.resent
        spent = self._ended(Number.RUN, count * self._takes, count)
        if count and link.resent == resent:  # else it was waited for what was lost
            self._takes = max((link.line.clock() - start) / count, 1e-4)
        return spent

    def run_stage(self, stage: int) -> int:
        """Its ticks.

        Errors  CRT_ERR_STAGE unless 0, 1, ... in turn
        """
        return self._ended(Number.STAGE, self._takes, stage)

    def _ended(self, number: Number, takes: float, *words: int) -> int:
        answer = self.board.answer(number, self.number, *words, takes=takes)
        if number is not Number.SETUP and answer.status == 0:
            used = {
                i for i, t in enumerate(self.inputs) if t.name in self.plan.consumed
            }
            self._given -= used - self._lenders.keys()
        if len(answer.data) < 16:  # no such graph any more
            return check(answer.status)
        came_to = outcome(answer.data)
        try:
            check(answer.status)
        except CrtError as error:
            tensors = (*self.inputs, *self.results, *self.parameters)
            if came_to.missing >= len(tensors):
                raise
            name = tensors[came_to.missing].name
            raise type(error)(f"{error}: '{name}'") from None
        return came_to.ticks

    def reset(self) -> None:
        """Forgets inputs and results."""
        self.board.value(Number.RESET, self.number)
        self._given = set(self._lenders)

    @property
    def stage_steps(self) -> list[range]:
        """The steps of each stage."""
        return [range(stage.first, stage.end) for stage in self.plan.stages]

    # ---- weights --------------------------------------------------------------

    def load_params(self, weights: Weights) -> None:
        """Binds the parameters of an image, sent unless it is there; others stay."""
        image = self.board.image(weights)
        self.board.value(Number.LOAD, self.number, image.number)
        self._images.append(image)

    def share_params(self, donor: Self, names: Iterable[str] | None = None) -> None:
        """Makes parameters, or those of these names, the donor's own."""
        everything = [tensor.name for tensor in self.parameters]
        for name in everything if names is None else names:
            mine = index_of(name, self.parameters, "parameter")
            theirs = index_of(name, donor.parameters, "parameter")
            self.share_parameter(mine, donor, theirs)

    def share_parameter(self, mine: int, donor: RemoteNet, theirs: int) -> None:
        """Makes one parameter, by its number, share that of the donor."""
        if donor.board is not self.board:
            raise ValueError("the other module is on another board")
        self.board.value(Number.SHARE, self.number, mine, donor.number, theirs)
        self._images += donor._images

    def release_params(self) -> None:
        self.board.value(Number.UNBIND, self.number)
        self._images.clear()

    # ---- time -----------------------------------------------------------------

    def timed(
        self, how: Timing, before: Callable[[], None] = lambda: None
    ) -> BenchmarkResult:
        """Runs, by the board's own counter; before: called before each run of a model
        that uses inputs up.
        """
        if how.cache_flush_bytes:
            raise ValueError("cache_flush_bytes: a board's caches are not flushed")

        def runs(number: int) -> int:
            if not self.used_up:
                return self.ticks(number)
            spent = 0
            for _ in range(number):
                before()
                spent += self.ticks(1)
            return spent

        def lap(number: int) -> int:
            return round(runs(number) * _NANO / self.board.hz)

        runs(1)

        return BenchmarkResult([x.seconds for x in laps(lap, how, how.prepare)])

    def stage_times(
        self, how: Timing, before: Callable[[], None] = lambda: None
    ) -> list[list[float]]:
        """Seconds of each stage in each repeat, by the board's own counter; before:
        called before each run.
        """
        count = len(self.stage_steps)
        sums = [0] * count

        def lap(number: int) -> int:
            sums[:] = [0] * count
            for _ in range(number):
                before()
                for stage in range(count):
                    sums[stage] += self.run_stage(stage)
            return round(sum(sums) * _NANO / self.board.hz)

        lap(1)
        found: list[list[float]] = [[] for _ in sums]
        for done in laps(lap, how):
            for stage, spent in enumerate(sums):
                found[stage].append(spent / self.board.hz / done.number)
        return found

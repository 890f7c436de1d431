"""A board on a link: its clock, its memory, and the weights in it.

Knows of a model only what its flash is called.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

from pybuild.host.abi import CrtError, check, errors
from pybuild.host.locks import one_at_a_time
from pybuild.host.parameter_image import Weights
from pybuild.params.image_read import read_image
from pybuild.params.image_write import write_image
from pybuild.rpc.calls import IMAGE_AT, Number, call, reads, writes
from pybuild.rpc.link import Answer, Call, Link
from pybuild.rpc.welcome import Welcome

_IN_USE = -28  # CRT_ERR_IN_USE
_SLICE = 0.05  # seconds in which the counter is compared with this machine's clock
_SLOWEST = 20e6  # operations a second of a simulator, at least
_SLOWEST_CHIP = 1e6  # of a board, however slow it says that its counter is


@one_at_a_time
class Board:
    """One session with a board.

    simulated  its counter is not that of the chip: it is measured here
    lock       of the link: of all that is done on the board
    Thread     any, one after the other
    """

    def __init__(self, link: Link, simulated: bool) -> None:
        self.link, self.lock = link, link.lock
        self.simulated = simulated
        self.welcome: Welcome = link.hello()
        self._hz = 0.0 if simulated else float(self.welcome.hz)
        self._images: weakref.WeakValueDictionary[int, Image] = (
            weakref.WeakValueDictionary()
        )
        # objects that nothing here refers to any more: released before the next call
        self._left: list[int] = []

    @property
    def most(self) -> int:
        """The most bytes of data in a frame."""
        return self.welcome.most

    # ---- calls ----------------------------------------------------------------

    def value(self, number: Number, *words: int) -> int:
        """The status of a call, which must be good."""
        self._clear()
        return self.link.value(call(number, *words))

    def answer(self, number: Number, *words: int, takes: float = 0) -> Answer:
        self._clear()
        return self.link.call(call(number, *words), takes)

    def transfer(self, calls: list[Call]) -> bytes:
        """Calls that may be done again, some on the way at a time; all they gave."""
        self._clear()
        return b"".join(self.link.transfer(calls))

    def owned(self, holder: object, number: int) -> Callable[[], object]:
        """Releases an object once its holder is gone, or the answer is called."""
        return weakref.finalize(holder, self._left.append, number)

    def _clear(self) -> None:
        """Releases what is left over; images wait for the instances that use them."""
        waiting = []
        while self._left:
            number = self._left.pop(0)
            status = self.link.call(call(Number.RELEASE, number)).status
            if status == _IN_USE:
                waiting.append(number)
        self._left += waiting

    # ---- memory ---------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Allocates a buffer on the board.

        Errors  CRT_ERR_MEMORY
        """
        number = self.answer(Number.ALLOCATE, size).status
        if number < 0:
            kind = errors().get(number, CrtError)
            what = f"{size} bytes; all that it has is {self.welcome.memory}"
            raise kind(f"{kind.__name__}: {kind.__doc__}: {what}")
        return number

    def write(self, buffer: int, at: int, data: bytes) -> None:
        self.transfer(writes(buffer, at, data, self.most))

    def read(self, buffer: int, at: int, size: int) -> bytes:
        return self.transfer(reads(buffer, at, size, self.most))

    def image(self, weights: Weights) -> Image:
        """These weights on the board: sent once for all instances."""
        found = self._images.get(id(weights))
        if found is None:
            found = self._images[id(weights)] = Image(self, weights)
        return found

    # ---- time -----------------------------------------------------------------

    @property
    def hz(self) -> float:
        """The frequency of the board's counter.

        Errors  ValueError where it has none
        """
        if not self._hz and self.welcome.has_ticks:
            self._hz = self._measured()
        if not self._hz:
            raise ValueError(f"{self.link.line.name}: the board has no counter")
        return self._hz

    def _measured(self) -> float:
        clock = time.perf_counter
        first, begin = self._ticks(), clock()
        while clock() - begin < _SLICE:
            last, end = self._ticks(), clock()
        return ((last - first) & 0xFFFFFFFF) / (end - begin)

    def _ticks(self) -> int:
        answer = self.answer(Number.TICKS)
        check(answer.status)
        return int.from_bytes(answer.data, "little")

    @property
    def operations_per_second(self) -> float:
        """A low guess, for timeouts."""
        if self.simulated or not self.welcome.hz:
            return _SLOWEST
        return max(float(self.welcome.hz), _SLOWEST_CHIP)


class Image:
    """Weights in the memory of a board.

    Owner   kept by the instances that use them, released with the last
    """

    def __init__(self, board: Board, weights: Weights) -> None:
        self.weights = weights  # so that its id is that of no other
        data = plain(weights.image.tobytes())
        self.number = buffer = board.allocate(IMAGE_AT + len(data))
        board.owned(self, buffer)
        board.write(buffer, IMAGE_AT, data)
        board.value(Number.OPEN, buffer, len(data))


def plain(image: bytes) -> bytes:
    """The image with nothing compressed: a board binds it in place."""
    found: Any = read_image(image, "parameters")
    if any(entry.codec for entry in found.entries):
        return write_image(found.parameters())
    return image

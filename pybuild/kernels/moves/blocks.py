"""Copies or fills bytes in blocks: in words (on cores that load them at any address) or
in vectors (M55). Knows no operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybuild.ir.loop import INT8, Bitcast, Expr, cast, const, load, offset, wide
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vectors import ALL4, BYTES, bytes_at, halves_at
from pybuild.records import dataclass
from pybuild.targets.target import Target

VECTOR, HALF, WORD = 16, 8, 4  # half a vector: eight bytes, widened and narrowed
# units of a row that is written out, and of a turn of a loop
_ROW = 4
_TURNS = {VECTOR: (4, 1), WORD: (16, 4)}


@dataclass(frozen=True)
class Value:
    """Four bytes with which rows are filled repeatedly, as a word and as a vector."""

    word: Expr
    vector: Expr

    @classmethod
    def bind(cls, k: Builder, word: Expr) -> Value:
        return cls(word, k.let("fill", Bitcast(ALL4(word), BYTES)))

    def put(self, k: Builder, unit: int, y: Expr, at: Expr) -> None:
        """A unit of them; the first one belongs to each fourth byte from y on."""
        if unit == VECTOR:
            k.store(y, at, self.vector)
        elif unit == WORD:
            k.store(y, at, self.word, wide=True)
        else:
            k.store(y, at, cast(self.word >> ((at & 3) * 8), INT8))


@dataclass(frozen=True)
class Blocks:
    """How a row of `size` bytes is done: a unit after the other.

    unit  bytes of one; turn: units of a turn of the loop, of what is written out all

    A row that is no number of turns has a last one that reaches back.
    """

    size: int
    unit: int
    turn: int

    @property
    def bytes(self) -> int:
        """Bytes per iteration."""
        return self.unit * self.turn

    @property
    def whole(self) -> bool:
        """True if the whole row is unrolled."""
        return self.size <= self.bytes

    @property
    def rest(self) -> bool:
        return not self.whole and self.size % self.bytes > 0

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two rows."""
        names = {VECTOR: "vectors", HALF: "halves", WORD: "words", 1: "bytes"}
        kind = names[self.unit]
        if self.whole:
            return f"{kind}_row{self.size}"
        return f"{kind}{self.bytes}{'_rest' * self.rest}"

    @property
    def words(self) -> str:
        """`key` for readers of the C."""
        if self.whole:
            return f"{self.size} bytes at once"
        return f"by {self.bytes} bytes{'; the last reaches back' * self.rest}"

    @property
    def cost(self) -> int:
        """The approximate instructions of a copy."""
        turns = -(-self.size // self.bytes)
        return 2 * self.turn if self.whole else turns * (2 * self.turn + 4)

    def move(self, k: Builder, size: Expr, x: Expr, y: Expr) -> None:
        """Copy a row of `size` bytes from x to y."""
        self._each(k, size, [y, x], lambda at, i: self._moved(k, at[1], at[0], i))

    def fill(self, k: Builder, size: Expr, y: Expr, value: Value) -> None:
        """Fill a row of `size` bytes with four bytes, repeated."""

        def put(at: Sequence[Expr], places: Sequence[int]) -> None:
            for place in places:
                value.put(k, self.unit, at[0], const(place))

        self._each(k, size, [y], put)

    def _each(
        self,
        k: Builder,
        size: Expr,
        pointers: Sequence[Expr],
        do: Callable[[Sequence[Expr], Sequence[int]], None],
    ) -> None:
        """`do`: a turn's units, at places behind the pointers"""
        places = [unit * self.unit for unit in range(self.turn)]
        if self.whole:
            do(pointers, [min(place, self.size - self.unit) for place in places])
            return
        moving = [k.let("at", pointer) for pointer in pointers]
        with k.loop("i", size - (self.bytes - 1), 0, self.bytes, rolled=True):
            do(moving, places)
            for at in moving:
                k.assign(at, offset(at, self.bytes))
        if self.rest:
            last = k.let("last", size - self.bytes)
            do([k.let("end", offset(pointer, last)) for pointer in pointers], places)

    def _moved(self, k: Builder, x: Expr, y: Expr, places: Sequence[int]) -> None:
        if self.unit < HALF:
            for at in places:
                word = self.unit == WORD
                k.store(y, at, wide(x, at) if word else load(x, at), wide=word)
            return
        read = bytes_at if self.unit == VECTOR else halves_at
        found = [k.let("v", read(x, at)) for at in places]
        # the first last: gcc has that store move the pointer
        for at, value in reversed(list(zip(places, found, strict=True))):
            k.store(y, at, value)


def ways(target: Target, size: int) -> list[Blocks]:
    """Return the ways to copy so many bytes on a core, compact code first; none if the
    core moves elements one by one."""
    return _ways(target, size, HALF)


def filling(target: Target, size: int) -> Blocks:
    """How so many bytes are filled, on a core that has a way: of vectors in the fewest
    turns, of words in little code."""
    found = _ways(target, size, WORD)
    return found[-1] if found[-1].unit == VECTOR else found[0]


def _ways(target: Target, size: int, least: int) -> list[Blocks]:
    """least  of the units of vectors"""
    vectors = "mve" in target.features
    if not size or not (vectors or "words" in target.features):
        return []
    units = (VECTOR, least, WORD, 1) if vectors else (WORD, 1)
    unit = next(u for u in units if u <= size)
    count = -(-size // unit)
    if count <= _ROW:
        return [Blocks(size, unit, count)]
    found = [Blocks(size, unit, turn) for turn in _TURNS[unit] if turn * unit < size]
    best = min(found, key=lambda one: one.cost)
    return [found[-1]] if best.cost >= found[-1].cost else [found[-1], best]

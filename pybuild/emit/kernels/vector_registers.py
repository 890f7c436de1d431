"""Assigns registers to the vectors of a piece of assembly: c_blocks.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybuild.ir.loop import Var
from pybuild.records import dataclass

_VECTORS = 8  # registers


@dataclass(frozen=True)
class Place:
    """From where a vector is loaded: bytes behind what its pointer was at first."""

    pointer: Var
    at: int


class VectorRegisters:
    """Eight, some of which are operands: vectors that are given, or made. Those of
    vectors to be made are free before. A vector that is loaded again later stays where
    it is, as long as nothing else needs its register.

    loads  by the number of the statement; last: the last that reads each vector
    fit    there were as many as were needed
    """

    def __init__(
        self,
        made: Sequence[Var],
        given: Sequence[Var],
        loads: Mapping[int, Place],
        last: Mapping[Var, int],
    ) -> None:
        self.made, self.given = made, given
        self.clobbered: list[str] = []
        own = _VECTORS - len(made) - len(given)
        self.fit = own >= 0
        self._loads, self._last = loads, last
        self._held = {v: operand(v) for v in given}
        self._free = [f"q{i}" for i in range(own)] + [operand(v) for v in made]
        self._order = [*self._free]
        self._kept: dict[Place, str] = {}
        self._places: dict[Var, Place] = {}

    def of(self, var: Var) -> str:
        return self._held[var]

    def load(self, number: int, var: Var) -> tuple[str, bool]:
        """The register of a vector, and whether it holds it already."""
        place = self._places[var] = self._loads[number]
        there = place in self._kept
        self._held[var] = self._kept.pop(place) if there else self._take(number)
        return self._held[var], there

    def make(self, number: int, var: Var) -> str:
        """The register of a vector that is computed of another."""
        self._places[var] = Place(var, 0)  # from which none is loaded
        self._held[var] = self._take(number)
        return self._held[var]

    def pack(self, var: Var) -> str:
        """The register of a vector that is made now, or changed."""
        name = operand(var)
        if var in self.made:
            kept = [place for place, where in self._kept.items() if where == name]
            self._free += [self._kept.pop(place) for place in kept]
            self.fit &= name in self._free or self._held.get(var) == name
            self._free = [one for one in self._free if one != name]
            self._held[var] = name
        return name

    def passed(self, number: int) -> None:
        """A statement is written: what nothing reads again leaves."""
        for var, where in [*self._held.items()]:
            if var not in self._places or self._last.get(var, -1) > number:
                continue
            del self._held[var]
            if self._next(self._places[var], number) is None:
                self._free.append(where)
            else:
                self._kept[self._places[var]] = where
        self._free.sort(key=self._order.index)

    def _take(self, number: int) -> str:
        if not self._free and self._kept:
            far = max(self._kept, key=lambda place: self._next(place, number) or 0)
            self._free.append(self._kept.pop(far))
        if not self._free:
            self.fit = False
            return "q0"
        found = self._free.pop(0)
        if found[0] == "q" and found not in self.clobbered:
            self.clobbered.append(found)
        return found

    def _next(self, place: Place, number: int) -> int | None:
        later = (n for n, one in self._loads.items() if n > number and one == place)
        return min(later, default=None)


def operand(var: Var) -> str:
    return f"%q[{var.name}]"

"""Instructions that things take on each core, and bytes of one: what the cost model
(prices.py) counts with.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from pybuild.records import dataclass
from pybuild.targets.target import Target


@dataclass(frozen=True)
class Prices:
    """Instructions that things take on a core, and bytes of one instruction.

    mac     multiply and add; of floats they are two
    far     a product of 64 bits; a function, with what shifts its result, on M0
    divide  where it is a function: with that
    real    an operation on floats, where they are functions
    turn    of a loop, beyond its body
    taken   a test, and its branch
    call    of a function, with what it saves and restores
    pointers  that registers hold in an innermost loop; others are loaded anew
    start   of a sum: its first number
    lane    of a vector that is made of numbers, or taken apart
    sums    of vectors that registers hold; others move into one and back
    carried  values from turn to turn of an innermost loop that leave a register for its
             counter; of more it is in memory, and each pointer moves by itself
    """

    load: float = 1
    store: float = 1
    mac: float = 1
    far: float = 2
    divide: float = 1
    real: float = 30
    turn: float = 2
    taken: float = 2
    call: float = 14
    bytes: float = 4.2
    pointers: int = 10
    start: float = 0
    lane: float = 0
    sums: int = 99
    carried: int = 99


M3 = Prices(carried=9)
_RV32 = Prices(mac=2, far=5, real=44, turn=2, bytes=3.1, pointers=24)
# of the cores that are known; others are taken for an M3
PRICES = {
    "cortex-m0": Prices(
        load=1.2, mac=2, far=40, divide=60, real=46, turn=2.5, bytes=2.8
    ),
    "cortex-m3": M3,
    "cortex-m4": M3,
    "cortex-m7": M3,
    "cortex-m33": M3,
    "cortex-m55": Prices(turn=1, bytes=3.6, start=1, lane=0.5, sums=6),
    "rv32imc": _RV32,
    "rv32imcv": _RV32,
    "rv32imc_zve32x": _RV32,
    "rv64gcv": replace(_RV32, far=2),
}


def plan_key(target: Target) -> Hashable:
    """Equal for targets that differ in name alone: they get the same plan."""
    name = target.name
    return replace(target, name=""), PRICES.get(name, M3), name in PRICES

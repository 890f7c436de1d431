"""Stack that compilers take for spilled vectors: multiples of a register's bytes."""

from __future__ import annotations

import pytest

from pybuild.boards.firmware.vector_frames import LONGEST, vector_bytes

_A0, _A1, _SP = 10, 11, 2


def _vlenb(to: int) -> int:
    return 0xC22 << 20 | 2 << 12 | to << 7 | 0x73


def _op(function: int, kind: int, to: int, a: int, b: int) -> int:
    return function << 25 | b << 20 | a << 15 | kind << 12 | to << 7 | 0x33


def _immediate(kind: int, to: int, a: int, number: int) -> int:
    return (number & 0xFFF) << 20 | a << 15 | kind << 12 | to << 7 | 0x13


def _li(to: int, number: int) -> int:
    return _immediate(0, to, 0, number)


def _slli(to: int, a: int, bits: int) -> int:
    return _immediate(1, to, a, bits)


_PUSH = _op(0x20, 0, _SP, _SP, _A0)
_ADD, _MULTIPLY = (_op(f, 0, _A0, _A0, _A1) for f in (0, 1))
_LOAD = _A0 << 7 | 2 << 12 | _SP << 15 | 0x03
# of a compiler: c.slli a0, 1; c.li a1, 6; c.mv a0, a1; c.add a0, a1
_TWICE, _SIX, _MOVED, _ADDED = 0x0506, 0x4599, 0x852E, 0x952E


def _code(*words: int) -> bytes:
    return b"".join(w.to_bytes(4 if w & 3 == 3 else 2, "little") for w in words)


@pytest.mark.parametrize(
    ("words", "registers"),
    [
        ((), 0),
        ((_vlenb(_A0), _PUSH), 1),
        ((_vlenb(_A0), _TWICE, _PUSH), 2),
        ((_vlenb(_A0), _slli(_A0, _A0, 3), _PUSH), 8),
        ((_vlenb(_A0), _slli(_A1, _A0, 1), _ADD, _PUSH), 3),
        ((_vlenb(_A0), _slli(_A1, _A0, 2), _ADDED, _PUSH), 5),
        ((_vlenb(_A0), _SIX, _MULTIPLY, _PUSH), 6),
        ((_vlenb(_A0), _li(_A1, 12), _MULTIPLY, _PUSH), 12),
        ((_vlenb(_A1), _MOVED, _PUSH), 1),
    ],
)
def test_registers(words: tuple[int, ...], registers: int) -> None:
    assert vector_bytes(_code(*words)) == registers * LONGEST


def test_a_frame_of_bytes() -> None:
    assert vector_bytes(_code(_li(_A0, 1040), _PUSH)) == 1040


@pytest.mark.parametrize("before", [(), (_vlenb(_A0), _LOAD)])
def test_what_is_not_known_is_said(before: tuple[int, ...]) -> None:
    """Nothing in a0, or what was loaded over it."""
    assert vector_bytes(_code(*before, _PUSH)) is None

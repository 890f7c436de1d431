"""Vectors that grow with a machine's registers, as LLVM IR: their types, their stores,
and the functions that their operations are. Knows no operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pybuild.dtype import DType
from pybuild.ir.loop import Func, Type, VectorType
from pybuild.ir.loop_verify import intrins

SCALABLE = "rvv"  # the feature of targets where LLVM's vectors of unknown length are
_WIDE = "64bit"  # that of RV64
_XLEN = "iXLEN"  # an integer of a register, as operations are written
_QUANTUM = 64  # bits of a register for each unit of LLVM's vscale
_BITS = 128  # of the registers by which lanes are counted
_TYPED = re.compile(r"%crt\.(int\d+)v(\d+)\b")
_STORED = re.compile(r"@crt_store_(int\d+)v(\d+)\b")


def stores_some(kind: Type, elem: DType) -> str:
    """The function that stores the first lanes of a vector.

    Errors  TypeError where that is narrowed, which it cannot be
    """
    if not isinstance(kind, VectorType) or kind.elem is not elem:
        raise TypeError(f"stores {kind} as {elem}")
    return f"crt_store_{elem.value}v{kind.lanes}"


def grown(
    features: frozenset[str], funcs: Iterable[Func], code: str
) -> tuple[list[str], list[str]]:
    """What a module with kernels needs for vectors that grow: types, which stand
    before their use, and functions.

    code  the kernels as text
    """
    called = {i.llvm: i for func in funcs for i in intrins(func)}
    defined = [i.define for i in called.values() if i.feature in features]
    stores = [_store(features, *one) for one in _named(_STORED, code)]
    texts = "\n".join(filter(None, [*defined, *stores]))
    if _XLEN in texts:
        width = 64 if _WIDE in features else 32
        texts = f"{_numbers(width)}\n{texts}".replace(_XLEN, f"i{width}")
    kinds = _named(_TYPED, f"{code}{texts}")
    types = [f"{_name(*kind)} = type {_spelt(features, *kind)}" for kind in kinds]
    # one declaration each, however many functions ask for it
    lines = texts.split("\n")
    declared = dict.fromkeys(line for line in lines if line.startswith("declare "))
    return types, [*declared, *(line for line in lines if line not in declared)]


def _numbers(width: int) -> str:
    """Between numbers of 32 bits and those of a register."""
    ways = ("sext", "trunc") if width > 32 else ("bitcast", "bitcast")
    turns = (("crt_wide", "i32", _XLEN), ("crt_narrow", _XLEN, "i32"))
    return "\n".join(
        f"""define internal {to} @{name}({given} %n) alwaysinline nounwind {{
  %made = {way} {given} %n to {to}
  ret {to} %made
}}"""
        for way, (name, given, to) in zip(ways, turns, strict=True)
    )


def _named(pattern: re.Pattern[str], code: str) -> list[tuple[str, int]]:
    """The elements and lanes of the types that a text names."""
    return sorted({(elem, int(lanes)) for elem, lanes in pattern.findall(code)})


def _name(elem: str, lanes: int) -> str:
    return f"%crt.{elem}v{lanes}"


def _spelt(features: frozenset[str], elem: str, lanes: int) -> str:
    bits = DType(elem).bytes * 8
    if SCALABLE in features:
        return f"<vscale x {lanes * _QUANTUM // _BITS} x i{bits}>"
    return f"<{lanes} x i{bits}>"


def _store(features: frozenset[str], elem: str, lanes: int) -> str:
    """The function of `stores_some`."""
    kind, align = _name(elem, lanes), DType(elem).bytes
    bits = 8 * align
    name = f"crt_store_{elem}v{lanes}"
    head = f"define internal void @{name}(ptr %to, {kind} %v, i32 %n)"
    if SCALABLE in features:
        short = f"nxv{lanes * _QUANTUM // _BITS}i{bits}"
        called = f"void @llvm.riscv.vse.{short}.p0.{_XLEN}"
        return f"""declare {called}({kind}, ptr, {_XLEN})
{head} alwaysinline nounwind {{
  %vl = call {_XLEN} @crt_wide(i32 %n)
  call {called}({kind} %v, ptr %to, {_XLEN} %vl)
  ret void
}}"""
    numbers, mask = f"<{lanes} x i32>", f"<{lanes} x i1>"
    each = ", ".join(f"i32 {lane}" for lane in range(lanes))
    stored = f"llvm.masked.store.v{lanes}i{bits}.p0"
    return f"""declare void @{stored}({kind}, ptr, i32, {mask})
{head} alwaysinline nounwind {{
  %one = insertelement {numbers} poison, i32 %n, i32 0
  %all = shufflevector {numbers} %one, {numbers} poison, {numbers} zeroinitializer
  %some = icmp slt {numbers} <{each}>, %all
  call void @{stored}({kind} %v, ptr %to, i32 {align}, {mask} %some)
  ret void
}}"""

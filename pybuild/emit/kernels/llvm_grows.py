"""Vectors that grow with a machine's registers, as LLVM IR: their types, their stores,
and the functions that their operations are. Knows no operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pybuild.dtype import DType
from pybuild.ir.loop import Func, Intrin, Let, Part, Store, Type, VectorType
from pybuild.ir.loop_verify import intrins, statements

SCALABLE = "rvv"  # the feature of targets where LLVM's vectors of unknown length are
_QUANTUM = 64  # bits of a register for each unit of LLVM's vscale
_BITS = 128  # of the registers by which lanes are counted


def stores_some(kind: Type, elem: DType) -> str:
    """The function that stores the first lanes of a vector.

    Errors  TypeError where that is narrowed, which it cannot be
    """
    if not isinstance(kind, VectorType) or kind.elem is not elem:
        raise TypeError(f"stores {kind} as {elem}")
    return f"crt_store_{elem.value}v{kind.lanes}"


def grown(
    features: frozenset[str], funcs: Iterable[Func]
) -> tuple[list[str], list[str]]:
    """What a module with kernels needs for vectors that grow: types, which stand
    before their use, and functions."""
    funcs = tuple(funcs)
    every = {i.name: i for func in funcs for i in intrins(func)}
    defined = {i.llvm: i.define for i in every.values() if _is_defined(i, features)}
    kinds = sorted(set(_kinds(funcs, every.values())), key=lambda k: (k[1], k[0]))
    types = [f"{_name(*kind)} = type {_spelt(features, *kind)}" for kind in kinds]
    stores = [_store(features, *kind) for kind in kinds]
    texts = "\n".join([*defined.values(), *stores])
    # one declaration each, however many functions ask for it
    lines = dict.fromkeys(line for line in texts.split("\n") if line[:8] == "declare ")
    bodies = [line for line in texts.split("\n") if line[:8] != "declare "]
    return types, [*lines, *bodies] if kinds else []


def _is_defined(intrin: Intrin, features: frozenset[str]) -> bool:
    return bool(intrin.define) and intrin.feature in features


def _kinds(
    funcs: Iterable[Func], called: Iterable[Intrin]
) -> Iterator[tuple[str, int, int]]:
    """The element, lanes and bits of an element of each type that grows."""
    given = [var.type for i in called for var in (*i.params, *(v for v, _ in i.lets))]
    given += [intrin.result.type for intrin in called]
    for func in funcs:
        for stmt in statements(func.body):
            match stmt:
                case Let(var):
                    given.append(var.type)
                case Store():
                    given.append(stmt.value.type)
                case Part(_, params):
                    given += [param.type for param in params]
    for kind in given:
        if isinstance(kind, VectorType) and kind.grows:
            yield kind.elem.value, kind.lanes, 8 * kind.elem.bytes


def _name(elem: str, lanes: int, bits: int) -> str:
    return f"%crt.{elem}v{lanes}"


def _spelt(features: frozenset[str], elem: str, lanes: int, bits: int) -> str:
    if SCALABLE in features:
        return f"<vscale x {lanes * _QUANTUM // _BITS} x i{bits}>"
    return f"<{lanes} x i{bits}>"


def _store(features: frozenset[str], elem: str, lanes: int, bits: int) -> str:
    """The function of `stores_some`."""
    kind, align = _name(elem, lanes, bits), bits // 8
    name = f"crt_store_{elem}v{lanes}"
    head = f"define internal void @{name}(ptr %to, {kind} %v, i32 %n)"
    if SCALABLE in features:
        short = f"nxv{lanes * _QUANTUM // _BITS}i{bits}"
        call = f"void @llvm.riscv.vse.{short}.p0.i32({kind} %v, ptr %to, i32 %n)"
        return f"""declare void @llvm.riscv.vse.{short}.p0.i32({kind}, ptr, i32)
{head} alwaysinline nounwind {{
  call {call}
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

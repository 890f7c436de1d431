"""Runs of loads, shifts, products and packs of vectors in Loop IR, as pieces of
assembly: gcc has no registers left there, adds to each pointer, and spills. A load
moves its pointer itself; which registers are needed is plain. The C of the same
statements stands beside.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from pybuild.emit.kernels.vector_registers import Place, VectorRegisters
from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    Assign,
    Binary,
    Call,
    Const,
    Expr,
    For,
    Let,
    Offset,
    PointerType,
    Stmt,
    Var,
    VectorType,
    WideLoad,
    children,
    pointer_type,
)
from pybuild.ir.loop_verify import operands, statements
from pybuild.records import dataclass

_REACH = 127  # bytes from a pointer that a load reaches, or moves it
SUMS = 8  # registers whose number is even; lr, which counts turns, is one
_REGISTERS = 12  # of the core, for sums and pointers
_FEW = 9  # of these, that gcc finds where some are of one kind
# in the order in which they are given; r7 and r9 may be the frame's and the platform's
_EVEN = ("r12", "r10", "r8", "r6", "r4", "r2", "r0", "lr")
_LOW = ("r1", "r3", "r5", "r0", "r2", "r4", "r6")
_HIGH = ("r11", *_LOW)
# by what lies there, and what it becomes
_LOADS = {
    (INT8, VectorType(INT8, 16)): "vldrb.8",
    (INT16, VectorType(INT16, 8)): "vldrh.16",
    (INT8, VectorType(INT16, 8)): "vldrb.s16",
}
_WIDER = "vldrb.s16"  # from one of the low eight registers
_INT4 = {"crt_high_int4": "vshr.s8", "crt_low_int4": "vshl.i8"}
_DOTS = {"crt_dot16": "vmladav{}.s8", "crt_dot8": "vmladav{}.s16"}
# which lanes are two sums
_PACKS = {
    "crt_lanes": ((2, 0, 0, 2), (3, 1, 1, 3)),
    "crt_twos4": ((2, 0, 0, 1),),
    "crt_odd4": ((3, 1, 1, 2),),
}
_ZERO = Const(0, INT32)


@dataclass(frozen=True)
class Block:
    """Statements that are one piece of assembly, and the loop that they are a turn of.

    zeros  sums that are 0 before
    after  variables that are read behind it
    """

    body: tuple[Stmt, ...]
    loop: For | None = None
    zeros: frozenset[Var] = frozenset()
    after: frozenset[Var] = frozenset()

    @functools.cached_property
    def written(self) -> Written:
        """Its instructions."""
        return Written(self)


def in_blocks(body: Sequence[Stmt]) -> list[Stmt | Block]:
    """The statements, with some of them grouped into blocks."""
    found: list[Stmt | Block] = []
    run: list[Stmt] = []
    zeros = set[Var]()

    def end(number: int) -> None:
        made = None
        if any(map(_product, run)):
            behind = statements(tuple(body[number:]))
            after = frozenset(v for s in behind for v in read(s))
            made = Block(tuple(run), None, frozenset(zeros), after)
        found.extend([made] if made and _fits(made) else run)
        for stmt in run:
            _note(stmt, zeros)
        run.clear()

    for number, stmt in enumerate(body):
        if _is_simple(stmt):
            run.append(stmt)
            continue
        end(number)
        found.append(_loop(stmt) or stmt)
        for inner in statements((stmt,)):
            _note(inner, zeros)
    end(len(body))
    return found


def _note(stmt: Stmt, zeros: set[Var]) -> None:
    if isinstance(stmt, Assign):
        zeros.discard(stmt.var)
    elif isinstance(stmt, Let) and stmt.value == _ZERO:
        zeros.add(stmt.var)


def _loop(stmt: Stmt) -> Block | None:
    """A loop that is one block."""
    if not isinstance(stmt, For) or not any(map(_product, stmt.body)):
        return None
    if not all(_is_simple(s) and not _packed(s) for s in stmt.body):
        return None
    if stmt.var in {v for s in stmt.body for v in read(s)}:
        return None
    made = Block(stmt.body, stmt)
    return made if _fits(made) else None


def read(stmt: Stmt) -> list[Var]:
    """The variables in a statement's own expressions."""
    found, roots = list[Var](), [*operands(stmt)]
    if isinstance(stmt, Let | Assign):
        roots.append(stmt.value)
    while roots:
        expr = roots.pop()
        found += [expr] if isinstance(expr, Var) else []
        roots += children(expr)
    return found


def _is_simple(stmt: Stmt) -> bool:
    """A vector is loaded, or of int4 taken apart, a product added, sums shifted or
    packed, or a pointer moved."""
    match stmt:
        case Let(Var(_, VectorType() as kind), WideLoad(Var() as x, Const(), _)):
            return (pointer_type(x).elem, kind) in _LOADS
        case Let(_, value) if value == _ZERO:
            return True
        case Let(_, Call(intrin, (Var(),))):
            return intrin.name in _INT4
        case Assign(Var() as total, Binary(">>", Var() as own, Const())):
            return own == total
        case Assign(
            Var() as total, Binary("-", Var() as own, Binary(">>", Var(), Const()))
        ):
            return own == total
        case Assign(Var() as total, Call(intrin, (Var() as own, Var(), Var()))):
            return own == total and (intrin.name in _DOTS or _packed(stmt) is not None)
        case Assign(Var(_, PointerType()) as x, Offset(Var() as own, Const())):
            return own == x
    return _packed(stmt) is not None


def _product(stmt: Stmt) -> Call | None:
    """The call that adds a product to a sum."""
    value = stmt.value if isinstance(stmt, Assign) else None
    return value if isinstance(value, Call) and value.intrin.name in _DOTS else None


def _packed(stmt: Stmt) -> Call | None:
    """The call that packs sums."""
    if not isinstance(stmt, Let | Assign) or not isinstance(stmt.value, Call):
        return None
    call = stmt.value
    plain = all(isinstance(arg, Var) for arg in call.args)
    apart = len(set(call.args)) == len(call.args)
    changed = isinstance(stmt, Assign)
    if changed != (call.intrin.name == "crt_odd4"):
        return None
    if changed and call.args[0] != stmt.var:
        return None
    return call if call.intrin.name in _PACKS and plain and apart else None


def _fits(block: Block) -> bool:
    """True if the block has products, and registers for all that it needs."""
    made = block.written
    if not made.fits or not made.pointers or not 2 <= len(made.sums) <= SUMS:
        return False
    return len(made.sums) + len(made.pointers) <= _REGISTERS and (
        not made.is_tight or made.registers is not None
    )


class Written:
    """The instructions of a block and what they need.

    sums      the names of operands that are summed into, and whether a product begins
              the sum
    pointers  whether each is moved; low: those that need a low register
    vectors   registers of vectors
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.lines: list[str] = []
        self.sums: dict[str, bool] = {}
        self.pointers: dict[Var, bool] = {}
        self.low = set[Var]()
        self.fits = True
        self._in: dict[Var, str] = {}  # of each sum the operand
        self._begun: set[Var] = set(block.zeros)
        self._idle: list[str] = []
        places, behind = places_of(block.body)
        self._moves = moves(places, behind)
        self._last = {v: i for i, s in enumerate(block.body) for v in read(s)}
        made = [s.var for s in block.body if isinstance(s, Let) and _packed(s)]
        self.changed = [
            s.var
            for s in block.body
            if isinstance(s, Assign) and _packed(s) and s.var not in made
        ]
        self.vectors = VectorRegisters(
            made, [*given_in(block), *self.changed], places, self._last
        )
        for number, stmt in enumerate(block.body):
            self._add(number, stmt)
        # a pointer that is moved and loads nothing
        moved = {s.var for s in block.body if isinstance(s, Assign)}
        self.fits &= not any(
            isinstance(x.type, PointerType) and x not in self.pointers for x in moved
        )
        kept = {s.var for s in block.body if isinstance(s, Let)} & block.after
        self.fits &= all(v in made or v in self._in for v in kept)
        self.fits &= self.vectors.fit

    @property
    def is_tight(self) -> bool:
        """gcc finds no registers by itself, where hardly one is left."""
        many = len(self.sums) + len(self.pointers) > _FEW
        return len(self.sums) == SUMS or (bool(self.low) and many)

    @property
    def registers(self) -> dict[str, str] | None:
        """Of sums and pointers, by name; and of the number of turns, where lr is taken.
        None: there are too few, or gcc finds them."""
        if not self.is_tight:
            return None
        found = dict(zip(self.sums, _EVEN, strict=False))
        others = sorted(self.pointers, key=lambda x: x not in self.low)
        names = [(x.name, x in self.low) for x in others]
        if self.block.loop is not None and len(self.sums) == SUMS:
            names.append(("turns", False))
        for name, low in names:
            free = [r for r in (_LOW if low else _HIGH) if r not in found.values()]
            if not free:
                return None
            found[name] = free[0]
        return found

    def _add(self, number: int, stmt: Stmt) -> None:
        match stmt:
            case Let(var, WideLoad()):
                self._load(number, var, stmt.value)
            case Let(var, value) if value == _ZERO:
                self._begun.add(var)
            case Let(var, Call(intrin, (Var() as both,))) if intrin.name in _INT4:
                x, made = self.vectors.of(both), self.vectors.make(number, var)
                self.lines.append(f"{_INT4[intrin.name]} {made}, {x}, #4")
            case Assign(var, Binary(">>", _, Const(bits))):
                self._change(var, "asr %[{0}], %[{0}], #{1}", bits)
            case Assign(var, Binary("-", _, Binary(">>", Var() as low, Const(bits)))):
                self.fits &= low in self._in
                name = self._in.get(low, "")
                self._change(
                    var, f"sub %[{{0}}], %[{{0}}], %[{name}], asr #{{1}}", bits
                )
            case Let(var, Call() as call):
                self._pack(number, var, call)
            case Assign(var, Call() as call) if _product(stmt):
                self._dot(number, var, call)
            case Assign(var, Call() as call):
                self._pack(number, var, call)
        self.vectors.passed(number)

    def _load(self, number: int, var: Var, value: Expr) -> None:
        assert isinstance(value, WideLoad) and isinstance(value.pointer, Var)
        x, kind = value.pointer, var.type
        assert isinstance(kind, VectorType)
        at, more = self._moves[number]
        self.fits &= max(abs(at), abs(more)) <= _REACH
        self.pointers[x] = self.pointers.get(x, False) or more != 0
        register, there = self.vectors.load(number, var)
        if there and not more:
            return
        where = f"[%[{x.name}]" + (f", #{at}]" if at else "]")
        where += f", #{more}" if more else ""
        name = _LOADS[pointer_type(x).elem, kind]
        self.low |= {x} if name == _WIDER else set()
        self.lines.append(f"{name} {register}, {where}")

    def _dot(self, number: int, total: Var, call: Call) -> None:
        _, x, w = call.args
        assert isinstance(x, Var) and isinstance(w, Var)
        begins = total not in self._in and total in self._begun
        if total not in self._in:
            self._in[total] = self._operand(total, begins)
        name = _DOTS[call.intrin.name].format("" if begins else "a")
        both = f"{self.vectors.of(x)}, {self.vectors.of(w)}"
        self.lines.append(f"{name} %[{self._in[total]}], {both}")

    def _change(self, total: Var, line: str, bits: int | float) -> None:
        """The change of a sum that this block adds to."""
        self.fits &= total in self._in
        self.lines.append(line.format(self._in.get(total, ""), bits))

    def _operand(self, total: Var, begins: bool) -> str:
        if begins and self._idle and total not in self.block.after:
            return self._idle.pop(0)
        self.sums[total.name] = begins
        return total.name

    def _pack(self, number: int, var: Var, call: Call) -> None:
        made = self.vectors.pack(var)
        given = [arg for arg in call.args if isinstance(arg, Var)]
        for second, first, m, n in _PACKS[call.intrin.name]:
            sums = [self._in.get(given[i]) for i in (m, n)]
            self.fits &= None not in sums
            one, other = (f"%[{name}]" for name in sums)
            self.lines.append(f"vmov {made}[{second}], {made}[{first}], {one}, {other}")
        for arg in given:
            done = self._last[arg] == number and arg not in self.block.after
            if arg in self._in and done:
                self._idle.append(self._in[arg])


def places_of(body: Sequence[Stmt]) -> tuple[dict[int, Place], dict[Var, int]]:
    """The offset from its initial pointer at which each statement loads a vector, and
    how many bytes each pointer is moved in all."""
    found, behind = dict[int, Place](), dict[Var, int]()
    for number, stmt in enumerate(body):
        match stmt:
            case Let(_, WideLoad(Var() as x, Const(index), _)):
                found[number] = Place(x, behind.get(x, 0) + _size(x, index))
            case Assign(x, Offset(_, Const(index))):
                behind[x] = behind.get(x, 0) + _size(x, index)
    return found, behind


def moves(
    places: Mapping[int, Place], behind: Mapping[Var, int]
) -> dict[int, tuple[int, int]]:
    """For each load: its offset in bytes, and how far it then moves its pointer."""
    found: dict[int, tuple[int, int]] = {}
    loads: dict[Var, list[tuple[int, int]]] = {}
    for number, place in places.items():
        loads.setdefault(place.pointer, []).append((number, place.at))
    for x, of_pointer in loads.items():
        total = behind.get(x, 0)
        if not total:
            found |= {number: (at, 0) for number, at in of_pointer}
            continue
        nexts = [at for _, at in of_pointer[1:]] + [total]
        for (number, at), after in zip(of_pointer, nexts, strict=True):
            found[number] = (0, after - at)
        first, at = of_pointer[0]
        if at:  # it would have to be moved before
            found[first] = (2 * _REACH, 0)
    return found


def _size(pointer: Expr, index: float) -> int:
    return int(index) * pointer_type(pointer).elem.bytes


def given_in(block: Block) -> list[Var]:
    """Vectors that are multiplied, and loaded before the block."""
    own = {s.var for s in block.body if isinstance(s, Let)}
    found = dict[Var, None]()
    for product in filter(None, map(_product, block.body)):
        vectors = product.args[1:]
        found |= {v: None for v in vectors if isinstance(v, Var) and v not in own}
    return [*found]

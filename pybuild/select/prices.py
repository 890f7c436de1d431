"""The cost model: what a kernel's instructions and bytes come to on a core.

A table for each core, and a walk over the Loop IR that counts with it: loops turn as
often as the layer's arguments say, tests are decided for its ends and its middle. What
does not change in the innermost loop counts as outside it. Nothing is compiled or run.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from pybuild.ir.loop import (
    FLOAT32,
    INT64,
    Assign,
    Binary,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    For,
    Func,
    If,
    Intrin,
    Lane,
    Lanes,
    Let,
    Load,
    Offset,
    Part,
    Row,
    Select,
    Stmt,
    Store,
    Type,
    Var,
    VectorType,
    WideLoad,
    children,
)
from pybuild.ir.loop_verify import loaded_from, names_in
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.external import External
from pybuild.records import dataclass
from pybuild.select.core_prices import M3, PRICES, Prices
from pybuild.select.instructions import (
    INSTRUCTIONS,
    SINGLE,
    is_power,
    turns_given,
    word_pairs,
)
from pybuild.select.known import known
from pybuild.select.seen import Seen, decisive, seen_in
from pybuild.select.vectors import moves, steps
from pybuild.targets.target import Target

# that are remembered: prices of kernels, cores with calls of parts, and such calls
_MOST_PRICES, _MOST_WALKS, _MOST_PARTS = 4096, 16, 1 << 16
_EDGE = 8  # turns of a loop at an edge, at most


@dataclass(frozen=True)
class Price:
    """Estimates for one candidate.

    instructions  of one inference
    kernel        bytes of its code, without
    parts         those of its functions, by name: other kernels may call them
    """

    instructions: int
    kernel: int
    parts: Mapping[str, int]


def price(candidate: Candidate, target: Target) -> Price:
    """What a candidate comes to; a task of the runtime's own is free, and a function
    that is not ours."""
    total, kernel, parts = 0.0, 0.0, dict[str, int]()
    at: Candidate | None = candidate
    while at is not None:
        if at.func is not None and not isinstance(at.func, External):
            once, code, inside = _price(at.func, decisive(at), target, at.rare)
            total += at.images * at.bands * once
            kernel += code
            parts |= inside
        at = at.finish
    return Price(round(total), round(kernel), parts)


@functools.lru_cache(_MOST_PRICES)
def _price(
    func: Func, args: tuple[int | None, ...], target: Target, rare: float
) -> tuple[float, float, Mapping[str, int]]:
    """Instructions of a call, bytes of the kernel, and of its parts."""
    table = PRICES.get(target.name, M3)
    seen = seen_in(func, target)
    walk = _Walk(table, target, rare, seen if seen.func is func else None)
    once = walk.kernel(func, {a.name: n for a, n in zip(func.args, args, strict=True)})
    code = table.bytes * (walk.static + table.call)
    parts = {name: round(n * table.bytes) for name, n in walk.parts.items()}
    return once, code, parts


_Values = Mapping[str, int | None]
_Part = tuple[float, float, Mapping[str, float]]


@functools.lru_cache(_MOST_WALKS)
def _parts_of(target: Target, rare: float) -> dict[tuple[object, ...], _Part]:
    """What calls of parts came to, by their names and the values that they were given:
    layers of a model share most of them."""
    return {}


class _Walk:
    """One kernel: `static` instructions are those in its code, once each.

    seen    what is known of its code
    turned  of variables, the loops, as bits, whose turn their value depends on; tested:
            those on which what is done depends; again: the code has been counted
    """

    def __init__(
        self,
        table: Prices,
        target: Target,
        rare: float = 0.0,
        seen: Seen | None = None,
    ) -> None:
        self.table, self.target, self.rare = table, target, rare
        self.values: dict[str, int | None] = {}
        self.depth_of: dict[str, int] = {}
        self.depth, self.static = 0, 0.0
        self.turned: dict[str, int] = {}
        self.tested, self.again, self.turning = 0, False, ""
        self.parts: dict[str, float] = {}
        self.intrins: dict[str, float] = {}
        self.code = seen or Seen()
        self.known, self.names = self.code.known, self.code.names

    def kernel(self, func: Func, values: _Values) -> float:
        self.values.update(values)
        return self.table.call + len(func.args) + self.block(func.body)

    def block(self, body: tuple[Stmt, ...]) -> float:
        pairs = self.code.pairs.get(id(body))
        if pairs is None:
            pairs = word_pairs(body) if "dsp" in self.target.features else 0
            self.code.pairs[id(body)] = pairs
        self.static -= pairs
        return sum(self.stmt(stmt) for stmt in body) - pairs

    def stmt(self, stmt: Stmt) -> float:
        match stmt:
            case Assign(Var(name), Offset(Var(last), by)) if (
                name == last
                and self.table.start
                and (isinstance(by, Const) or self.value(by) == 0)
            ):
                self.depth_of[name] = self.depth  # a load's address steps by itself
                return 0.0
            case Let(var, value) | Assign(var, value):
                self.values[var.name] = of = self.value(value)
                self.turned[var.name] = 0 if of is None else self.turns_of(value)
                spent, level = self.seen(value)
                self.depth_of[var.name] = level if isinstance(stmt, Let) else self.depth
                return spent
            case Store(pointer, index, value):
                apart = isinstance(index.type, VectorType)  # no address that steps
                spent = self.add(self.table.store + apart)
                return spent + sum(self.expr(e) for e in (pointer, index, value))
            case For():
                return self.loop(stmt)
            case If():
                return self.choice(stmt)
            case Part():
                return self.part(stmt)

    def loop(self, stmt: For) -> float:
        first, last = self.value(stmt.start), self.value(stmt.stop)
        turns = 1
        if first is not None and last is not None:
            turns = max(0, -((first - last) // stmt.step))
        self.depth += 1
        mine = 1 << self.depth
        outside = self.tested | self.turns_of(stmt.start, stmt.stop)
        self.turned[stmt.var.name], self.tested = mine, 0
        turning, self.turning = self.turning, stmt.var.name
        for var in (stmt.var.name, *self.code.changed_in(stmt.body)):
            self.depth_of[var] = self.depth
        each = self.turn(stmt, first, turns // 2) + self.add(self.table.turn)
        spilled = max(0, len(self.read_in(stmt.body)) - self.table.pointers)
        moved, starts = moves(stmt, self.table)
        each += self.add(spilled * self.table.load + moved)
        total = turns * each + self.add(starts)
        if first is not None and turns > 1 and self.tested & mine:
            total += self.ends(stmt, first, turns)
        self.tested = outside | (self.tested & ~mine)
        self.depth, self.turning = self.depth - 1, turning
        return total

    def turn(self, stmt: For, first: int | None, number: int) -> float:
        """The body in one turn."""
        at = None if first is None else first + number * stmt.step
        self.values[stmt.var.name] = at
        for var in self.code.changed_in(stmt.body):
            self.values[var] = None
        return self.block(stmt.body)

    def read_in(self, body: tuple[Stmt, ...]) -> set[str]:
        """Pointers of an innermost loop that reads many."""
        if len(body) <= self.table.pointers // 2:
            return set()
        if id(body) not in self.code.pointers:
            plain = all(isinstance(s, Let | Assign | Store) for s in body)
            self.code.pointers[id(body)] = loaded_from(body) if plain else set()
        return self.code.pointers[id(body)]

    def ends(self, stmt: For, first: int, turns: int) -> float:
        """What its first and its last turns take beyond one in the middle: they may be
        rows or columns at an edge, or what is left over."""
        static, again = self.static, self.again
        self.again = True
        more, half, middle = 0.0, turns // 2, self.turn(stmt, first, turns // 2)
        for numbers in (range(half), range(turns - 1, half, -1)):
            for number in numbers[:_EDGE]:
                beyond = self.turn(stmt, first, number) - middle
                more += beyond
                if not beyond:
                    break
        self.static, self.again = static, again
        return more

    def turns_of(self, *exprs: Expr) -> int:
        """The loops, as bits, whose turn what is known of values depends on."""
        found = 0
        for expr in exprs:
            for name in self.names_of(expr):
                found |= self.turned.get(name, 0)
        return found

    def choice(self, stmt: If) -> float:
        spent = self.expr(stmt.condition) + self.add(self.table.taken)
        holds = self.value(stmt.condition)
        if holds is not None and not stmt.rare:
            self.tested |= self.turns_of(stmt.condition)
            return spent + self.decided(stmt, bool(holds))
        yes, no = self.block(stmt.body), self.block(stmt.otherwise)
        if stmt.rare:
            return spent + no + self.rare * (yes - no)
        return spent + max(yes, no)

    def decided(self, stmt: If, holds: bool) -> float:
        """Of what is done; of what is not, the code counts once."""
        taken, other = (stmt.body, stmt.otherwise)[:: 1 if holds else -1]
        tested = self.tested
        if not self.again:
            self.block(other)
        self.tested = tested
        return self.block(taken)

    def part(self, stmt: Part) -> float:
        """A function of its own: its name says which others it is the same as."""
        spent = sum(self.expr(e) for e in stmt.args) + len(stmt.args)
        self.add(len(stmt.args) + 1)
        given = tuple(self.value(argument) for argument in stmt.args)
        self.tested |= self.turns_of(*turns_given(stmt))
        calls = _parts_of(self.target, self.rare)
        key = (stmt.name, len(stmt.body), given)
        if key not in calls:
            if len(calls) >= _MOST_PARTS:
                calls.clear()
            calls[key] = self.inside(stmt, given)
        inner, static, parts = calls[key]
        self.parts |= parts
        self.parts[stmt.name] = static + self.table.call
        return spent + (self.table.call + inner)

    def inside(self, stmt: Part, given: tuple[int | None, ...]) -> _Part:
        """Instructions of a call, those in its code, and in that of what it calls."""
        walk = _Walk(self.table, self.target, self.rare, self.code)
        walk.values = {p.name: n for p, n in zip(stmt.params, given, strict=True)}
        spent = walk.block(stmt.body)
        return spent, walk.static, walk.parts

    def add(self, instructions: float) -> float:
        self.static += instructions
        return instructions

    def expr(self, expr: Expr) -> float:
        """Instructions of one turn of the innermost loop around it."""
        return self.seen(expr)[0]

    def seen(self, expr: Expr) -> tuple[float, int]:
        """Those, and the innermost loop that changes the value."""
        if isinstance(expr, Var):
            return 0.0, self.depth_of.get(expr.name, 0)
        if isinstance(expr, Const):
            return 0.0, 0
        level_of = self.depth_of.get
        levels = [level_of(name, 0) for name in self.names_of(expr)]
        key = (id(expr), self.depth, *levels)
        found = self.known.get(key)
        if found is None:
            before = self.static
            found = (*self.walked(expr), self.static - before)
            self.known[key] = found
        else:
            self.static += found[2]
        return found[:2]

    def names_of(self, expr: Expr) -> tuple[str, ...]:
        names = self.names.get(id(expr))
        if names is None:
            names = self.names[id(expr)] = tuple(names_in(expr))
        return names

    def walked(self, expr: Expr) -> tuple[float, int]:
        """As seen, of an expression that is not remembered."""
        if self.table.start and steps(expr, self.turning):
            return 0.0, self.depth
        spent, level = 0.0, 0
        for child in children(expr):
            if isinstance(child, Var):
                level = max(level, self.depth_of.get(child.name, 0))
            elif not isinstance(child, Const):
                more, inner = self.walked(child)
                spent, level = spent + more, max(level, inner)
        if isinstance(expr, Load | WideLoad):
            return spent + self.add(self.table.load), self.depth
        own = self.own(expr)
        if level < self.depth:
            self.add(own / 2)  # moved out, and often shared
            return spent, level
        return spent + self.add(own), level

    def own(self, expr: Expr) -> float:
        """Of the operation itself."""
        match expr:
            case Binary(op, a, b):
                return self.operation(op, a, b)
            case Select():
                return 2
            case Call(intrin):
                return self.intrin(intrin)
            case Offset(_, index):
                return 0 if isinstance(index, Const) else 1
            case Row():
                return self.table.load
            case Lane():
                return self.table.lane
            case Lanes(parts):
                different = len({id(part) for part in parts}) > 1
                return self.table.lane * len(parts) if different else 0
            case Cast(value) if self.calls(expr.type):
                return self.table.real
            case Cast(value):
                wider = expr.type is INT64 and not isinstance(value, Const)
                return int(wider or FLOAT32 in (expr.type, value.type))
            case Bitcast():
                return 0 if isinstance(expr.type, VectorType) else 1
        return 0

    def intrin(self, intrin: Intrin) -> float:
        """One instruction, or what its meaning takes."""
        if intrin.name not in self.intrins:
            feature = SINGLE.get(intrin.name, intrin.feature)
            known = feature in self.target.features
            meaning = _Walk(self.table, self.target)
            spent = INSTRUCTIONS.get(intrin.name, 1.0)
            if not known:
                spent = sum(meaning.expr(value) for _, value in intrin.lets)
                spent += meaning.expr(intrin.result)
            self.intrins[intrin.name] = spent
        return self.intrins[intrin.name]

    def calls(self, of: Type) -> bool:
        """Whether operations on such values are functions."""
        return of is FLOAT32 and self.target.float_calls

    def operation(self, op: str, a: Expr, b: Expr) -> float:
        if self.calls(a.type):
            return self.table.real
        if a.type is INT64:
            return self.table.far if op in "*/%" else 2
        if op in "/%" and not is_power(b):
            return self.table.divide + 2 * (op == "%")
        if op in ("min", "max"):
            return 1 if isinstance(a.type, VectorType) else 2 + isinstance(b, Const)
        if op == "*" and not isinstance(b, Const):
            return 2 if a.type is FLOAT32 else self.table.mac
        product = isinstance(b, Binary) and b.op == "*" and not is_power(b.b)
        return 0 if op == "+" and product else 1  # in the multiplication's price

    def value(self, expr: Expr) -> int | None:
        return known(expr, self.values)

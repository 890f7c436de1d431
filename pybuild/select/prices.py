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
from pybuild.ir.loop_verify import loaded_from, names_in, operands
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.external import External
from pybuild.records import dataclass
from pybuild.select.core_prices import M3, PRICES, Prices
from pybuild.select.instructions import (
    INSTRUCTIONS,
    SINGLE,
    USUAL,
    crowded,
    dot_passes,
    is_dot,
    is_power,
    turns_given,
    word_pairs,
)
from pybuild.select.known_values import value_of
from pybuild.select.seen import Seen, decisive, seen_in
from pybuild.targets.target import Target

# that are remembered: prices of kernels, cores with calls of parts, and such calls
_MOST_PRICES, _MOST_WALKS, _MOST_PARTS = 4096, 16, 1 << 16
_ENTRY = 6  # of a loop over vectors: its counter and pointers, on a Cortex-M55


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
    """The cost of a candidate; tasks of the runtime and foreign functions are free."""
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
    """The costs of calls of parts, by their names and arguments: layers share them."""
    return {}


class _Walk:
    """One kernel: `static` instructions are those in its code, once each.

    seen  what is known of its code
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
                and (isinstance(by, Const) or value_of(by, self.values) == 0)
            ):
                self.depth_of[name] = self.depth  # a load's address steps by itself
                return 0.0
            case Let(var, value) | Assign(var, value):
                self.values[var.name] = value_of(value, self.values)
                spent, level = self.seen(value)
                self.depth_of[var.name] = level if isinstance(stmt, Let) else self.depth
                return spent
            case Store(_, index):
                apart = isinstance(index.type, VectorType)  # no address that steps
                spent = self.add(self.table.store + apart)
                return spent + sum(map(self.expr, operands(stmt)))
            case For():
                return self.loop(stmt)
            case If():
                return self.choice(stmt)
            case Part():
                return self.part(stmt)

    def loop(self, stmt: For) -> float:
        first, last = (
            value_of(stmt.start, self.values),
            value_of(stmt.stop, self.values),
        )
        turns = 1
        if first is not None and last is not None:
            turns = max(0, -((first - last) // stmt.step))
        self.depth += 1
        for var in (stmt.var.name, *self.code.changed_in(stmt.body)):
            self.depth_of[var] = self.depth
        each = self.turn(stmt, first, turns // 2) + self.add(self.table.turn)
        spilled = max(0, len(self.read_in(stmt.body)) - self.table.pointers)
        moved, starts = self.moved(stmt.body, turns)
        each += self.add(spilled * self.table.load + moved)
        total = turns * each + self.add(starts)
        if first is not None and turns > 1 and self.uneven(stmt.body):
            # the ends may be rows or columns at an edge, or what is left over
            static = self.static
            ends = self.turn(stmt, first, 0) + self.turn(stmt, first, turns - 1)
            total += ends + 2 * (self.table.turn - each)
            self.static = static
        self.depth -= 1
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

    def moved(self, body: tuple[Stmt, ...], turns: int) -> tuple[float, float]:
        """Of a loop whose sums fill the registers, in a turn and before it. Of vectors,
        summed from turn to turn or in each anew: moves to where these are summed, and
        back; the first numbers, and pointers that are kept for the next time."""
        if not self.table.start:
            return (crowded(body, self.table.carried) if turns > 1 else 0.0), 0.0
        dots = [s.var.name for s in body if isinstance(s, Assign) and is_dot(s.value)]
        sums = {*dots} - {s.var.name for s in body if isinstance(s, Let)}
        if not sums:
            return sum(self.moves(some) for some in dot_passes(body, {*dots})), 0.0
        more = max(0, len(sums) - self.table.sums)
        starts = self.table.start * len(sums) + _ENTRY
        return 2 * more * len(dots) / len(sums), starts

    def moves(self, dots: list[str]) -> float:
        """The moves for sums that begin in an iteration, beyond those in registers."""
        sums = len({*dots})
        return max(0, sums - self.table.sums) * (len(dots) / sums - 1)

    def uneven(self, body: tuple[Stmt, ...]) -> bool:
        """Turns may do more or less: a test, or loops, also of functions, change."""
        ends = [e for s in body if isinstance(s, For) for e in (s.start, s.stop)]
        changed = any(self.seen(e)[1] == self.depth for e in ends + turns_given(body))
        return changed or any(isinstance(s, If) for s in body)

    def choice(self, stmt: If) -> float:
        spent = self.expr(stmt.condition) + self.add(self.table.taken)
        known = value_of(stmt.condition, self.values)
        yes, no = self.block(stmt.body), self.block(stmt.otherwise)
        if stmt.rare:
            return spent + no + self.rare * (yes - no)
        if known is None:
            return spent + max(yes, no)
        return spent + (yes if known else no)

    def part(self, stmt: Part) -> float:
        """A function of its own: its name says which others it is the same as."""
        spent = sum(self.expr(e) for e in stmt.args) + len(stmt.args)
        self.add(len(stmt.args) + 1)
        given = tuple(value_of(argument, self.values) for argument in stmt.args)
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
        names = self.names.get(id(expr))
        if names is None:
            names = self.names[id(expr)] = tuple(names_in(expr))
        level_of = self.depth_of.get
        key = (id(expr), self.depth, *[level_of(name, 0) for name in names])
        found = self.known.get(key)
        if found is None:
            before = self.static
            found = self.known[key] = (*self.walked(expr), self.static - before)
        else:
            self.static += found[2]
        return found[:2]

    def walked(self, expr: Expr) -> tuple[float, int]:
        """The same as seen, for an expression that is not cached."""
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
        """The cost of the operation itself."""
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
            known = SINGLE.get(intrin.name, intrin.feature) in self.target.features
            meaning = _Walk(self.table, self.target)
            spent = intrin.takes or INSTRUCTIONS.get(intrin.name, 1.0)
            if not known and intrin.name in USUAL:
                spent = USUAL[intrin.name]
            elif not known:
                spent = sum(meaning.expr(value) for _, value in intrin.lets)
                spent += meaning.expr(intrin.result)
            self.intrins[intrin.name] = spent
        return self.intrins[intrin.name]

    def calls(self, of: Type) -> bool:
        """True if operations on such values are functions."""
        return of is FLOAT32 and self.target.float_calls

    def operation(self, op: str, a: Expr, b: Expr) -> float:
        if self.calls(a.type):
            return self.table.real
        if a.type is INT64:
            return self.table.far if op in "*/%" else 2
        if op in "/%" and not is_power(b):
            return self.table.divide + 2 * (op == "%")
        if op in ("min", "max"):
            return 3 if isinstance(b, Const) else 2
        if op == "*" and not isinstance(b, Const):
            return 2 if a.type is FLOAT32 else self.table.mac
        product = isinstance(b, Binary) and b.op == "*" and not is_power(b.b)
        return 0 if op == "+" and product else 1  # in the multiplication's price

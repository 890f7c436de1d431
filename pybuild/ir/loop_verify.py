"""Checks of the Loop IR: names, types and where stores may go; a text dump."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from operator import is_

from pybuild.ir.loop import (
    INT16,
    INT32,
    Assign,
    Binary,
    Call,
    Expr,
    For,
    Func,
    If,
    Intrin,
    Let,
    Load,
    Offset,
    Part,
    Piece,
    PointerType,
    Row,
    Select,
    Stmt,
    Store,
    Type,
    Var,
    VectorType,
    WideLoad,
    children,
    const,
    pointer_type,
    scalar_type,
)


def verify(func: Func) -> None:
    """Checks that every name is declared once and before use, and that every type fits.

    Errors  ValueError naming the kernel and the first fault
    """
    scope = {var.name: var for var in func.args}
    scope.update({var.name: var for var, _ in func.arrays})
    try:
        _block(func.body, scope)
    except ValueError as error:
        raise ValueError(f"kernel {func.name}: {error}") from None


def _block(body: tuple[Stmt, ...], outer: dict[str, Var]) -> None:
    scope = dict(outer)
    for stmt in body:
        _stmt(stmt, scope)


def _stmt(stmt: Stmt, scope: dict[str, Var]) -> None:
    match stmt:
        case Let(var, value):
            _expr(value, scope)
            _same(var, value)
            _declare(var, scope)
        case Assign(var, value):
            _expr(value, scope)
            _expr(var, scope)
            _same(var, value)
        case Store(pointer, index, value, wide, count):
            for expr in operands(stmt):
                _expr(expr, scope)
            target = pointer_type(pointer)
            _require(target.writable, "stores through a read-only pointer")
            fits = target.elem == value.type or isinstance(value.type, VectorType)
            if wide:
                fits = value.type == INT32 and target.elem.bytes < 4
            _require(fits, f"stores {value.type} as {target.elem}")
            fits = index.type == INT32
            if isinstance(index.type, VectorType):
                fits = index.type.elem is INT16 and index.type == value.type
            _require(fits, "an index is not int32")
            grows = isinstance(value.type, VectorType) and value.type.grows
            _require(grows == (count is not None), "a count of lanes, or none")
        case For(var, start, stop, step, body):
            _expr(start, scope)
            _expr(stop, scope)
            _require(step > 0, f"loop {var.name} has step {step}")
            inner = dict(scope)
            _declare(var, inner)
            _block(body, inner)
        case If(condition, body, otherwise):
            _expr(condition, scope)
            _block(body, scope)
            _block(otherwise, scope)
        case Part(_, params, args, body):
            for param, arg in zip(params, args, strict=True):
                _expr(arg, scope)
                _same(param, arg)
            _block(body, {param.name: param for param in params})


def _declare(var: Var, scope: dict[str, Var]) -> None:
    _require(var.name not in scope, f"'{var.name}' hides another")
    scope[var.name] = var


def _same(var: Var, value: Expr) -> None:
    if isinstance(var.type, PointerType) and isinstance(value.type, PointerType):
        _require(var.type.elem == value.type.elem, f"'{var.name}' changes its element")
        _require(
            value.type.writable or not var.type.writable,
            f"'{var.name}' becomes writable",
        )
    else:
        _require(var.type == value.type, f"'{var.name}': {var.type} = {value.type}")


def _expr(expr: Expr, scope: dict[str, Var]) -> None:
    if type(expr) is Var:
        known = scope.get(expr.name)
        _require(known is expr or known == expr, f"'{expr.name}' is not declared")
        return
    inside = children(expr)
    for child in inside:
        _expr(child, scope)
    if not inside or type(expr) is Binary:
        return  # nothing more to see to
    match expr:
        case Load(_, index) | Offset(_, index) | Row(index) | WideLoad(_, index):
            _require(index.type == INT32, "an index is not int32")
        case Select(condition, a, b):
            _require(a.type == b.type, "select of two types")
            _require(scalar_type(condition).value == "bool", "select on a number")
        case Call(intrin, args):
            for param, arg in zip(intrin.params, args, strict=True):
                fits = _is_given(param.type, arg.type)
                _require(fits, f"{intrin.name}: {param.name}")


def _is_given(wanted: Type, given: Type) -> bool:
    """True if a parameter takes such an argument: what is only read may be written
    elsewhere."""
    match wanted, given:
        case PointerType(elem, False), PointerType(own, True):
            return elem is own
    return wanted == given


def _require(good: bool, what: str) -> None:
    if not good:
        raise ValueError(what)


def intrins(func: Func) -> list[Intrin]:
    """The functions that a kernel calls, callees before callers, each once."""
    found: dict[str, Intrin] = {}

    def visit(expr: Expr) -> None:
        for child in children(expr):
            visit(child)
        if isinstance(expr, Call):
            for _, value in expr.intrin.lets:
                visit(value)
            visit(expr.intrin.result)
            found.setdefault(expr.intrin.name, expr.intrin)

    for stmt in statements(func.body):
        for expr in operands(stmt):
            visit(expr)
    for part in reversed(statements(func.body)):
        if isinstance(part, Part):
            piece = Piece(
                part.name,
                part.params,
                const(0),
                doc=part.doc,
                body=part.body,
                in_place=part.in_place,
            )
            found.setdefault(part.name, piece)
    return list(found.values())


def with_distinct_parts(funcs: Iterable[Func]) -> tuple[Func, ...]:
    """The kernels; of parts of one name that are not the same, later ones get a number.

    Printers take the first part of a name, wherever it stands.
    """
    known: dict[str, Part] = {}
    made = ((func, _distinct(func.body, known)) for func in funcs)
    return tuple(f if body is f.body else replace(f, body=body) for f, body in made)


def _distinct(body: tuple[Stmt, ...], known: dict[str, Part]) -> tuple[Stmt, ...]:
    made = tuple(_distinct_inside(stmt, known) for stmt in body)
    return body if all(map(is_, made, body)) else made


def _distinct_inside(stmt: Stmt, known: dict[str, Part]) -> Stmt:
    if not isinstance(stmt, For | If | Part):
        return stmt
    body = _distinct(stmt.body, known)
    other = _distinct(stmt.otherwise, known) if isinstance(stmt, If) else ()
    if isinstance(stmt, If) and other is not stmt.otherwise:
        stmt = replace(stmt, otherwise=other)
    if body is not stmt.body:
        stmt = replace(stmt, body=body)
    return _numbered(stmt, known) if isinstance(stmt, Part) else stmt


def _numbered(part: Part, known: dict[str, Part]) -> Part:
    what = part.params, part.body, part.in_place
    name, count = part.name, 1
    first = known.setdefault(name, part)
    while (first.params, first.body, first.in_place) != what:
        count += 1
        name = f"{part.name}_{count}"
        first = known.setdefault(name, part)
    return part if name == part.name else replace(part, name=name)


def statements(body: tuple[Stmt, ...]) -> list[Stmt]:
    """All statements of a block, inner ones included, outermost first."""
    found: list[Stmt] = []
    for stmt in body:
        found.append(stmt)
        if isinstance(stmt, For):
            found += statements(stmt.body)
        elif isinstance(stmt, If):
            found += statements(stmt.body) + statements(stmt.otherwise)
        elif isinstance(stmt, Part):
            found += statements(stmt.body)
    return found


def operands(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement itself."""
    match stmt:
        case Let(_, value) | Assign(_, value):
            return (value,)
        case Store(pointer, index, value, _, count):
            return (pointer, index, value, *([] if count is None else [count]))
        case For(_, start, stop):
            return (start, stop)
        case If(condition):
            return (condition,)
        case Part(_, _, args):
            return args
    return ()


def _names(stmt: Stmt) -> tuple[str, ...]:
    """The names in a statement's own expressions; cached, because blocks are nested
    many times."""
    known = vars(stmt)
    found: tuple[str, ...] | None = known.get("_names")
    if found is None:
        names: dict[str, None] = {}
        left = [*operands(stmt)]
        while left:
            expr = left.pop()
            if type(expr) is Var:
                names[expr.name] = None
            else:
                left += children(expr)
        found = known["_names"] = tuple(names)
    return found


def used(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], Collection[str]]:
    """The block, and those inside, without variables that nothing reads afterwards;
    and the names that it uses or changes."""
    found: list[Stmt] = []
    names: set[str] = set()
    for stmt in reversed(body):
        if isinstance(stmt, Let):
            if stmt.var.name not in names:
                continue
        elif isinstance(stmt, Assign):
            names.add(stmt.var.name)
        elif not isinstance(stmt, Store):
            stmt, inner = _used_inside(stmt)
            names |= inner
        names.update(_names(stmt))
        found.append(stmt)
    return tuple(reversed(found)), names


def _used_inside(stmt: For | Part | If) -> tuple[For | Part | If, frozenset[str]]:
    """A statement with blocks, these as `used` leaves them, and their names: what they
    need depends on nothing outside, and is found once."""
    known = vars(stmt)
    if "_inner" in known:
        names: frozenset[str] = known["_inner"]
        return stmt, names
    body, inner = used(stmt.body)
    if isinstance(stmt, If):
        otherwise, more = used(stmt.otherwise)
        names = frozenset(inner) | frozenset(more)
        stmt = replace(stmt, body=body, otherwise=otherwise)
    else:
        names = frozenset(inner)
        stmt = replace(stmt, body=body)
    vars(stmt)["_inner"] = names
    return stmt, names


def has_halves(func: Func) -> bool:
    """True if a kernel moves vectors from or to int16."""
    for stmt in statements(func.body):
        moved: list[Expr | Store] = [e for o in operands(stmt) for e in walked(o)]
        moved += [stmt] if isinstance(stmt, Store) else []
        for one in moved:
            if isinstance(one, WideLoad):
                kind: Type = one.type
            elif isinstance(one, Store):
                kind = one.value.type
            else:
                continue
            elem = pointer_type(one.pointer).elem
            if isinstance(kind, VectorType) and INT16 in (elem, kind.elem):
                return True
    return False


def walked(expr: Expr) -> Iterator[Expr]:
    """An expression and all inside of it; of functions their arguments only."""
    left = [expr]
    while left:
        one = left.pop()
        yield one
        left += reversed(children(one))


def names_in(expr: Expr) -> set[str]:
    """All names of an expression."""
    return {inner.name for inner in walked(expr) if type(inner) is Var}


def changed(body: tuple[Stmt, ...]) -> set[str]:
    """Names that a block changes, blocks inside of it included; what a Part changes is
    its own."""
    found: set[str] = set()
    for stmt in body:
        match stmt:
            case Assign(var):
                found.add(var.name)
            case For():
                found |= changed(stmt.body)
            case If():
                found |= changed(stmt.body) | changed(stmt.otherwise)
    return found


def loaded_from(body: tuple[Stmt, ...]) -> set[str]:
    """Pointers that the statements of a block load from, blocks inside of it not."""
    every = (e for stmt in body for given in operands(stmt) for e in walked(given))
    pointers = (e.pointer for e in every if isinstance(e, Load))
    return {pointer.name for pointer in pointers if isinstance(pointer, Var)}


def has_vectors(func: Func) -> bool:
    """True if a kernel computes with vectors of a known length, or moves them."""
    values = [s.value for s in statements(func.body) if isinstance(s, Let | Store)]
    kinds = (value.type for value in values)
    return any(isinstance(kind, VectorType) and not kind.grows for kind in kinds)


def has_words(func: Func) -> bool:
    """True if a kernel moves several elements at once, the first in the low bits: what
    is so of a core only that stores the low byte first."""
    every = statements(func.body)
    given = (operand for stmt in every for operand in operands(stmt))
    loads = any(isinstance(e, WideLoad) for operand in given for e in walked(operand))
    return loads or any(isinstance(s, Store) and s.wide for s in every)

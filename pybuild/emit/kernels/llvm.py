"""Prints Loop IR as LLVM IR text: one kernel as one function.

Variables are stack slots that LLVM's first pass turns into registers.
Knows nothing of models, tables or targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.emit.kernels.llvm_declared import SCATTER, literal
from pybuild.emit.kernels.llvm_grows import stores_some
from pybuild.emit.kernels.llvm_order import (
    are_two_words,
    definitions,
    in_order,
    is_ordered,
    is_short,
    placed,
    places,
)
from pybuild.emit.kernels.llvm_values import (
    Printer,
    converted,
    instruction,
    lanes,
    llvm_type,
    memory_type,
    operation,
    resized,
)
from pybuild.ir.loop import (
    INT8,
    INT16,
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
    Var,
    VectorType,
    WideLoad,
    const,
    pointer_type,
    scalar_type,
)
from pybuild.ir.loop_verify import statements

# A name in scope is an SSA value, or a stack slot (then `True`)
_Scope = dict[str, tuple[str, bool]]


def function(
    func: Func,
    linkage: str = "",
    features: frozenset[str] = frozenset(),
    printed: set[str] | None = None,
) -> str:
    """A kernel as an LLVM function; needs the declarations of `declarations`.

    features  of the target (Target.features): instructions that Intrins may be;
              without one its meaning is printed
    printed   parts that the module has already; those that are printed are added
    """
    printer = Printer(_reassigned(func), features)
    printer.known = definitions(func)
    if func.ordered:
        printer.reads = printer.writes = ""
    elif func.in_place:
        printer.reads = printer.writes = ", !llvm.access.group !6"
        printer.innermost = ", !llvm.loop !7"
    scope: _Scope = {}
    for number, arg in enumerate(func.args):
        where = printer.emit(f"getelementptr inbounds i32, ptr %a, i32 {number}")
        value = printer.emit(f"load i32, ptr {where}, !invariant.load !0")
        scope[arg.name] = value, False
    for var, length in func.arrays:
        elem = llvm_type(pointer_type(var).elem)
        name = f"%{var.name}.array"
        printer.allocas.append(f"  {name} = alloca [{length} x {elem}], align 16")
        scope[var.name] = (name, False)
    _block(printer, func.body, scope)
    head = f"define {linkage}void @{func.name}(ptr noalias readonly %p, "
    head += "ptr noalias readonly %a) #0 {"
    known = set() if printed is None else printed
    return _function(printer, head) + "".join(_parts(printer, func, known))


def _function(printer: Printer, head: str) -> str:
    body = [head, "entry:", *printer.allocas, *printer.lines, "  ret void", "}", ""]
    return "\n".join(body)


def _parts(outer: Printer, func: Func, printed: set[str]) -> Iterator[str]:
    """The functions that the kernel's parts are; those of one name are one."""
    for part in statements(func.body):
        if isinstance(part, Part) and part.name not in printed:
            printed.add(part.name)
            printer = Printer(outer.mutable, outer.features)
            printer.known = outer.known
            scope = {p.name: (f"%{p.name}", False) for p in part.params}
            _block(printer, part.body, scope)
            params = (_parameter(p, part.in_place) for p in part.params)
            head = f"define internal void @{part.name}({', '.join(params)})"
            yield _function(printer, f"{head} noinline #0 {{")


def _parameter(var: Var, in_place: bool) -> str:
    word = llvm_type(var.type)
    if word == "ptr" and not in_place:
        word = "ptr noalias"
    return f"{word} %{var.name}"


def _reassigned(func: Func) -> frozenset[str]:
    return frozenset(s.var.name for s in statements(func.body) if isinstance(s, Assign))


def _block(printer: Printer, body: tuple[Stmt, ...], outer: _Scope) -> None:
    scope = dict(outer)
    done = -1
    for at, stmt in enumerate(body):
        if at + 1 < len(body) and at > done:
            two = stmt, body[at + 1]
            if are_two_words(two, printer.features):
                _two_words(printer, two, scope)
                done = at + 1
        if at > done:
            _stmt(printer, stmt, scope)


def _two_words(printer: Printer, two: tuple[Stmt, Stmt], scope: _Scope) -> None:
    """Neighbours in memory, by one instruction."""
    first, second = two
    assert isinstance(first, Let) and isinstance(first.value, Load)
    assert isinstance(second, Let)
    where = _element(printer, first.value.pointer, first.value.index, scope)
    # LLVM keeps those that are volatile in one
    both = printer.emit(f"load volatile i64, ptr {where}, align 4")
    _named(printer, first.var, printer.emit(f"trunc i64 {both} to i32"), scope)
    high = printer.emit(f"lshr i64 {both}, 32")
    _named(printer, second.var, printer.emit(f"trunc i64 {high} to i32"), scope)


def _named(printer: Printer, var: Var, text: str, scope: _Scope) -> None:
    if var.name not in printer.mutable:
        scope[var.name] = (text, False)
        return
    slot = printer.slot(var)
    printer.lines.append(f"  store {llvm_type(var.type)} {text}, ptr {slot}")
    scope[var.name] = (slot, True)


def _stmt(printer: Printer, stmt: Stmt, scope: _Scope) -> None:
    match stmt:
        case Let(var, value):
            _named(printer, var, _expr(printer, value, scope), scope)
        case Assign(var, value):
            text = _expr(printer, value, scope)
            if var.name in printer.places:
                kind, place = llvm_type(var.type), printer.places[var.name]
                text = printer.emit(placed(kind, text, place))
            slot = scope[var.name][0]
            printer.lines.append(f"  store {llvm_type(var.type)} {text}, ptr {slot}")
        case Store(pointer, index, Call(intrin, args)) if (
            intrin.stages and intrin.feature in printer.features
        ):
            where = _element(printer, pointer, index, scope)
            rows = [f"{llvm_type(a.type)} {_expr(printer, a, scope)}" for a in args]
            call = f"  call void @{intrin.llvm}(ptr {where}, {', '.join(rows)}, i32 "
            printer.lines += [f"{call}{stage})" for stage in range(intrin.stages)]
        case Store(pointer, index, value) if isinstance(index.type, VectorType):
            _scatter(printer, stmt, scope)
        case Store(pointer, index, value, _, Expr() as count):
            given = f"{llvm_type(value.type)} {_expr(printer, value, scope)}"
            where = _element(printer, pointer, index, scope)
            kind = stores_some(value.type, pointer_type(pointer).elem)
            some = f"i32 {_expr(printer, count, scope)}"
            printer.lines.append(f"  call void @{kind}(ptr {where}, {given}, {some})")
        case Store(pointer, index, value):
            elem = pointer_type(pointer).elem
            kind = memory_type(elem)
            text = _expr(printer, value, scope)
            where = _element(printer, pointer, index, scope)
            if isinstance(value.type, VectorType):
                there = replace(value.type, elem=elem)
                text = resized(printer, text, value.type, there)
                kind, where = llvm_type(there), f"{where}, align {elem.bytes}"
            elif stmt.wide:
                kind, where = "i32", f"{where}, align 1"
            printer.lines.append(f"  store {kind} {text}, ptr {where}{printer.writes}")
        case For():
            _for(printer, stmt, scope)
        case If():
            _if(printer, stmt, scope)
        case Part(name, params, args):
            values = (_expr(printer, arg, scope) for arg in args)
            words = (llvm_type(param.type) for param in params)
            call = ", ".join(map(" ".join, zip(words, values, strict=True)))
            printer.lines.append(f"  call void @{name}({call})")


def _scatter(printer: Printer, stmt: Store, scope: _Scope) -> None:
    """Stores each lane at its own place."""
    elem = pointer_type(stmt.pointer).elem
    to = f"ptr {_expr(printer, stmt.pointer, scope)}"
    index = f"<8 x i16> {_expr(printer, stmt.index, scope)}"
    value = f"<8 x i16> {_expr(printer, stmt.value, scope)}"
    assert stmt.value.type == VectorType(INT16, 8) and elem in (INT8, INT16)
    if "mve" in printer.features:
        size = "i32 8, i32 0" if elem is INT8 else "i32 16, i32 1"
        call = f"call void @{SCATTER}({to}, {index}, {value}, {size})"
        printer.lines.append(f"  {call}")
        return
    for i in range(8):
        lane = printer.emit(f"extractelement {value}, i32 {i}")
        kind = llvm_type(elem)
        if elem is INT8:
            lane = printer.emit(f"trunc i16 {lane} to i8")
        at = printer.emit(f"extractelement {index}, i32 {i}")
        where = printer.emit(f"getelementptr inbounds {kind}, {to}, i16 {at}")
        printer.lines.append(f"  store {kind} {lane}, ptr {where}{printer.writes}")


def _for(printer: Printer, loop: For, scope: _Scope) -> None:
    slot = printer.slot(loop.var)
    head, body, done = printer.label(), printer.label(), printer.label()
    start = _expr(printer, loop.start, scope)
    stop = _expr(printer, loop.stop, scope)
    printer.lines += [f"  store i32 {start}, ptr {slot}", f"  br label %{head}"]
    printer.lines.append(f"{head}:")
    now = printer.emit(f"load i32, ptr {slot}")
    test = printer.emit(f"icmp slt i32 {now}, {stop}")
    printer.lines += [f"  br i1 {test}, label %{body}, label %{done}", f"{body}:"]
    outside = printer.places
    printer.places = places(loop, printer.features) if loop.rolled else {}
    _block(printer, loop.body, {**scope, loop.var.name: (now, False)})
    printer.places = outside
    after = printer.emit(f"add nsw i32 {now}, {loop.step}")
    nested = any(isinstance(inner, For) for inner in statements(loop.body))
    note = "" if nested else printer.innermost
    if loop.rolled:
        note = ", !llvm.loop !9"
    elif not nested and "mve" in printer.features and is_short(loop, printer.known):
        note = ", !llvm.loop !12"
    printer.lines += [f"  store i32 {after}, ptr {slot}", f"  br label %{head}{note}"]
    printer.lines.append(f"{done}:")


def _if(printer: Printer, stmt: If, scope: _Scope) -> None:
    then, other, done = printer.label(), printer.label(), printer.label()
    test = _expr(printer, stmt.condition, scope)
    printer.lines += [f"  br i1 {test}, label %{then}, label %{other}", f"{then}:"]
    _block(printer, stmt.body, scope)
    printer.lines += [f"  br label %{done}", f"{other}:"]
    _block(printer, stmt.otherwise, scope)
    printer.lines += [f"  br label %{done}", f"{done}:"]


def _element(printer: Printer, pointer: Expr, index: Expr, scope: _Scope) -> str:
    base = _expr(printer, pointer, scope)
    kind = memory_type(pointer_type(pointer).elem)
    if index == const(0):
        return base
    where = _expr(printer, index, scope)
    return printer.emit(f"getelementptr inbounds {kind}, ptr {base}, i32 {where}")


def _expr(printer: Printer, expr: Expr, scope: _Scope) -> str:
    match expr:
        case Const(value, dtype):
            return literal(value, dtype)
        case Var(name, kind):
            text, in_slot = scope[name]
            return (
                printer.emit(f"load {llvm_type(kind)}, ptr {text}") if in_slot else text
            )
        case Load(pointer, index):
            where = _element(printer, pointer, index, scope)
            alias = printer.writes if pointer_type(pointer).writable else printer.reads
            return printer.emit(f"load {memory_type(expr.type)}, ptr {where}{alias}")
        case WideLoad(pointer, index, dtype, align):
            where = _element(printer, pointer, index, scope)
            alias = printer.writes if pointer_type(pointer).writable else printer.reads
            if isinstance(dtype, VectorType):
                elem = pointer_type(pointer).elem
                there = replace(dtype, elem=elem)
                at = f"ptr {where}, align {elem.bytes}{alias}"
                text = printer.emit(f"load {llvm_type(there)}, {at}")
                return resized(printer, text, there, dtype)
            at = f"ptr {where}, align {align}{alias}"
            return printer.emit(f"load {memory_type(dtype)}, {at}")
        case Row(index):
            where = _expr(printer, index, scope)
            slot = printer.emit(f"getelementptr inbounds ptr, ptr %p, i32 {where}")
            return printer.emit(f"load ptr, ptr {slot}, !invariant.load !0")
        case Offset(pointer, index):
            return _element(printer, pointer, index, scope)
        case Binary(op, a, b):
            left, right = _expr(printer, a, scope), _expr(printer, b, scope)
            return operation(printer, op, a.type, left, right)
        case Select(condition, a, b):
            test = _expr(printer, condition, scope)
            left, right = _expr(printer, a, scope), _expr(printer, b, scope)
            word = llvm_type(expr.type)
            return printer.emit(f"select i1 {test}, {word} {left}, {word} {right}")
        case Cast(value, VectorType() as kind):
            assert isinstance(value.type, VectorType)
            return resized(printer, _expr(printer, value, scope), value.type, kind)
        case Cast(value, DType() as dtype):
            return converted(
                printer, _expr(printer, value, scope), scalar_type(value), dtype
            )
        case Bitcast(value, dtype):
            text = _expr(printer, value, scope)
            word = llvm_type(value.type)
            return printer.emit(f"bitcast {word} {text} to {llvm_type(dtype)}")
        case Lane(vector, index):
            text = f"{llvm_type(vector.type)} {_expr(printer, vector, scope)}"
            return printer.emit(f"extractelement {text}, i32 {index}")
        case Lanes(parts):
            return lanes(printer, expr.type, [_expr(printer, p, scope) for p in parts])
        case Call(intrin, args):
            values = [_expr(printer, arg, scope) for arg in args]
            text = _call(printer, intrin, values)
            if is_ordered(intrin, printer.features):
                text = printer.emit(in_order(llvm_type(expr.type), text))
            return text
    raise TypeError(f"no LLVM IR for {expr}")


def _call(printer: Printer, intrin: Intrin, values: list[str]) -> str:
    """An instruction, or its meaning."""
    if intrin.llvm and intrin.feature in {"", *printer.features}:
        return instruction(printer, intrin, values)
    inner: _Scope = {
        p.name: (v, False) for p, v in zip(intrin.params, values, strict=True)
    }
    for var, value in intrin.lets:
        inner[var.name] = (_expr(printer, value, inner), False)
    return _expr(printer, intrin.result, inner)

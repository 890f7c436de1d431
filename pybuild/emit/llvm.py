"""Prints Loop IR as LLVM IR text: one kernel as one function.

Variables are stack slots that LLVM's first pass turns into registers.
Knows nothing of models, tables or targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pybuild.dtype import DType
from pybuild.emit.llvm_declared import (
    BELOW,
    FLOAT,
    INTEGER,
    ORDERED,
    SIGNED,
    UNSIGNED,
    literal,
    width,
)
from pybuild.loop import (
    COMPARISONS,
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
    PointerType,
    Row,
    Select,
    Stmt,
    Store,
    Type,
    Var,
    VectorType,
    WideLoad,
    const,
    pointer_type,
    scalar_type,
)
from pybuild.loop_verify import statements

_BITS = {
    DType.INT8: "i8", DType.UINT8: "i8", DType.INT16: "i16", DType.INT32: "i32",
    DType.INT64: "i64", DType.FLOAT32: "float", DType.BOOL: "i1",
    DType.UINT16: "i16", DType.UINT32: "i32", DType.UINT64: "i64",
    DType.FLOAT64: "double",
}  # fmt: skip


def llvm_type(kind: Type) -> str:
    """The LLVM spelling of a type."""
    if isinstance(kind, VectorType):
        return f"<{kind.lanes} x {_BITS[kind.elem]}>"
    return "ptr" if isinstance(kind, PointerType) else _BITS[kind]


@dataclass
class _Printer:
    """The state of printing one function."""

    lines: list[str] = field(default_factory=list)
    allocas: list[str] = field(default_factory=list)
    counter: int = 0
    mutable: frozenset[str] = frozenset()
    # alias metadata of loads and stores: what is written is not what is read
    reads: str = ", !alias.scope !4, !noalias !5"
    writes: str = ", !alias.scope !5, !noalias !4"
    innermost: str = ""  # metadata of loops without a loop inside
    kernel: str = ""
    features: frozenset[str] = frozenset()

    def fresh(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def emit(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self) -> str:
        self.counter += 1
        return f"b{self.counter}"

    def slot(self, var: Var) -> str:
        self.counter += 1
        name = f"%{var.name}.{self.counter}"
        self.allocas.append(f"  {name} = alloca {llvm_type(var.type)}")
        return name


# A name in scope is an SSA value, or a stack slot (then `True`)
_Scope = dict[str, tuple[str, bool]]


def function(
    func: Func, linkage: str = "", features: frozenset[str] = frozenset()
) -> str:
    """A kernel as an LLVM function; needs the declarations of `declarations`.

    features  of the target that it is compiled for (Target.features): instructions
              that Intrins may be; without one its meaning is printed
    """
    printer = _Printer(mutable=_reassigned(func), features=features)
    printer.kernel = func.name
    if func.in_place:
        printer.reads = printer.writes = ", !llvm.access.group !6"
        printer.innermost = ", !llvm.loop !7"
    scope: _Scope = {}
    for number, arg in enumerate(func.args):
        where = printer.emit(f"getelementptr inbounds i32, ptr %a, i32 {number}")
        scope[arg.name] = (
            printer.emit(f"load i32, ptr {where}, !invariant.load !0"), False
        )  # fmt: skip
    for var, length in func.arrays:
        elem = llvm_type(pointer_type(var).elem)
        name = f"%{var.name}.array"
        printer.allocas.append(f"  {name} = alloca [{length} x {elem}], align 16")
        scope[var.name] = (name, False)
    _block(printer, func.body, scope)
    head = f"define {linkage}void @{func.name}(ptr noalias readonly %p, "
    head += "ptr noalias readonly %a) #0 {"
    return _function(printer, head) + "".join(_parts(printer, func))


def _function(printer: _Printer, head: str) -> str:
    body = [head, "entry:", *printer.allocas, *printer.lines, "  ret void", "}", ""]
    return "\n".join(body)


def _parts(outer: _Printer, func: Func) -> Iterator[str]:
    """The functions that the kernel's parts are."""
    for part in statements(func.body):
        if isinstance(part, Part):
            printer = _Printer(
                mutable=outer.mutable, features=outer.features, kernel=outer.kernel
            )
            _block(
                printer, part.body, {p.name: (f"%{p.name}", False) for p in part.params}
            )
            params = map(_parameter, part.params)
            head = f"define internal void @{func.name}_{part.name}({', '.join(params)})"
            yield _function(printer, f"{head} noinline #0 {{")


def _parameter(var: Var) -> str:
    word = llvm_type(var.type)
    if word == "ptr":
        word = "ptr noalias"
    return f"{word} %{var.name}"


def _reassigned(func: Func) -> frozenset[str]:
    return frozenset(s.var.name for s in statements(func.body) if isinstance(s, Assign))


def _block(printer: _Printer, body: tuple[Stmt, ...], outer: _Scope) -> None:
    scope = dict(outer)
    for stmt in body:
        _stmt(printer, stmt, scope)


def _stmt(printer: _Printer, stmt: Stmt, scope: _Scope) -> None:
    match stmt:
        case Let(var, value):
            text = _expr(printer, value, scope)
            if var.name in printer.mutable:
                slot = printer.slot(var)
                printer.lines.append(
                    f"  store {llvm_type(var.type)} {text}, ptr {slot}"
                )
                scope[var.name] = (slot, True)
            else:
                scope[var.name] = (text, False)
        case Assign(var, value):
            text = _expr(printer, value, scope)
            slot = scope[var.name][0]
            printer.lines.append(f"  store {llvm_type(var.type)} {text}, ptr {slot}")
        case Store(pointer, index, Call(intrin, args)) if (
            intrin.stages and intrin.feature in printer.features
        ):
            where = _element(printer, pointer, index, scope)
            rows = [f"{llvm_type(a.type)} {_expr(printer, a, scope)}" for a in args]
            given = ", ".join([f"ptr {where}", *rows])
            for stage in range(intrin.stages):
                call = f"  call void @{intrin.llvm}({given}, i32 {stage})"
                printer.lines.append(call)
        case Store(pointer, index, value):
            elem = pointer_type(pointer).elem
            kind = _memory_type(elem)
            text = _expr(printer, value, scope)
            where = _element(printer, pointer, index, scope)
            if isinstance(value.type, VectorType):
                there = replace(value.type, elem=elem)
                text = _resized(printer, text, value.type, there)
                kind, where = llvm_type(there), f"{where}, align {elem.bytes}"
            printer.lines.append(f"  store {kind} {text}, ptr {where}{printer.writes}")
        case For():
            _for(printer, stmt, scope)
        case If():
            _if(printer, stmt, scope)
        case Part(name, params, args):
            values = (_expr(printer, arg, scope) for arg in args)
            words = (llvm_type(param.type) for param in params)
            call = ", ".join(map(" ".join, zip(words, values, strict=True)))
            printer.lines.append(f"  call void @{printer.kernel}_{name}({call})")


def _for(printer: _Printer, loop: For, scope: _Scope) -> None:
    slot = printer.slot(loop.var)
    head, body, done = printer.label(), printer.label(), printer.label()
    start = _expr(printer, loop.start, scope)
    stop = _expr(printer, loop.stop, scope)
    printer.lines += [f"  store i32 {start}, ptr {slot}", f"  br label %{head}"]
    printer.lines.append(f"{head}:")
    now = printer.emit(f"load i32, ptr {slot}")
    test = printer.emit(f"icmp slt i32 {now}, {stop}")
    printer.lines += [f"  br i1 {test}, label %{body}, label %{done}", f"{body}:"]
    _block(printer, loop.body, {**scope, loop.var.name: (now, False)})
    after = printer.emit(f"add nsw i32 {now}, {loop.step}")
    nested = any(isinstance(inner, For) for inner in statements(loop.body))
    note = "" if nested else printer.innermost
    if loop.rolled:
        note = ", !llvm.loop !9"
    printer.lines += [f"  store i32 {after}, ptr {slot}", f"  br label %{head}{note}"]
    printer.lines.append(f"{done}:")


def _if(printer: _Printer, stmt: If, scope: _Scope) -> None:
    then, other, done = printer.label(), printer.label(), printer.label()
    test = _expr(printer, stmt.condition, scope)
    printer.lines += [f"  br i1 {test}, label %{then}, label %{other}", f"{then}:"]
    _block(printer, stmt.body, scope)
    printer.lines += [f"  br label %{done}", f"{other}:"]
    _block(printer, stmt.otherwise, scope)
    printer.lines += [f"  br label %{done}", f"{done}:"]


def _element(printer: _Printer, pointer: Expr, index: Expr, scope: _Scope) -> str:
    base = _expr(printer, pointer, scope)
    kind = _memory_type(pointer_type(pointer).elem)
    if index == const(0):
        return base
    where = _expr(printer, index, scope)
    return printer.emit(f"getelementptr inbounds {kind}, ptr {base}, i32 {where}")


def _memory_type(dtype: DType) -> str:
    return "i8" if dtype is DType.BOOL else _BITS[dtype]


def _expr(printer: _Printer, expr: Expr, scope: _Scope) -> str:
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
            return printer.emit(f"load {_memory_type(expr.type)}, ptr {where}{alias}")
        case WideLoad(pointer, index, dtype, align):
            where = _element(printer, pointer, index, scope)
            alias = printer.writes if pointer_type(pointer).writable else printer.reads
            if isinstance(dtype, VectorType):
                elem = pointer_type(pointer).elem
                there = replace(dtype, elem=elem)
                at = f"ptr {where}, align {elem.bytes}{alias}"
                text = printer.emit(f"load {llvm_type(there)}, {at}")
                return _resized(printer, text, there, dtype)
            at = f"ptr {where}, align {align}{alias}"
            return printer.emit(f"load {_memory_type(dtype)}, {at}")
        case Row(index):
            where = _expr(printer, index, scope)
            slot = printer.emit(f"getelementptr inbounds ptr, ptr %p, i32 {where}")
            return printer.emit(f"load ptr, ptr {slot}, !invariant.load !0")
        case Offset(pointer, index):
            return _element(printer, pointer, index, scope)
        case Binary(op, a, b):
            left, right = _expr(printer, a, scope), _expr(printer, b, scope)
            return _binary(printer, op, a.type, left, right)
        case Select(condition, a, b):
            test = _expr(printer, condition, scope)
            left, right = _expr(printer, a, scope), _expr(printer, b, scope)
            word = llvm_type(expr.type)
            return printer.emit(f"select i1 {test}, {word} {left}, {word} {right}")
        case Cast(value, VectorType() as kind):
            assert isinstance(value.type, VectorType)
            return _resized(printer, _expr(printer, value, scope), value.type, kind)
        case Cast(value, DType() as dtype):
            return _cast(
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
            return _lanes(printer, expr.type, [_expr(printer, p, scope) for p in parts])
        case Call(intrin, args):
            values = [_expr(printer, arg, scope) for arg in args]
            if intrin.llvm and intrin.feature in {"", *printer.features}:
                return _instruction(printer, intrin, values)
            inner: _Scope = {
                p.name: (v, False) for p, v in zip(intrin.params, values, strict=True)
            }
            for var, value in intrin.lets:
                inner[var.name] = (_expr(printer, value, inner), False)
            return _expr(printer, intrin.result, inner)
    raise TypeError(f"no LLVM IR for {expr}")


def _instruction(printer: _Printer, intrin: Intrin, values: list[str]) -> str:
    if intrin.rotate:
        last = f"i32 {values[-1]}"
        turned = f"call i32 @llvm.fshr.i32({last}, {last}, i32 {intrin.rotate})"
        values = [*values[:-1], printer.emit(turned)]
    types = [llvm_type(param.type) for param in intrin.params]
    args = [f"{kind} {value}" for kind, value in zip(types, values, strict=True)]
    args = [*(f"i32 {n}" for n in intrin.lead), *args]
    args += [f"i32 {n}" for n in intrin.trail]
    result = llvm_type(intrin.result.type)
    return printer.emit(f"call {result} @{intrin.llvm}({', '.join(args)})")


def _lanes(printer: _Printer, kind: VectorType, values: list[str]) -> str:
    """A vector of scalars."""
    elem, made = _BITS[kind.elem], "poison"
    for index, value in enumerate(values):
        text = f"insertelement {llvm_type(kind)} {made}, {elem} {value}, i32 {index}"
        made = printer.emit(text)
    return made


def _resized(printer: _Printer, text: str, a: VectorType, b: VectorType) -> str:
    """A vector with lanes of another width."""
    if a.elem is b.elem:
        return text
    how = "sext" if a.elem.bytes < b.elem.bytes else "trunc"
    return printer.emit(f"{how} {llvm_type(a)} {text} to {llvm_type(b)}")


def _binary(printer: _Printer, op: str, kind: Type, left: str, right: str) -> str:
    name = llvm_type(kind)
    is_float = isinstance(kind, DType) and kind.is_float
    unsigned = isinstance(kind, DType) and kind.is_unsigned
    if op in COMPARISONS:
        integers = BELOW if unsigned else SIGNED
        test = f"fcmp {ORDERED[op]}" if is_float else f"icmp {integers[op]}"
        return printer.emit(f"{test} {name} {left}, {right}")
    if op in ("min", "max"):
        if is_float:
            order = (left, right) if op == "min" else (right, left)
            test = printer.emit(f"fcmp olt {name} {order[0]}, {order[1]}")
            return printer.emit(f"select i1 {test}, {name} {left}, {name} {right}")
        short = name.replace("<", "v").replace(" x ", "").strip(">")
        call = f"call {name} @llvm.s{op}.{short}({name} {left}, {name} {right})"
        return printer.emit(call)
    table = FLOAT if is_float else UNSIGNED if unsigned else INTEGER
    return printer.emit(f"{table[op]} {name} {left}, {right}")


def _cast(printer: _Printer, text: str, source: DType, target: DType) -> str:
    a, b = llvm_type(source), llvm_type(target)
    unsigned = source.is_unsigned or source is DType.BOOL
    if source.is_float and target.is_float:
        how = "fpext" if target is DType.FLOAT64 else "fptrunc"
        return printer.emit(f"{how} {a} {text} to {b}")
    if source.is_float:
        how = "fptoui" if target.is_unsigned else "fptosi"
        return printer.emit(f"{how} {a} {text} to {b}")
    if target.is_float:
        how = "uitofp" if unsigned else "sitofp"
        return printer.emit(f"{how} {a} {text} to {b}")
    if width(source) == width(target):
        return text
    if width(source) > width(target):
        return printer.emit(f"trunc {a} {text} to {b}")
    return printer.emit(f"{'zext' if unsigned else 'sext'} {a} {text} to {b}")

"""Prints a model's tables and kernels as one LLVM IR module.

The twin of model_c.py: the same symbols, the same structs of crt/abi.h.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pybuild.dtype import Array, DType
from pybuild.emit.kernels.external import llvm_declarations, llvm_function
from pybuild.emit.kernels.llvm import function
from pybuild.emit.kernels.llvm_declared import declarations, literal
from pybuild.emit.kernels.llvm_grows import grown
from pybuild.emit.kernels.llvm_wide import definitions
from pybuild.emit.tables.tables import DTYPES, Constant, Kernels, Tables, TensorRow
from pybuild.ir.loop import Func
from pybuild.kernels.base.external import External

ABI = 9
_OPERAND, _ROWS = "{ i32, i16, i16 }", "{ ptr, i32, i16, i16, i16, i16, i16 }"
_STEP = "{ ptr, ptr, ptr, ptr, i16, i16, i8, i8, i8, i8 }"
_STAGE = "{ i16, i8, i8, i16 }"
_LINK_FIELDS = ("i8", "i8", "i16", "i16", "i16", "i8", "i8")
_LINK = "{ " + ", ".join(_LINK_FIELDS) + " }"
_KEPT, _STATE = "{ ptr, i32, i32, i32 }", "{ ptr, ptr, i32, i32, i32 }"
_TENSOR = "{ ptr, ptr, float, i32, i32, i32, i16, i8, i8, i8, i8 }"
_COUNTS = ", ".join(["i16"] * 7)
_MODEL = f"{{ i32, {', '.join(['ptr'] * 12)}, i32, {_COUNTS}, i8, i8, ptr, ptr }}"
_SLICES = "{ ptr, i32 }"
_ELEMENT = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


def module(
    tables: Tables,
    triple: str = "",
    layout: str = "",
    features: frozenset[str] = frozenset(),
    later: Collection[str] = (),
) -> str:
    """The module; its exported symbols are NAME_model and, for several cores,
    NAME_slices.

    features  of the processor: whose instructions Intrins may be
    later     symbols of constants whose contents are not LLVM's
    Shapes    as crt/abi.h, laid out by the target's rules for C structs
    """
    shared = (tables.kernels, tables.constants)
    return modules((tables,), *shared, triple, layout, features, later)


def modules(
    models: Sequence[Tables],
    kernels: Kernels,
    constants: Sequence[Constant],
    triple: str = "",
    layout: str = "",
    features: frozenset[str] = frozenset(),
    later: Collection[str] = (),
) -> str:
    """Models that share kernels and constants, in one module."""
    head = [f'target triple = "{triple}"'] if triple else []
    head += [f'target datalayout = "{layout}"'] if layout else []
    for unpack in sorted({m.unpack for m in models} - {""}):
        head.append(f"declare i32 @{unpack}(ptr, i32, ptr, i32)")
    for advance in sorted({m.advance for m in models} - {""}):
        head.append(f"declare i32 @{advance}(ptr, ptr, ptr)")
    if any(m.converts for m in models):
        head.append("declare i32 @crt_convert_input(ptr, ptr, ptr)")
    if any(m.kept for m in models):
        head.append("declare void @crt_state_forget(ptr)")
    if any(m.device_count > 1 for m in models):
        head.append("@crt_accelerator = external constant i8")
    code = llvm_declarations(func for func, _ in kernels)
    printed: set[str] = set()
    code += [_kernel(func, features, printed) for func, _ in kernels]
    data = [_later(c) if c.symbol in later else _constant(c) for c in constants]
    lists = [line for m in models for line in (*_lists(m), *_model(m))]
    code += definitions(features, "\n".join(code))
    kinds, more = grown(features, (func for func, _ in kernels), "\n".join(code))
    lines = [*head, *kinds, *data, *lists, *code, *more, declarations(features), ""]
    return "\n".join(lines)


def _kernel(func: Func, features: frozenset[str], printed: set[str]) -> str:
    if isinstance(func, External):
        return llvm_function(func, "internal ")
    return function(func, "internal ", features, printed)


def _constant(constant: Constant) -> str:
    array = constant.array
    kind = f"[{array.size} x {_ELEMENT[array.itemsize]}]"
    return _global(constant.symbol, f"{kind} {_values(array)}", max(array.itemsize, 4))


def _later(constant: Constant) -> str:
    """In a section whose contents are put in behind LLVM, which may not read them."""
    how = "internal externally_initialized constant [1 x i8] zeroinitializer"
    align = max(constant.array.itemsize, 4)
    return f"@{constant.symbol} = {how}, align {align}"


def _global(symbol: str, value: str, align: int = 4) -> str:
    return f"@{symbol} = internal constant {value}, align {align}"


def _values(array: Array) -> str:
    """The bytes of an array; little-endian, as all our targets are."""
    if array.itemsize == 1:
        return f'c"{_escaped(array.tobytes())}"'
    kind = _ELEMENT[array.itemsize]
    numbers = array.reshape(-1).view(f"i{array.itemsize}").tolist()
    return "[" + ", ".join(f"{kind} {n}" for n in numbers) + "]"


def _array(symbol: str, kind: str, rows: list[str]) -> str:
    body = (
        ", ".join(f"{kind} {row}" for row in rows)
        if rows
        else f"{kind} zeroinitializer"
    )
    return _global(symbol, f"[{max(len(rows), 1)} x {kind}] [{body}]", 8)


def _struct(fields: list[tuple[str, object]]) -> str:
    return "{ " + ", ".join(f"{kind} {value}" for kind, value in fields) + " }"


def _at(symbol: str, kind: str, index: int) -> str:
    return f"getelementptr inbounds ({kind}, ptr @{symbol}, i32 {index})"


def _lists(tables: Tables) -> list[str]:
    name = tables.name
    operands = [
        _struct([("i32", o.at), ("i16", o.buffer), ("i16", o.rows)])
        for o in tables.operands
    ]
    rows = [
        _struct([
            ("ptr", f"@{r.pad_row}" if r.pad_row else "null"), ("i32", r.row_bytes),
            ("i16", r.count), ("i16", r.ring), ("i16", r.window), ("i16", r.stride),
            ("i16", r.pad),
        ])
        for r in tables.rows
    ]  # fmt: skip
    steps = [
        _struct([
            ("ptr", f"@{s.kernel}" if s.kernel else "null"),
            ("ptr", _at(f"{name}_args", "i32", s.args)),
            ("ptr", _at(f"{name}_constants", "ptr", s.constants)),
            ("ptr", _at(f"{name}_operands", _OPERAND, s.operands)),
            ("i16", s.images), ("i16", s.bands),
            *(("i8", count) for count in s.counts),
        ])
        for s in tables.steps
    ]  # fmt: skip
    stages = [
        _struct([("i16", s.first), ("i8", s.count), ("i8", s.device), ("i16", s.link)])
        for s in tables.stages
    ]
    links = [
        _struct(list(zip(_LINK_FIELDS, link, strict=True))) for link in tables.links
    ]
    return [
        _array(f"{name}_args", "i32", [str(a) for a in tables.args]),
        _array(f"{name}_constants", "ptr", [_symbol(s) for s in tables.constant_list]),
        _array(f"{name}_rows", _ROWS, rows),
        _array(f"{name}_operands", _OPERAND, operands),
        _array(f"{name}_steps", _STEP, steps),
        *([] if tables.plain_stages else [_array(f"{name}_stages", _STAGE, stages)]),
        *([_array(f"{name}_links", _LINK, links)] if links else []),
        *_slices(tables),
    ]


def _slices(tables: Tables) -> list[str]:
    """What each core finds in a[]; [] for one core."""
    if tables.cores == 1:
        return []
    name = tables.name
    none = ["null"] * tables.cores
    given = [
        [_at(f"{name}_args", "i32", at) for at in step.slices] or none
        for step in tables.steps
    ]
    args = _array(f"{name}_slice_args", "ptr", [one for row in given for one in row])
    value = _struct([("ptr", f"@{name}_slice_args"), ("i32", tables.cores)])
    return [args, f"@{name}_slices = constant {_SLICES} {value}, align 8"]


def _symbol(name: str) -> str:
    return f"@{name}" if name else "null"


def _text(symbol: str, text: str) -> str:
    raw = text.encode() + b"\0"
    return _global(symbol, f'[{len(raw)} x i8] c"{_escaped(raw)}"', 1)


def _escaped(raw: bytes) -> str:
    return "\\" + raw.hex("\\").upper() if raw else ""


def _model(tables: Tables) -> list[str]:
    name = tables.name
    lines, rows = [], []
    if tables.named:
        texts = [name, *(row.tensor.name for row in tables.tensors)]
        symbols = [_name(tables), *(_name(tables, i) for i in range(len(texts) - 1))]
        lines += [_text(s, t) for s, t in zip(symbols, texts, strict=True)]
    for index, row in enumerate(tables.tensors):
        dims = [str(d) for d in row.tensor.shape]
        lines.append(_array(f"{name}_dims_{index}", "i32", dims))
        rows.append(_tensor(row, tables, index))
    lines.append(_array(f"{name}_tensors", _TENSOR, rows))
    lines.append(
        _array(f"{name}_regions", "i32", [str(r.bytes) for r in tables.regions])
    )
    layouts = devices = accelerator = "null"
    if tables.parameters:
        layouts = f"@{name}_layouts"
        numbers = [str(row.layout) for row in tables.parameters]
        lines.append(_array(f"{name}_layouts", "i32", numbers))
    if tables.device_count > 1:
        devices, accelerator = f"@{name}_region_devices", "@crt_accelerator"
        numbers = [str(row.device) for row in tables.regions]
        lines.append(_array(f"{name}_region_devices", "i8", numbers))
    parts = [_symbol(_name(tables))]
    parts += ["null" if tables.plain_stages else f"@{name}_stages"]
    parts += [f"@{name}_{part}" for part in ("steps", "tensors")]
    unpack = _symbol(tables.unpack)
    parts += [layouts, f"@{name}_regions", devices, unpack, accelerator]
    parts += [_symbol(tables.advance), f"@{name}_links" if tables.links else "null"]
    if tables.kept:
        lines += _state(tables)
    parts += [f"@{name}_keeps"] if tables.kept else ["null"]
    fields: list[tuple[str, object]] = [("i32", ABI)]
    fields += [("ptr", part) for part in parts]
    fields.append(("i32", tables.counters))
    counts = (
        len(tables.stages), len(tables.steps), len(tables.inputs), len(tables.outputs),
        len(tables.parameters), tables.pointer_count, tables.region_align,
    )  # fmt: skip
    fields += [("i16", count) for count in counts]
    fields += [("i8", len(tables.regions)), ("i8", tables.device_count)]
    fields.append(("ptr", f"@{name}_rows"))
    fields.append(("ptr", "@crt_convert_input" if tables.converts else "null"))
    return [*lines, f"@{name}_model = constant {_MODEL} {_struct(fields)}, align 8"]


def _state(tables: Tables) -> list[str]:
    name = tables.name
    rows = [
        _struct([
            ("ptr", _symbol(k.initial)), ("i32", k.at), ("i32", k.bytes),
            ("i32", k.region),
        ])
        for k in tables.kept
    ]  # fmt: skip
    state = [
        ("ptr", "@crt_state_forget"), ("ptr", f"@{name}_kept"),
        ("i32", len(rows)), ("i32", tables.state_bytes), ("i32", tables.state_id),
    ]  # fmt: skip
    kept = _array(f"{name}_kept", _KEPT, rows)
    return [kept, _global(f"{name}_keeps", f"{_STATE} {_struct(state)}", 8)]


def _name(tables: Tables, index: int | None = None) -> str:
    """The symbol of the model's name, or a tensor's; "" without names."""
    if not tables.named:
        return ""
    return f"{tables.name}_name" if index is None else f"{tables.name}_tensor_{index}"


def _tensor(row: TensorRow, tables: Tables, index: int) -> str:
    tensor = row.tensor
    scale, zero = quantisation(row)
    return _struct([
        ("ptr", _symbol(_name(tables, index))),
        ("ptr", f"@{tables.name}_dims_{index}"),
        ("float", literal(scale, DType.FLOAT32)), ("i32", zero),
        ("i32", tensor.bytes), ("i32", row.at), ("i16", row.align), ("i8", row.region),
        ("i8", DTYPES[tensor.dtype]), ("i8", len(tensor.shape)), ("i8", row.flags),
    ])  # fmt: skip


def quantisation(row: TensorRow) -> tuple[float, int]:
    """(scale, zero point); scale 0 for a tensor that is not quantised."""
    quant = row.tensor.quant
    return (quant.scale[0], quant.zero_point[0]) if quant else (0.0, 0)

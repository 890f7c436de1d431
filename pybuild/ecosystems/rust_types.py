"""The Rust of one model: its constants, and the types of its inputs and outputs."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.ecosystems.rust_model import End, RustModel
from pybuild.text.escaped import escaped

_BITS = {
    DType.BOOL: "0 or 1", DType.FLOAT16: "the bits of IEEE 754 binary16",
    DType.BFLOAT16: "the upper half of the bits of an `f32`",
}  # fmt: skip


def facts(end: End, role: str) -> list[str]:
    """The constants of an input or output."""
    row, tensor, name = end.row, end.row.tensor, end.const
    shape = ", ".join(map(str, tensor.shape))
    bits = f": {_BITS[tensor.dtype]}" if tensor.dtype in _BITS else ""
    what = f"{role} {end.told}, {tensor.dtype.value}{bits}"
    lines = [
        f"/// {what}: the elements of its array, row-major.",
        f"pub const {name}_LEN: usize = {tensor.size};",
        f"/// {what}: its shape.",
        f"pub const {name}_SHAPE: [usize; {len(tensor.shape)}] = [{shape}];",
        f"/// {what}: memory that is lent for it begins at a multiple of this.",
        f"pub const {name}_ALIGN: usize = {row.align};",
    ]
    if tensor.quant:
        quant = tensor.quant
        lines += [
            f"/// {what}: real = scale * (q - zero_point).",
            f"pub const {name}_SCALE: f32 = {np.float32(quant.scale[0])!s};",
            f"/// {what}: the integer of 0.0.",
            f"pub const {name}_ZERO_POINT: i32 = {quant.zero_point[0]};",
        ]
    if row.rows:
        lines += [
            f"/// {what}: it comes in so many rows.",
            f"pub const {name}_ROWS: usize = {row.rows};",
            f"/// {what}: the elements of a row.",
            f"pub const {name}_ROW_LEN: usize = {tensor.size // row.rows};",
        ]
    return [*lines, ""]


def sizes(model: RustModel) -> list[str]:
    """The constants of the whole model, and what an instance is to C."""
    tables, lines = model.tables, []
    if tables.kept:
        lines += [
            "/// The bytes of what is kept from run to run, when it is saved.",
            f"pub const STATE_BYTES: usize = {tables.state_bytes};",
            "",
        ]
    if tables.warm_runs:
        lines += [
            "/// From this run on, results are those of a whole window.",
            f"pub const WARM_RUNS: usize = {tables.warm_runs};",
            "",
        ]
    return [
        *lines,
        "#[doc(hidden)]",
        "#[repr(C)]",
        "pub struct Instance {",
        f"    _words: [usize; {model.words}],",
        "}",
        "",
    ]


def outputs_type(model: RustModel) -> list[str]:
    """The struct that a run returns."""
    lines = [
        "/// The results of a run, borrowed from the model: it can neither run nor be",
        "/// given an input while they are in use.",
        "#[derive(Clone, Copy, Debug)]",
        "pub struct Outputs<'m> {",
    ]
    for end in model.outputs:
        lines.append(f"    /// Output {end.told}.")
        if end.row.bound:
            count, axis = escaped(end.row.bound.count), end.row.bound.axis
            lines.append(
                f"    /// Along axis {axis} only as many hold as `{count}` says."
            )
        lines.append(f"    pub {end.symbol}: &'m {end.array},")
    return [*lines, "}", ""]


def inputs_type(model: RustModel) -> list[str]:
    """The struct of inputs that a run reads where they are."""
    lines = [
        "/// Inputs that one run reads where they are.",
        "#[derive(Clone, Copy, Debug)]",
        "pub struct Inputs<'i> {",
    ]
    for end in model.borrowed:
        lines.append(f"    /// Input {end.told}.")
        lines.append(f"    pub {end.symbol}: &'i {end.array},")
    return [*lines, "}", ""]

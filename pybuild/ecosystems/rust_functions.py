"""The Rust of one model: safe functions over those of NAME.h. Results are borrowed from
the model, so that no later call invalidates them."""

from __future__ import annotations

from collections.abc import Iterator

from pybuild.ecosystems.rust_model import End, RustModel
from pybuild.ecosystems.rust_types import facts, inputs_type, outputs_type, sizes


def items(model: RustModel) -> list[str]:
    """The functions of a model, except for its memory and Model::new."""
    lines = ["use ::core::marker::PhantomData;", "", "use ::crt::check;"]
    lines += ["pub use ::crt::{Aligned, Error};", ""]
    for role, ends in (("Input", model.inputs), ("Output", model.outputs)):
        for end in ends:
            lines += facts(end, role)
    lines += sizes(model)
    lines += outputs_type(model)
    if model.borrowed:
        lines += inputs_type(model)
    return [*lines, *_struct(model), *_extern(model)]


def _struct(model: RustModel) -> list[str]:
    lines = [
        "/// One instance of the network, in memory that it borrows.",
        "#[derive(Debug)]",
        "pub struct Model<'a> {",
        "    instance: *mut Instance,",
        "    memory: PhantomData<&'a mut [u8]>,",
        "}",
        "",
        "// SAFETY: nothing else refers to an instance and its memory while it is",
        "// borrowed, and the C code has no variables of its own.",
        "unsafe impl Send for Model<'_> {}",
        "",
        "impl<'a> Model<'a> {",
    ]
    body: list[str] = []
    for each in _functions(model):
        body += ["", *each] if body else each
    return [*lines, *(f"    {line}" if line else "" for line in body), "}", ""]


def _functions(model: RustModel) -> Iterator[list[str]]:
    yield [
        "// SAFETY: the instance is initialised, and borrowed for 'a by this alone.",
        "unsafe fn at(instance: *mut Instance) -> Self {",
        "    Model {",
        "        instance,",
        "        memory: PhantomData,",
        "    }",
        "}",
    ]
    for end in model.inputs:
        yield from _of_one_input(model, end)
    if model.binds:
        for end in model.outputs:
            yield from _of_one_output(model, end)
    yield from _runs(model)
    if model.tables.sampled:
        yield from _samples(model)
    if model.tables.kept:
        yield from _state(model)
    yield from _rest(model)


def _call(function: str, *words: str) -> str:
    return f"unsafe {{ sys::{function}({', '.join(('self.instance', *words))}) }}"


def _checked(call: str) -> list[str]:
    return [f"    check({call})?;", "    Ok(())", "}"]


def _of_one_input(model: RustModel, end: End) -> Iterator[list[str]]:
    symbol, what = end.symbol, f"input {end.told}"
    function = f"{model.name}_{{}}_{end.row.symbol}".format
    if end.in_place:
        call, home = _call(f"{model.name}_{end.row.symbol}"), []
        if model.binds:  # memory that it is bound to is not to be written
            home = [f"    self.unbind_{symbol}()?;"]
        yield [
            f"/// The memory of {what}, to fill before a run. It counts as given. A",
            "/// run may use it up: the next one is an error unless it is given again.",
            f"pub fn {symbol}(&mut self) -> Result<&mut {end.array}, Error> {{",
            *home,
            f"    let there = {call};",
            f"    let there = there as *mut {end.array};",
            "    unsafe { there.as_mut() }.ok_or(Error::Null)",
            "}",
        ]
    if end.settable:
        yield [
            f"/// Copies {what} to the memory of the model.",
            f"pub fn set_{symbol}(&mut self, data: &{end.array}) -> "
            "Result<(), Error> {",
            *_checked(_call(function("set"), "data.as_ptr()")),
        ]
    if end.readable and model.binds:
        yield [
            f"/// Lets every run read {what} where it is, until it is set or unbound.",
            f"pub fn bind_{symbol}(&mut self, data: &'a {end.array}) -> "
            "Result<(), Error> {",
            *_checked(_call(function("bind"), "data.as_ptr()")),
        ]
        yield [
            f"/// {what[0].upper()}{what[1:]} is no longer read where it was bound.",
            f"pub fn unbind_{symbol}(&mut self) -> Result<(), Error> {{",
            *_checked(_call(function("bind"), "::core::ptr::null()")),
        ]
    if end.row.rows:
        yield from _rows(model, end)


def _rows(model: RustModel, end: End) -> Iterator[list[str]]:
    number = f"{model.tables.inputs.index(end.row)}"
    pushed = _call(f"{model.name}_push_rows", number, "rows.as_ptr().cast()", "count")
    yield [
        f"/// Takes the next rows of input {end.told}, one after the",
        "/// other, and computes all that they allow. After the last, `run` has the",
        "/// outputs. `Error::Rows`: more than are left; `Error::Size`: no whole rows.",
        f"pub fn push_{end.symbol}(&mut self, rows: &[{end.kind}]) -> "
        "Result<(), Error> {",
        f"    if rows.len() % {end.const}_ROW_LEN != 0 {{",
        "        return Err(Error::Size);",
        "    }",
        f"    let count = rows.len() / {end.const}_ROW_LEN;",
        "    let count = count.min(u32::MAX as usize) as u32;",
        f"    check({pushed})?;",
        "    Ok(())",
        "}",
    ]
    for word, text in (
        ("wanted", "that are needed before anything more can be computed"),
        ("left", "that are missing in this run"),
    ):
        yield [
            f"/// The rows of input {end.told} {text}.",
            f"pub fn rows_{word}_{end.symbol}(&self) -> Result<usize, Error> {{",
            f"    let rows = check({_call(f'{model.name}_rows_{word}', number)})?;",
            "    Ok(rows as usize)",
            "}",
        ]


def _of_one_output(model: RustModel, end: End) -> Iterator[list[str]]:
    bind, what = f"{model.name}_bind_{end.row.symbol}", end.told
    yield [
        f"/// Lets runs write output {what} there, until it is unbound.",
        f"pub fn bind_{end.symbol}(&mut self, data: &'a mut {end.array}) -> "
        "Result<(), Error> {",
        *_checked(_call(bind, "data.as_mut_ptr()")),
    ]
    yield [
        f"/// Output {what} is no longer written where it was bound.",
        f"pub fn unbind_{end.symbol}(&mut self) -> Result<(), Error> {{",
        *_checked(_call(bind, "::core::ptr::null_mut()")),
    ]


def _runs(model: RustModel) -> Iterator[list[str]]:
    run = _call(f"{model.name}_run")
    told = "/// Runs the network once, with the inputs that were given."
    if model.tables.pushes:
        told = "/// The outputs, once all rows of all inputs were pushed."
    yield [
        told,
        "pub fn run(&mut self) -> Result<Outputs<'_>, Error> {",
        f"    check({run})?;",
        "    Ok(self.outputs())",
        "}",
    ]
    if model.borrowed:
        yield _run_with(model)
    lines = ["fn outputs(&self) -> Outputs<'_> {", "    unsafe {", "        Outputs {"]
    for end in model.outputs:
        function = f"sys::{model.name}_{end.row.symbol}"
        lines += [
            f"            {end.symbol}: &*({function}(self.instance)",
            f"                as *const {end.array}),",
        ]
    yield [*lines, "        }", "    }", "}"]


def _run_with(model: RustModel) -> list[str]:
    whole = len(model.borrowed) == len(model.inputs)
    lines = [
        "/// Runs the network once, and reads inputs where they are, without a copy.",
        "/// What was given before is forgotten."
        if whole
        else "/// Inputs that are not in it are given before.",
        "pub fn run_with(&mut self, inputs: Inputs<'_>) "
        "-> Result<Outputs<'_>, Error> {",
    ]
    for index, end in enumerate(model.borrowed):
        bind = f"{model.name}_bind_{end.row.symbol}"
        call = _call(bind, f"inputs.{end.symbol}.as_ptr()")
        if index == 0:
            lines.append(f"    let mut code = {call};")
            continue
        lines += ["    if code == 0 {", f"        code = {call};", "    }"]
    run = _call(f"{model.name}_run")
    lines += ["    if code == 0 {", f"        code = {run};", "    }"]
    for end in model.borrowed:
        bind = f"{model.name}_bind_{end.row.symbol}"
        lines.append(f"    let back = {_call(bind, '::core::ptr::null()')};")
        lines += ["    if code == 0 {", "        code = back;", "    }"]
    return [*lines, "    check(code)?;", "    Ok(self.outputs())", "}"]


def _samples(model: RustModel) -> Iterator[list[str]]:
    (end,) = [end for end in model.inputs if end.row.sampled]
    push = _call(f"{model.name}_push_samples", "part.as_ptr()", "part.len() as u32")
    wanted = _call(f"{model.name}_samples_wanted")
    yield [
        "/// Takes the next samples, any number, and computes all that they allow.",
        "/// Outputs are those of the last run; `None`: there was none. To see those",
        "/// of every run, push no more at once than `samples_wanted` says.",
        f"pub fn push_samples(&mut self, samples: &[{end.kind}]) -> "
        "Result<Option<Outputs<'_>>, Error> {",
        "    let mut runs = false;",
        "    for part in samples.chunks(1 << 30) {",
        f"        runs |= check({push})? > 0;",
        "    }",
        "    Ok(if runs { Some(self.outputs()) } else { None })",
        "}",
    ]
    yield [
        "/// The samples that are missing until the next run.",
        "pub fn samples_wanted(&self) -> usize {",
        f"    let samples = {wanted};",
        "    samples as usize",
        "}",
    ]


def _state(model: RustModel) -> Iterator[list[str]]:
    save = _call(f"{model.name}_save_state", "to.as_mut_ptr().cast()")
    restore = _call(f"{model.name}_restore_state", "from.as_ptr().cast()")
    yield [
        "/// Copies out all that is kept from run to run.",
        "pub fn save_state(&self, to: &mut [u8; STATE_BYTES]) -> Result<(), Error> {",
        *_checked(save),
    ]
    yield [
        "/// Goes on from a saved state of this build. `Error::State`: it is damaged,",
        "/// or of another build; nothing is changed then.",
        "pub fn restore_state(&mut self, from: &[u8; STATE_BYTES]) -> "
        "Result<(), Error> {",
        *_checked(restore),
    ]


def _rest(model: RustModel) -> Iterator[list[str]]:
    kept = "; what is kept from run to run is as in the beginning"
    yield [
        f"/// Forgets inputs and results{kept if model.tables.kept else ''}.",
        "pub fn reset(&mut self) -> Result<(), Error> {",
        *_checked(_call(f"{model.name}_reset")),
    ]
    again = "Inputs are to be"
    if any(end.connected for end in model.inputs):
        again = "Connections are lost, and inputs are to be"
    yield [
        "/// Runs a stored input and compares with the stored output.",
        f"/// {again} given again after it.",
        "/// `Error::Selftest`: this build gives another answer.",
        "pub fn selftest(&mut self) -> Result<(), Error> {",
        *_checked(_call(f"{model.name}_selftest")),
    ]
    if model.tables.verified:
        call = f"sys::{model.name}_verify(::core::ptr::null_mut(), 0)"
        yield [
            "/// Whether flash holds weights and tables as they were built.",
            "/// `Error::Checksum`: it does not.",
            "pub fn verify() -> Result<(), Error> {",
            *_checked(f"unsafe {{ {call} }}"),
        ]


def _extern(model: RustModel) -> list[str]:
    """The functions of C, in a module, so that no name of theirs clashes with ours."""
    name, found = model.name, []

    def declare(function: str, words: str, gives: str = "i32") -> None:
        found.append(f"pub fn {name}_{function}({words}) -> {gives};")

    mut, const = "m: *mut Instance", "m: *const Instance"
    for function in ("run", "reset", "selftest"):
        declare(function, mut)
    for end in model.inputs:
        symbol, data = end.row.symbol, f"data: *const {end.kind}"
        if end.in_place:
            declare(symbol, mut, f"*mut {end.kind}")
        if end.settable:
            declare(f"set_{symbol}", f"{mut}, {data}")
        if end.readable and (model.binds or model.borrowed):
            declare(f"bind_{symbol}", f"{mut}, {data}")
    for end in model.outputs:
        declare(end.row.symbol, const, f"*const {end.kind}")
        if model.binds:
            declare(f"bind_{end.row.symbol}", f"{mut}, data: *mut {end.kind}")
    if model.tables.pushes:
        rows = "input: u32, rows: *const c_void, count: u32"
        declare("push_rows", f"{mut}, {rows}")
        declare("rows_wanted", f"{const}, input: u32")
        declare("rows_left", f"{const}, input: u32")
    if model.tables.sampled:
        (sampled,) = [end for end in model.inputs if end.row.sampled]
        words = f"samples: *const {sampled.kind}, count: u32"
        declare("push_samples", f"{mut}, {words}")
        declare("samples_wanted", const, "u32")
    if model.tables.kept:
        declare("save_state", f"{const}, to: *mut c_void")
        declare("restore_state", f"{mut}, from: *const c_void")
    if model.tables.verified:
        declare("verify", "state: *mut c_void, bytes: u32")
    void = any("c_void" in line for line in found)
    return [
        "/// Functions of the C header.",
        "mod sys {",
        "    use super::Instance;",
        *["    use ::core::ffi::c_void;"] * void,
        "",
        '    extern "C" {',
        *(f"        {line}" for line in found),
        "    }",
        "}",
    ]

"""A model and the runtime as crates of Rust: manifests, build.rs, and a library without
std. Crates need no others than that of the runtime, which lies beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pybuild.ecosystems.about import RUNTIME, About
from pybuild.ecosystems.examples import TEMPLATES
from pybuild.ecosystems.rust_library import layout, library, rust_models
from pybuild.ecosystems.rust_model import KEYWORDS
from pybuild.emit.c.image import ImageTables
from pybuild.emit.tables.tables import LAZY, Tables
from pybuild.errors import BuildError, Problem
from pybuild.install import crt_include
from pybuild.package.tree import filled
from pybuild.targets.core import Core
from pybuild.targets.names import core_of

_ROOM = TEMPLATES / "rust"
# names of crates that the compiler brings, and what it calls a library of ours
_TAKEN = ("alloc", "core", "proc_macro", "std", "test")
# how targets begin that have the instructions of a core's kernels
_THUMB = ("thumbv6m", "thumbv7m", "thumbv7em", "thumbv8m.base", "thumbv8m.main")
_RUNS_ON = {
    "cortex-m0": _THUMB,
    "cortex-m3": ("thumbv7m", "thumbv7em", "thumbv8m.main"),
    "cortex-m4": ("thumbv7em", "thumbv8m.main"),
    "cortex-m7": ("thumbv7em", "thumbv8m.main"),
    "cortex-m33": ("thumbv8m.main",),
    "cortex-m55": ("thumbv8m.main",),
}
_INCLUDE = """\
    let runtime = needed("DEP_CRT_INCLUDE"); // its build script says where it is
    flags.push(format!("-I{}", runtime));\
"""
# one object: of two networks of one name in a program the linker takes both, and fails
_JOIN = """\
    let mut join = Command::new(&compiler[0]);
    let whole = PathBuf::from(format!("{}.o", LIBRARY));
    join.args(&compiler[1..]).args(&flags).args(["-r", "-nostdlib", "-o"]);
    join.arg(&whole).args(&objects).current_dir(&out);
    run(&mut join, "CC");
    objects = vec![whole];
"""
_EXPORTED = """\
    println!("cargo:include={}", source.join("src").display());
"""


def refuse(
    name: str, models: Sequence[Tables], image: ImageTables | None, has_api: bool
) -> None:
    """Checks that Rust has words for a build.

    Errors  BuildError with everything that is not wrapped
    """
    found, where = [], "--package rust"
    if name in KEYWORDS or name in _TAKEN:
        what = f"'{name}' is a word of Rust, or a crate of its own"
        found.append(Problem("--name", what, f"'{name}_net'"))
    if has_api:
        what = "has no functions of --api tvm"
        found.append(Problem(where, what, "leave out --api"))
    for model in rust_models(models, image):
        tables = model.tables
        if tables.parameters:
            what = f"{tables.name}: parameters that are bound at run time have no "
            what += "functions in Rust"
            found.append(Problem(where, what, "leave out --params"))
        if tables.device_count > 1:
            what = f"{tables.name}: devices have no functions in Rust"
            found.append(Problem(where, what, "leave out devices"))
        if not model.binds and any(
            end.row.flags & LAZY and not end.connected for end in model.outputs
        ):
            what = f"{tables.name}: a lazy output of a network that shares memory has "
            what += "no functions in Rust"
            found.append(Problem(where, what, "leave out --lazy for it"))
    if found:
        raise BuildError.of(found)


def crate_files(
    about: About,
    runtime: About,
    models: Sequence[Tables],
    image: ImageTables | None,
    target: object,
    sources: Sequence[str],
) -> dict[str, str]:
    """The files of a model's crate beside its C.

    target   that it was built for
    sources  paths of all C
    """
    core = core_of(target) if isinstance(target, str) else None
    name, shim = about.name, f"src/{about.name}_rust.c"
    made = rust_models(models, image)
    archive = f"crt_model_{name}"
    needs = f'{{ path = "../crt", version = ">={runtime.version}" }}'
    dependencies = f"\n[dependencies]\ncrt = {needs}"
    text, test = library(about, made, image)
    return {
        "Cargo.toml": _manifest(about, archive, 'std = ["crt/std"]', dependencies),
        "build.rs": _build(archive, [*sources, shim], core, _INCLUDE, ""),
        "src/lib.rs": text,
        "tests/selftest.rs": test,
        shim: layout(name, made, image),
    }


def runtime_crate(about: About, sources: Sequence[str]) -> dict[str, str]:
    """The files of the runtime's crate beside its C."""
    return {
        "Cargo.toml": _manifest(about, RUNTIME, "std = []", ""),
        "build.rs": _build(RUNTIME, sources, None, "", _EXPORTED),
        "src/lib.rs": _errors(),
    }


def _manifest(about: About, archive: str, features: str, dependencies: str) -> str:
    optional = {
        "authors": json.dumps([about.author], ensure_ascii=False) * bool(about.author),
        "homepage": json.dumps(about.url) * bool(about.url),
    }
    lines = [f"{key} = {value}\n" for key, value in optional.items() if value]
    kind, value = "license", about.licence
    if not value:
        kind, value = "license-file", "LICENSE"
    lines.append(f'{kind} = "{value}"\n')
    return filled(
        _ROOM / "Cargo.toml.in",
        {
            "quoted_name": json.dumps(about.name),
            "quoted_version": json.dumps(about.version),
            "description": json.dumps(about.description, ensure_ascii=False),
            "optional": "".join(lines), "library": archive, "features": features,
            "dependencies": dependencies,
        },
    )  # fmt: skip


def _build(
    archive: str, sources: Sequence[str], core: Core | None, include: str, end: str
) -> str:
    flags, runs_on = _of_core(core)
    return filled(
        _ROOM / "build.rs.in",
        {
            "library": archive,
            "sources": "\n".join(f'    "{path}",' for path in sources),
            "core": ", ".join(f'"{flag}"' for flag in flags),
            "runs_on": ", ".join(f'"{begin}"' for begin in runs_on),
            "include": include, "exported": end, "join": "" if end else _JOIN,
            "mut": "" if end else "mut ",
        },
    )  # fmt: skip


def _of_core(core: Core | None) -> tuple[list[str], tuple[str, ...]]:
    """Flags of GNU C without those that cargo's target says, and its targets."""
    if core is None or core.arch != "arm":
        return [], (("riscv32",) if core and core.arch == "riscv" else ())
    said = ("-mthumb", "-mfloat-abi")
    flags = [flag for flag in core.gcc if not flag.startswith(said)]
    return flags, _RUNS_ON[core.target]


def _errors() -> str:
    """lib.rs of the runtime: the list of crt/error.h."""
    text = (crt_include() / "crt" / "error.h").read_text(encoding="utf-8")
    found = re.findall(r'X\(CRT_ERR_(\w+), (-\d+),[\s\\]*"([^"]*)"\)', text)
    variants, numbers, texts = [], [], []
    for name, number, reason in found:
        variant = "".join(part.capitalize() for part in name.split("_"))
        variants += [f"    /// {_sentence(reason)}.", f"    {variant} = {number},"]
        numbers.append(f"            {number} => Some(Error::{variant}),")
        texts.append(f'            Error::{variant} => "{reason}",')
    values = {"variants": variants, "numbers": numbers, "texts": texts}
    joined = {key: "\n".join(lines) for key, lines in values.items()}
    return filled(_ROOM / "crt-lib.rs.in", joined)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]

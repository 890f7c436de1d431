"""The tree of a model for firmware that was written for microTVM: --api tvm.

TVM's headers and a few functions over crt are files as they are; of a model are
tvmgen_NAME.h and .c, its graph JSON and its parameters.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Protocol

from pybuild.ecosystems.examples import TEMPLATES
from pybuild.emit.content import Content
from pybuild.emit.tables.names import is_keyword
from pybuild.emit.tables.tables import Tables, TensorRow, identity
from pybuild.errors import BuildError, Problem
from pybuild.options.table import BuildOptions
from pybuild.package.tree import filled
from pybuild.records import dataclass

_ROOM = TEMPLATES / "tvm"
# what runs of another module's name need: they have no graph executor
_OF_RUNS = ("infer.c", "model.h")
DEFAULT = "default"
# kTVMNDArrayListMagic, this build's hash in the reserved word, no names, no arrays
_NO_PARAMETERS = struct.Struct("<QQQQ")
_LIST_MAGIC = 0xF7E58D4F05049CB7


@dataclass(frozen=True)
class End:
    """An input or output: what TVM's structs and macros call it, NAME.h, and TVM's
    other name, if it may have one."""

    field: str
    row: TensorRow
    other: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.field, self.other) if self.other else (self.field,)


def module_of(api: str) -> str:
    """The module's name of --api tvm:NAME."""
    return api.partition(":")[2] or DEFAULT


def tvm_problems(asked: BuildOptions) -> list[Problem]:
    """Which options of a build do not go with its --api."""
    if not asked.api:
        return []
    two = isinstance(asked.target, dict) and len(asked.target) > 1
    wrong = {
        "--region": (bool(asked.regions), "the model has one arena"),
        "--push": (bool(asked.push), "inputs are handed over whole"),
        "--device": (two, "the model runs on the CPU"),
        "--compress": (
            bool(asked.params) and asked.compress == "lz4",
            "parameters are read where they lie",
        ),
    }
    return [
        Problem(option, f"does not go with --api {asked.api}: {why}", f"no {option}")
        for option, (is_given, why) in wrong.items()
        if is_given
    ]


def must_not_clash(name: str, asked: BuildOptions) -> str:
    """The name of a model, whose files are not those of --api.

    Errors  BuildError
    """
    if asked.api and name.lower() == f"tvmgen_{module_of(asked.api)}".lower():
        what = f"'{name}' is what --api {asked.api} calls its own files"
        raise BuildError("--name", what, "another name, as that of the network")
    return name


class Built(Protocol):
    """A build of one model."""

    @property
    def tables(self) -> Tables: ...

    @property
    def options(self) -> BuildOptions: ...

    def image(self) -> bytes:
        """The image of the loadable parameters."""

    def get_graph_json(self) -> str: ...


def other_names(made: Built) -> dict[str, Content]:
    """The files of --api: path in the tree -> content; {} without it."""
    if not made.options.api:
        return {}
    tables, module = made.tables, module_of(made.options.api)
    is_default, name = module == DEFAULT, f"tvmgen_{module}"
    image = made.image() if tables.parameters else None
    graph_json = made.get_graph_json()
    parameters = image or _no_parameters(tables, graph_json)
    files: dict[str, Content] = {
        path.relative_to(_ROOM).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(_ROOM.rglob("*.[ch]"))
        if is_default or path.suffix == ".h" or path.name in _OF_RUNS
    }
    values = {**_values(tables, module), **_hashes(graph_json, image, parameters)}
    files[f"{name}.h"] = filled(_ROOM / "tvmgen.h.in", values)
    files[f"{name}.c"] = filled(_ROOM / "tvmgen.c.in", values)
    files[f"executor-config/graph/{module}.graph"] = graph_json
    files[f"parameters/{module}.params"] = parameters
    return files


def _no_parameters(tables: Tables, graph_json: str) -> bytes:
    """TVM's list of none, which only this build takes."""
    whole = hashlib.sha256(graph_json.encode())
    for constant in tables.constants:
        whole.update(identity(constant.array)[1])
    build = int.from_bytes(whole.digest()[:8], "little")
    return _NO_PARAMETERS.pack(_LIST_MAGIC, build, 0, 0)


def _hashes(graph_json: str, image: bytes | None, parameters: bytes) -> dict[str, str]:
    text = graph_json.encode()
    known = b"" if image else parameters
    return {
        "json_bytes": f"{len(text)}u",
        "json_hash": f"0x{fnv1a(text):08x}u",
        "params": ", ".join(f"0x{b:02x}" for b in known) or "0",
    }


def fnv1a(data: bytes) -> int:
    """In 32 bits, as tvm/src/graph_executor.c has it."""
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


# ---- names -----------------------------------------------------------------------


def ends(rows: Sequence[TensorRow], default: str = "") -> list[End]:
    """Inputs or outputs by TVM's names: every other character is an underscore.

    default  what TVM calls them where it drops their names: output, or output0, ...
    """
    made = [(_sanitised(row.tensor.name), row.symbol) for row in rows]
    fields = [field if _is_name(field) else symbol for field, symbol in made]
    if len({field.upper() for field in fields}) < len(fields):
        fields = [row.symbol for row in rows]
    found = []
    for i, (field, row) in enumerate(zip(fields, rows, strict=True)):
        other = f"{default}{i}" if len(rows) > 1 else default
        is_free = bool(default) and other.upper() not in map(str.upper, fields)
        found.append(End(field, row, other if is_free else ""))
    return found


# macros of C and of Arduino's cores; names of TVM's own
_TAKEN = re.compile(r"NULL|INPUT|OUTPUT|TRUE|FALSE|U?INT.*|(?i:tvmgen.*|tvm_.*)")
# of which TVM makes a macro of a size for something else
_SIZES = {"WORKSPACE"}


def _sanitised(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _is_name(text: str) -> bool:
    """True if a name may be a member of a struct, whatever headers come before."""
    own = text.startswith("_") or _TAKEN.fullmatch(text)
    return text.isidentifier() and not own and not is_keyword(text)


# ---- what the templates are filled with -----------------------------------------


def _values(tables: Tables, module: str) -> dict[str, str]:
    name = tables.name
    ins = _apart(ends(tables.inputs), _SIZES)
    clash = _SIZES | {n.upper() for end in ins for n in end.names}
    outs = _apart(ends(tables.outputs, "output"), clash)
    outs = [e if e.other.upper() not in clash else End(e.field, e.row) for e in outs]
    upper = module.upper()
    return {
        "name": name,
        "upper": name.upper(),
        "module": module,
        "module_upper": upper,
        "sizes": "\n".join(chain(_sizes(upper, ins), _sizes(upper, outs))),
        "inputs": _members(ins),
        "outputs": _members(outs),
        "input_count": str(len(ins)),
        "copied_count": str(max(len(ins), 1)),
        "output_count": str(len(outs)),
        "nodes": ", ".join(f"{{{_text(end.row.tensor.name)}}}" for end in ins)
        or "{NULL}",
        "input_nodes": ", ".join(f"{i}u" for i in range(len(ins))) or "0u",
        "pass_inputs": _assigned("inputs", ins),
        "pass_outputs": _assigned("outputs", outs),
        "headers": '#include "crt/weights.h"\n' if tables.parameters else "",
        "parameters": _PARAMETERS.format(name=name) if tables.parameters else "",
        "load": "load" if tables.parameters else "NULL",
        "release": "release" if tables.parameters else "NULL",
        "own": "load_own" if tables.parameters else "NULL",
        "system_lib": _SYSTEM_LIB if module == DEFAULT else "",
    }


def _apart(rows: Sequence[End], taken: set[str]) -> list[End]:
    """Those whose macro would be another's, by the names that NAME.h has."""
    found = []
    for end in rows:
        field = end.field if end.field.upper() not in taken else end.row.symbol
        field += "_" * (field.upper() in taken)
        found.append(End(field, end.row, end.other))
    return found


def _sizes(module: str, rows: Iterable[End]) -> Iterable[str]:
    for end in rows:
        for name in end.names:
            yield f"#define TVMGEN_{module}_{name.upper()}_SIZE {end.row.tensor.bytes}"


def _members(rows: Iterable[End]) -> str:
    """The members of a struct; a union where versions of TVM differ in the name."""
    lines = []
    for end in rows:
        line = f"    void *{end.field};"
        if end.other:
            line = "    union {\n        void *" + end.field
            line += f";\n        void *{end.other};\n    }};"
        lines.append(line)
    return "\n".join(lines) or "    uint8_t none; /* C has no struct without one */"


def _assigned(struct_name: str, rows: Iterable[End]) -> str:
    return ", ".join(f"{struct_name}->{end.field}" for end in rows) or "NULL"


def _text(name: str) -> str:
    """The text as a C string; non-printable bytes are octal."""
    plain = (
        chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}"
        for b in name.encode()
    )
    return '"' + "".join(plain) + '"'


_SYSTEM_LIB = """
const TVMModule *TVMSystemLibEntryPoint(void)
{
    return &module;
}
"""

_PARAMETERS = """
/* Of an image of the caller's, or the one that is linked. */
static struct crt_params params;

static int release(void)
{{
    const int error = crt_graph_release_params(&instance.graph);

    return error == CRT_OK ? crt_params_close(&params) : error;
}}

static int load(const void *image, uint32_t bytes)
{{
    struct crt_params fresh;
    int error = crt_params_verify(&fresh, image, bytes);

    if (error == CRT_OK) {{
        error = release();
    }}
    if (error == CRT_OK) {{
        params = fresh;
        error = crt_graph_load_params(&instance.graph, &params);
    }}
    return error;
}}

static int load_own(void)
{{
    const int error = {name}_open_params(&params, NULL);

    return error == CRT_OK ? {name}_load_params(&instance, &params) : error;
}}
"""

"""The folder that a firmware project takes in: sources, crt, build files, example.

Everything is made in memory first; nothing is written when something fails.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pybuild.dtype import DType
from pybuild.emit.c.regions import size_macro
from pybuild.emit.content import Content
from pybuild.emit.tables.tables import UNPACK_HEADERS, Tables, TensorRow
from pybuild.install import crt_headers, crt_sources
from pybuild.package.folder import EXAMPLE, REPORT, digest_of
from pybuild.targets.core import GCC, Core
from pybuild.targets.names import core_of

_TEMPLATES = Path(__file__).parent / "templates"
# printf conversion and cast for each element type
_NEEDED = ("array", "error", "graph", "run")
_WITH_PARAMETERS = ("crc", "lz4", "params", "unpack", "weights")
_PRINT = {
    "int64": ("%lld", "(long long)"),
    "uint64": ("%llu", "(unsigned long long)"),
    "uint32": ("%lu", "(unsigned long)"),
}
_REAL = (DType.FLOAT32, DType.FLOAT64)
_PRINT_FLOAT = """\
/* Prints six digits after the point: on boards printf often knows no floats. */
static void print_float(float value)
{
    const float size = value < 0 ? -value : value;
    unsigned long whole;

    if (!(size < 4e9f)) {
        printf(" (large)");
        return;
    }
    whole = (unsigned long)size;
    printf(" %s%lu.%06lu", value < 0 ? "-" : "", whole,
           (unsigned long)((size - (float)whole) * 1e6f));
}

"""


# of -dumpmachine; that of GNU C for RISC-V often comes without a C library
_MACHINES = {"arm": "arm-% armv% thumb%", "riscv": "riscv%",
             "riscv-linux": "riscv64-%"}  # fmt: skip
_ALONE = ("-ffreestanding", "-DCRT_NO_STRING_H")
_NO_C_LIBRARY = {"riscv": _ALONE, "xtensa": _ALONE}
_CHECK = """\
# {name}.o is for {core}: a compiler that says it is for another machine is refused
ifeq ($(filter clean,$(MAKECMDGOALS)),)
MACHINE := $(shell $(CC) $(CPPFLAGS) $(CFLAGS) -dumpmachine 2>/dev/null)
ifeq ($(filter {machines},$(MACHINE)),)
$(if $(MACHINE),$(error {name}.o is for {core}, and $(CC) is for $(MACHINE): {make}))
endif
endif

"""


def tree_files(
    tables: Tables, generated: Mapping[str, Content], target: object = None
) -> dict[str, Content]:
    """Path in the tree -> content.

    generated  the model's own files and report
    target     that it is built for, if that is one
    """
    core = core_of(target) if isinstance(target, str) else None
    example = program_of_model(tables)
    example |= _machine(tables.name, core, f"{tables.name}.o" in generated)
    return _with_builds(tables.name, (tables,), generated, "main.c.in", example)


def program_of_model(tables: Tables) -> dict[str, str]:
    """The parts of this model's example, by their names in templates."""
    return {
        "regions": _arrays(
            [row.name for row in tables.regions],
            [size_macro(tables, row) for row in tables.regions],
        ),
        "devices": _devices(tables),
        "memory": ", ".join(row.name for row in tables.regions),
        "set_devices": _set_devices(tables),
        "weights": _weights(tables, ""),
        "open": _open(tables, "", "model"),
        "functions": _PRINT_FLOAT if _any_float(tables) else "",
        "prints": "\n".join(_print(row, tables.name) for row in tables.outputs),
    }


def _machine(name: str, core: Core | None, has_object: bool) -> dict[str, str]:
    """The flags of a core for make; a check if the object is for one core only."""
    if core is None:
        flags = "-Os -mcpu=cortex-m4 -mthumb"
        return {"make": f"make CC={GCC['arm']} CFLAGS='{flags}'", "machine": ""}
    flags = " ".join(("-Os", *core.gcc, *_NO_C_LIBRARY.get(core.arch, ())))
    make = f"make CC={GCC[core.arch]} CFLAGS='{flags}'"
    if not has_object:
        return {"make": make, "machine": ""}
    check = _CHECK.format(
        name=name, core=core.name, machines=_MACHINES[core.arch], make=make
    )
    return {"make": make, "machine": check}


def image_tree(
    name: str,
    models: Sequence[Tables],
    regions: Sequence[str],
    generated: Mapping[str, Content],
) -> dict[str, Content]:
    """The same as tree_files, for several models; regions: those of the image that are
    used."""
    example = {**_machine(name, None, False), **program_of_image(name, models, regions)}
    return _with_builds(name, models, generated, "image.c.in", example)


def program_of_image(
    name: str, models: Sequence[Tables], regions: Sequence[str]
) -> dict[str, str]:
    """The same as program_of_model, for several; regions: those of the image that are
    used."""
    sizes = [f"{name.upper()}_{region.upper()}_BYTES" for region in regions]
    return {
        "regions": _arrays(regions, sizes),
        "memory": ", ".join(regions),
        "weights": "".join(_weights(m, f"{m.name}_") for m in models),
        "open": "".join(_open(m, f"{m.name}_", f"all.{m.name}") for m in models),
        "tests": "\n".join(
            f'    bad |= tell("{m.name}", {m.name}_selftest(&all.{m.name}));'
            for m in models
        ),
    }


def _with_builds(
    name: str,
    models: Sequence[Tables],
    generated: Mapping[str, Content],
    main: str,
    example: Mapping[str, str],
) -> dict[str, Content]:
    """Adds the runtime, the build files, and the example from its template `main`."""
    files = dict(generated)
    files |= _runtime(models, generated)
    sources = [n for n in sorted(files) if n.endswith(".c")]
    objects = [n for n in sorted(files) if n.endswith(".o")]
    values = {
        **example,
        "name": name,
        "upper": name.upper(),
        "sources": " ".join(sources),
        "quoted": ", ".join(f"'{s}'" for s in sources),
        "lines": "\n".join(f"    {s}" for s in (*sources, *objects)),
        "objects": "".join(f" {o}" for o in objects),
        "quoted_objects": ", ".join(f"'{o}'" for o in objects),
    }
    for target, template in (
        ("CMakeLists.txt", "CMakeLists.txt.in"),
        ("meson.build", "meson.build.in"),
        ("meson_options.txt", "meson_options.txt.in"),
        ("Makefile", "Makefile.in"),
        (EXAMPLE, main),
    ):
        files[target] = filled(_TEMPLATES / template, values)
    return files


def filled(template: Path, values: Mapping[str, str]) -> str:
    """The text of a template: @{name} is replaced, @@ is an @."""
    return _At(template.read_text(encoding="utf-8")).substitute(values)


def _runtime(
    models: Sequence[Tables], generated: Mapping[str, Content]
) -> dict[str, str]:
    """The part of crt that models need: its sources, and what all files include."""
    needed = (
        *_NEEDED,
        *(_WITH_PARAMETERS if any(m.parameters for m in models) else ()),
    )
    needed += ("lockstep",) if any(m.links for m in models) else ()
    needed += ("convert", "lockstep") if any(m.converts for m in models) else ()
    needed += ("cores",) if any(m.cores > 1 for m in models) else ()
    needed += ("push",) if any(m.pushes for m in models) else ()
    needed += ("crc", "state") if any(m.kept for m in models) else ()
    needed += ("crc", "verify") if any(m.verified for m in models) else ()
    needed += tuple(UNPACK_HEADERS[m.unpack] for m in models if m.unpack)
    needed += ("device",) if any(m.device_count > 1 for m in models) else ()
    texts = {path.name: path.read_text(encoding="utf-8") for path in crt_headers()}
    files = {
        f"crt/src/{path.name}": path.read_text(encoding="utf-8")
        for path in crt_sources()
        if path.stem in needed
    }
    waiting = ['#include "crt/intrin.h"', *files.values()]
    waiting += (text for text in generated.values() if isinstance(text, str))
    while waiting:
        for name in re.findall(r'#include "crt/(\w+\.h)"', waiting.pop()):
            if f"crt/include/crt/{name}" not in files:
                files[f"crt/include/crt/{name}"] = texts[name]
                waiting.append(texts[name])
    return files


class _At(string.Template):
    """@{name} is replaced; $ and % keep their meaning in make and CMake."""

    delimiter = "@"


def _any_float(tables: Tables) -> bool:
    here = (row.tensor.dtype for row in tables.outputs if not row.device)
    return any(kind in _REAL for kind in here)


def _print(row: TensorRow, name: str) -> str:
    form, cast = _PRINT.get(row.tensor.dtype.value, ("%d", "(int)"))
    prefix = f"{name.upper()}_{row.symbol.upper()}"
    if row.device:
        return f"""\
    printf("{row.symbol} is on device {row.device}\\n");"""
    value = f"{name}_{row.symbol}(&model)[i]"
    show = f'printf(" {form}", {cast}{value});'
    if row.tensor.dtype in _REAL:
        wide = row.tensor.dtype is DType.FLOAT64
        show = f"print_float({'(float)' if wide else ''}{value});"
    return f"""\
    printf("{row.symbol}:");
    for (i = 0; i < {prefix}_LEN && i < 12; i++)
        {show}
    printf("\\n");"""


def _arrays(names: Sequence[str], sizes: Sequence[str]) -> str:
    """Memory of the example: yours is where the regions are."""
    lines = [
        f"static uint8_t {name}[{size}] ALIGNED;"
        for name, size in zip(names, sizes, strict=True)
    ]
    return "\n".join([*lines, ""])


def _devices(tables: Tables) -> str:
    """Devices of the example: the CPU does the work of all."""
    if tables.device_count == 1:
        return ""
    count = f"{tables.name.upper()}_DEVICE_COUNT"
    lines = [
        "/* All are the CPU here; yours have a struct crt_device_api each. */",
        f"static const struct crt_device devices[{count}] = {{{{NULL, NULL}}}};",
    ]
    return "\n".join([*lines, ""])


def _set_devices(tables: Tables) -> str:
    if tables.device_count == 1:
        return ""
    return f"""\
    if (error == CRT_OK)
        error = {tables.name}_set_devices(&model, devices);
"""


def _weights(tables: Tables, prefix: str) -> str:
    """The example's code for parameters."""
    if not tables.parameters:
        return ""
    lines = f"static struct crt_params {prefix}params;\n"
    if tables.unpacked_bytes:
        size = f"{tables.name.upper()}_UNPACKED_BYTES"
        lines += f"static uint8_t {prefix}unpacked[{size}] ALIGNED;\n"
    return lines


def _open(tables: Tables, prefix: str, instance: str) -> str:
    if not tables.parameters:
        return ""
    name, ram = tables.name, f"{prefix}unpacked" if tables.unpacked_bytes else "NULL"
    return f"""\
    if (error == CRT_OK)
        error = {name}_open_params(&{prefix}params, {ram});
    if (error == CRT_OK)
        error = {name}_load_params(&{instance}, &{prefix}params);
"""


def with_report(
    files: Mapping[str, Content], facts: Mapping[str, Any]
) -> dict[str, Content]:
    """The tree with report.json: facts, and what the example is when it is new."""
    whole = {**facts, "example": {"sha256": digest_of(files[EXAMPLE])}}
    text = json.dumps(whole, indent=2, ensure_ascii=False)
    return {**files, REPORT: text + "\n"}

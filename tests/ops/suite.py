"""All operator cases as C: one program that runs every generated self-test."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pybuild.model import Model
from pybuild.package.tree import write_tree
from tests.ops.cases import Case, cases


@dataclass(frozen=True)
class Suite:
    """Folder of sources; `units` holds all that a case has, for one compiler run."""

    folder: Path
    names: tuple[str, ...]

    @property
    def sources(self) -> list[Path]:
        return [self.folder / "main.c", *sorted((self.folder / "units").glob("*.c"))]


def c_name(case: Case, rounding: str) -> str:
    return re.sub(r"\W", "_", f"{case.name}_{rounding}").lower()


def model(case: Case, rounding: str) -> Model:
    return Model(f"{case.name}.toml", case.graph(rounding), rounding, "0" * 64)


def write_suite(
    folder: Path, roundings: tuple[str, ...], target: str = "generic"
) -> Suite:
    """Every case with each rounding that changes it, and a main that runs them.

    For another target than "generic" those whose code is another one there, by
    kernels that take as arguments what they hold in the generic suite.
    """
    alone = target == "generic"
    files: dict[str, str] = {}
    names = []
    for case in cases():
        for rounding in roundings:
            if not case.is_changed_by(rounding):
                continue
            name = c_name(case, rounding)
            own = _code(case, rounding, target, alone)
            if not alone and own == _code(case, rounding, "generic", alone):
                continue
            unit = "".join(f'#include "../{f}"\n' for f in own if f.endswith(".c"))
            files |= {**own, f"units/{name}.c": unit}
            names.append(name)
    files["main.c"] = _main(names)
    write_tree(folder, files)
    return Suite(folder, tuple(names))


def _code(case: Case, rounding: str, target: str, alone: bool) -> dict[str, str]:
    name = c_name(case, rounding)
    library = model(case, rounding).build(
        name=name, rounding=rounding, target=target, alone=alone, **case.options
    )
    files, parts = library.files(), (".h", ".c", "_weights.c", "_selftest.c")
    return {name + part: files[name + part] for part in parts}


def _main(names: list[str]) -> str:
    includes = "\n".join(f'#include "{name}.h"' for name in names)
    checks = "\n".join(f"    check({name}, {name.upper()});" for name in names)
    return f"""/* main.c: the self-test of every case; prints what fails. */
{includes}
#include <stdio.h>

static union {{
    uint8_t bytes[65536];
    int64_t aligned;
}} arena __attribute__((aligned(16)));

#define check(name, NAME)                                                    \\
    do {{                                                                     \\
        static struct name m;                                                \\
        struct name##_memory memory = {{{{arena.bytes, NAME##_ARENA_BYTES}}}};   \\
        int error = name##_init(&m, &memory);                                \\
        if (error == CRT_OK)                                                 \\
            error = name##_selftest(&m);                                     \\
        if (error != CRT_OK) {{                                               \\
            printf("%s: %s\\n", #name, crt_strerror(error));                  \\
            failed++;                                                        \\
        }}                                                                    \\
        count++;                                                             \\
    }} while (0)

int main(void)
{{
    int failed = 0;
    int count = 0;

{checks}
    printf("%d passed, %d failed\\n", count - failed, failed);
    return failed != 0;
}}
"""

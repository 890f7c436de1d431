"""All operator cases as C: one program that runs every generated self-test."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pybuild.emit.content import whole
from pybuild.install import crt_include
from pybuild.model import Model
from pybuild.package.folder import write_beside
from tests.kernels.few.kinds import Kind, kinds_of_name
from tests.ops.cases import ROUNDINGS, Case, cases

Files = dict[str, str]
# cases that a compiler is started for; half of a case's time is to start one
TOGETHER = 16
# what has its name in one file alone
_OWN = re.compile(
    r"^(?:static|CRT_INLINE|CRT_PART)\b[^;={(]*?(\w+)[(\[]|^typedef int (\w+);", re.M
)
_KERNEL = re.compile(r"^static void (\w+)\(", re.M)


@cache
def _spelled() -> re.Pattern[str]:
    """A call of what crt/intrin.h has as an instruction, on cores with DSP ones."""
    text = (crt_include() / "crt" / "intrin.h").read_text().split("#define CRT_DSP", 1)
    names = re.findall(r"(?:^CRT_INLINE \w+ |^CRT_\w+\()(crt_\w+)", text[1], re.M)
    return re.compile(rf"\b(?:{'|'.join(names)})\(")


@dataclass(frozen=True)
class Suite:
    """Folder of sources; each of `units` holds all that some cases have."""

    folder: Path

    @property
    def units(self) -> list[Path]:
        return sorted((self.folder / "units").glob("*.c"))

    @property
    def sources(self) -> list[Path]:
        return [self.folder / "main.c", *self.units]

    @property
    def cases(self) -> int:
        return len(list(self.folder.glob("*_selftest.c")))


def c_name(case: Case, rounding: str) -> str:
    return re.sub(r"\W", "_", f"{case.name}_{rounding}").lower()


def model(case: Case, rounding: str) -> Model:
    return Model(f"{case.name}.toml", case.graph(rounding), rounding, "0" * 64)


def write_suites(folder: Path) -> None:
    """Every case with one of the roundings that change it, and a main that runs them:
    in `generic`, with kernels that are the case's own; in `dsp`, with the next of these
    roundings, for a Cortex-M4 with kernels that models may share, what is other code
    there and has a kernel of another kind than those before; in `spelled`, what of this
    has instructions that a compiler for any core does not see."""
    cases_of: dict[str, dict[str, Files]] = {"generic": {}, "dsp": {}, "spelled": {}}
    seen: set[Kind] = set()
    for case in cases():
        rules = [rule for rule in ROUNDINGS if case.is_changed_by(rule)]
        first = zlib.crc32(case.name.encode()) % len(rules)
        next_one = rules[(first + 1) % len(rules)]
        own = _code(case, rules[first], "generic", alone=True)
        cases_of["generic"][c_name(case, rules[first])] = own
        _add_dsp(cases_of, case, next_one, seen)
    _write(folder, cases_of)


def write_all_suites(folder: Path) -> None:
    """The same of all roundings that change a case, whatever its kernels are."""
    cases_of: dict[str, dict[str, Files]] = {"generic": {}, "dsp": {}, "spelled": {}}
    for case in cases():
        for rounding in ROUNDINGS:
            if case.is_changed_by(rounding):
                own = _code(case, rounding, "generic", alone=True)
                cases_of["generic"][c_name(case, rounding)] = own
                _add_dsp(cases_of, case, rounding, None)
    _write(folder, cases_of)


def _add_dsp(
    cases_of: dict[str, dict[str, Files]],
    case: Case,
    rounding: str,
    seen: set[Kind] | None,
) -> None:
    name = c_name(case, rounding)
    dsp = _code(case, rounding, "cortex-m4", alone=False)
    text = dsp[f"{name}.c"]
    kinds = {kind for one in _KERNEL.findall(text) for kind in kinds_of_name(one)}
    kinds |= {(case.op, call) for call in _spelled().findall(text)}
    if seen is not None and kinds <= seen:
        return
    if dsp == (cases_of["generic"].get(name) or _code(case, rounding, "generic", True)):
        return
    if seen is not None:
        seen |= kinds
    cases_of["dsp"][name] = dsp
    if _spelled().search(text):
        cases_of["spelled"][name] = dsp


def _write(folder: Path, cases_of: dict[str, dict[str, Files]]) -> None:
    for which, found in cases_of.items():
        files = {file: text for one in found.values() for file, text in one.items()}
        more = {**dict(units_of(found)), "main.c": _main(list(found))}
        write_beside(folder / which, {**files, **more})


def units_of(found: Mapping[str, Files]) -> Iterator[tuple[str, str]]:
    """Cases together whose files include the same: what one lacks no other brings."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, files in found.items():
        included = re.findall(r'#include (["<]crt/.*|<.*)', "".join(files.values()))
        alike.setdefault(tuple(sorted({*included})), []).append(name)
    for number, names in enumerate(alike.values()):
        for first in range(0, len(names), TOGETHER):
            some = names[first : first + TOGETHER]
            parts = (_apart(found[name], at) for at, name in enumerate(some))
            yield f"units/{number}_{first:03}.c", "".join(parts)


def _apart(files: Files, number: int) -> str:
    """A case's sources; what they have in common with others gets a name of its own."""
    sources = {file: text for file, text in files.items() if file.endswith(".c")}
    own = {one for found in _OWN.findall("".join(sources.values())) for one in found}
    names = sorted(own - {""})
    lines = [f"#define {name} {name}_{number}\n" for name in names]
    lines += [f'#include "../{file}"\n' for file in sources]
    return "".join((*lines, *(f"#undef {name}\n" for name in names)))


def _code(case: Case, rounding: str, target: str, alone: bool) -> Files:
    name = c_name(case, rounding)
    library = model(case, rounding).build(
        name=name, rounding=rounding, target=target, alone=alone, **case.options
    )
    files, parts = library.files(), (".h", ".c", "_weights.c", "_selftest.c")
    return whole({name + part: files[name + part] for part in parts})


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

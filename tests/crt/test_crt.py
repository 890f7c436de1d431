"""crt itself: its C tests under each compiler, coverage, C++ and size."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from tests.toolchains import (
    INCLUDE,
    ROOT,
    SOURCES,
    STRICT,
    absent,
    links,
    require,
    run,
    runtime,
)

HERE = Path(__file__).resolve().parent
INCLUDES = ("-I", INCLUDE, "-I", HERE)
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
TRAP = ("-g", "-fsanitize=undefined", "-fsanitize-trap=undefined")
# bytes, Cortex-M4 -Os by arm-none-eabi-gcc 12.2 (2,024) and 14.2 (2,044), without
# memcpy; users are promised 2048
TEXT_LIMIT = 2048
PROGRAMS = (
    "test_graph.c",
    "test_params.c",
    "test_binding.c",
    "test_weights.c",
    "test_devices.c",
    "test_timing.c",
    "test_frame.c",
    "test_rpc.c",
    "test_rpc_key.c",
    "test_calls.c",
    "test_lockstep.c",
    "test_cores.c",
    "test_push.c",
    "test_state.c",
    "test_convert.c",
    "test_verify.c",
    "test_finite.c",
    "test_overlap.c",
    "test_images.c",
)
SWITCHES = ("", "-DCRT_NO_HOOK", "-DCRT_NO_STRING_H", '-DCRT_CONFIG_FILE="mine.h"')
# each program by each compiler, with one of these in turn; in all tests with each.
# tests/evidence/test_configurations.py has gcc with every switch
TURNS = {"gcc": ("",), "clang": (SWITCHES[-1], "")}


def _calls() -> Iterator[ParameterSet]:
    for number, program in enumerate(PROGRAMS):
        for compiler, turns in TURNS.items():
            for switch in SWITCHES:
                mine = turns[number % len(turns)] == switch
                marks = () if mine else pytest.mark.sweep
                yield pytest.param(program, compiler, switch, marks=marks)


@pytest.mark.parametrize(("program", "compiler", "switch"), [*_calls()])
def test_calls(program: str, compiler: str, switch: str, tmp_path: Path) -> None:
    require(compiler)
    flags = [*STRICT, *_checks(compiler), *([switch] if switch else []), f"-I{HERE}"]
    _linked(compiler, flags, program, tmp_path)
    assert run([tmp_path / "test"]) == ""


def _linked(compiler: str, flags: Sequence[str], program: str, folder: Path) -> None:
    """Compiled by itself, and linked with crt."""
    own = folder / "own.o"
    run([compiler, *flags, *INCLUDES, "-c", HERE / program, "-o", own])
    files = [own, *runtime(compiler, *flags)]
    run([compiler, *flags, *files, "-pthread", "-o", folder / "test"])


@cache
def _checks(compiler: str) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        return SANITIZE if links(compiler, SANITIZE, Path(folder)) else TRAP


@pytest.mark.parametrize(
    ("program", "checks"),
    [
        ("test_threads.c", "thread"),
        ("test_threads.c", "address,undefined"),  # of the others: test_calls
        ("test_weights.c", "thread"),
        ("test_binding.c", "thread"),
        ("test_devices.c", "thread"),
    ],
)
def test_sanitizers(program: str, checks: str, tmp_path: Path) -> None:
    """Sharing, inputs without memory, devices, and instances at the same time."""
    gcc, sanitize = require("gcc"), ("-g", f"-fsanitize={checks}")
    if not links(gcc, sanitize, tmp_path):
        absent(f"gcc has no -fsanitize={checks}")
    flags = (*STRICT, *sanitize, "-fno-sanitize-recover=all", f"-I{HERE}")
    _linked(gcc, flags, program, tmp_path)
    assert run([tmp_path / "test"]) == ""


def test_every_line_and_branch_is_tested(tmp_path: Path) -> None:
    require("gcov")
    counts: dict[str, dict[str, int]] = {}
    for switch in ("-DCRT_HOOKED", "-DCRT_NO_STRING_H"):
        folder = tmp_path / switch
        folder.mkdir()
        build = [require("gcc"), "-std=c99", "-O0", "--coverage", switch, *INCLUDES]
        run([*build, "-c", *SOURCES], cwd=folder)
        crt = sorted(folder.glob("*.o"))
        for program in PROGRAMS:
            run([*build, HERE / program, *crt, "-o", "test"], cwd=folder)
            run([folder / "test"])
        run(["gcov", "-b", "--json-format", *folder.glob("*.gcda")], cwd=folder)
        for report in sorted(folder.glob("*.gcov.json.gz")):
            _add_counts(json.loads(gzip.decompress(report.read_bytes())), counts)
    wanted = {source.name for source in SOURCES} | {"port.h"}
    assert wanted <= set(counts)
    missed = {
        f"{name}:{place}"
        for name in wanted
        for place, count in counts[name].items()
        if count == 0
    }
    assert not missed


def _add_counts(report: dict[str, Any], counts: dict[str, dict[str, int]]) -> None:
    for entry in report["files"]:
        places = counts.setdefault(Path(entry["file"]).name, {})
        for line in entry["lines"]:
            key = f"{line['line_number']}"
            places[key] = places.get(key, 0) + line["count"]
            for index, branch in enumerate(line["branches"]):
                key = f"{line['line_number']} branch {index}"
                places[key] = places.get(key, 0) + branch["count"]


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_cpp(compiler: str, standard: str, tmp_path: Path) -> None:
    require(compiler)
    objects = runtime(require("gcc"))
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    files = [HERE / "headers.cpp", *objects]
    run([compiler, *flags, *INCLUDES, *files, "-o", tmp_path / "test"])
    run([tmp_path / "test"])


@pytest.mark.parametrize("header", sorted((INCLUDE / "crt").glob("*.h")), ids=str)
def test_header_stands_alone(header: Path, tmp_path: Path) -> None:
    source = tmp_path / "alone.c"
    source.write_text(f'#include "crt/{header.name}"\nextern int alone;\n')
    run([require("gcc"), *STRICT, *INCLUDES, "-fsyntax-only", source])


def test_old_c_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "old.c"
    source.write_text('#include "crt/config.h"\n')
    command = f"gcc -std=c90 -I {INCLUDE} -fsyntax-only {source} 2>&1 || true"
    require("gcc")
    assert "crt needs C99 or newer" in run(["sh", "-c", command])


def _firmware(tmp_path: Path, *switches: str) -> dict[str, int]:
    gcc = require("arm-none-eabi-gcc")
    flags = [
        "-mcpu=cortex-m4",
        "-mthumb",
        "-Os",
        "-ffunction-sections",
        "-fdata-sections",
    ]
    link = ["-nostartfiles", "-Wl,--gc-sections", "-specs=nano.specs"]
    flags += [*STRICT, *switches, f"-I{HERE}"]
    files = [*runtime(gcc, *flags), HERE / "size_main.c", "-o", tmp_path / "size.elf"]
    run([gcc, *flags, *INCLUDES, *link, *files])
    listing = run(["arm-none-eabi-nm", "-S", "-t", "d", tmp_path / "size.elf"])
    found = re.findall(r"^\d+ (\d+) ([tTrRbB]) ([\w.]+)$", listing, re.MULTILINE)
    return {name: int(size) for size, kind, name in found if kind in "tT"}


def test_runtime_is_small(tmp_path: Path) -> None:
    sizes = _firmware(tmp_path)
    mine = {"_start", "sum3", "add", "copy", "copy2", "memcpy"}
    text = {name: size for name, size in sizes.items() if name not in mine}
    assert sum(text.values()) <= TEXT_LIMIT, text
    assert not {"malloc", "printf", "abort", "crt_strerror"} & set(text)


def test_hook_leaves_by_its_switch(tmp_path: Path) -> None:
    with_hook = sum(_firmware(tmp_path).values())
    assert sum(_firmware(tmp_path, "-DCRT_NO_HOOK").values()) < with_hook - 50


def test_instance_is_small(tmp_path: Path) -> None:
    source = tmp_path / "instance.c"
    source.write_text(
        '#include "crt/graph.h"\nchar small[sizeof(struct crt_graph) <= 32 ? 1 : -1];\n'
    )
    flags = ["-mcpu=cortex-m4", "-mthumb", *STRICT, *INCLUDES, "-fsyntax-only"]
    run([require("arm-none-eabi-gcc"), *flags, source])


def test_no_forbidden_calls() -> None:
    """crt calls nothing but memcpy: no allocation, no printing, no abort."""
    allowed = {"memcpy"}
    called: set[str] = set()
    defined: set[str] = set()
    objects = runtime(require("gcc"), "-Os")
    assert len(objects) == len(SOURCES)
    for line in run([require("nm"), "-A", *objects]).splitlines():
        kind, name = line.split()[-2:]
        (called if kind == "U" else defined).add(name)
    assert called - defined <= allowed | {"_GLOBAL_OFFSET_TABLE_"}


def test_objects_lock_to_the_abi() -> None:
    abi = (INCLUDE / "crt" / "abi.h").read_text()
    number = re.search(r"^#define CRT_ABI (\d+)$", abi, re.MULTILINE)
    assert number is not None
    header = (INCLUDE / "crt" / "graph.h").read_text()
    assert f"extern const uint32_t crt_abi_{number[1]};" in header


def test_error_numbers_go_down_and_each_is_reached() -> None:
    text = (ROOT / "crt" / "include" / "crt" / "error.h").read_text()
    errors = re.findall(r"X\((CRT_\w+), (-?\d+), ", text)
    tested = "".join((HERE / program).read_text() for program in PROGRAMS)
    elsewhere = {"CRT_ERR_SELFTEST"}  # given by the code that pybuild writes
    assert {name for name, _ in errors if name not in tested} <= elsewhere
    values = [int(value) for _, value in errors]
    assert values[0] == 0 and all(b < a for a, b in pairwise(values))

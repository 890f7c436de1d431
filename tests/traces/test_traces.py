"""Marks of layers from an emulated core, as files of CTF and of Perfetto, and what a
mark costs there."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.boards.simulators.qemu import machine_options, program_options
from pybuild.boards.simulators.stand_ins import in_qemu
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.targets.board import load_board
from pybuild.targets.core import CORES
from pybuild.traces import read_trace
from tests.boards.devices import CORES as BOARDS
from tests.boards.devices import DIGITS
from tests.boards.programs import compiler, link_flags
from tests.conftest import made_once
from tests.snippets import snippets
from tests.toolchains import ROOT, STRICT, completed, require, run

CORE = "cortex-m4"
HERTZ = 25_000_000  # the counter of the machine; a tick is 40 instructions
TICK = 40
# FPGAIO's COUNTER goes up at that clock; calls are timed by it, too
PROGRAM = """\
#include "digits.h"
#include "crt/port.h"
#include "crt/trace.h"
#include <stdio.h>

#define CLOCK ((const volatile uint32_t *)0x40028018u)
#define CALLS 20000u

static uint8_t arena[DIGITS_ARENA_BYTES] __attribute__((aligned(16)));
static struct digits model;
static struct crt_trace_mark marks[64];
static struct crt_trace_mark many[1];
static struct crt_trace trace = {CLOCK, marks, marks + 64};

static int nothing(void *context, uint32_t step, uint32_t first_row,
                   uint32_t count, const void *rows)
{
    (void)context;
    (void)step;
    (void)first_row;
    (void)count;
    (void)rows;
    return CRT_OK;
}

static uint32_t timed(crt_hook *volatile hook, struct crt_trace *to)
{
    const uint32_t begin = *CLOCK;
    uint32_t i;

    for (i = 0; i < CALLS; i++) {
        to->next = many; /* there is always a place */
        (void)hook(to, 1, 2, 3, NULL);
    }
    return *CLOCK - begin;
}

int main(void)
{
    static struct crt_trace again = {CLOCK, many, many + 1};
    const struct digits_memory memory = DIGITS_MEMORY(arena);
    const struct crt_trace_mark *mark;
    int error = digits_init(&model, &memory);
    int8_t *image = digits_image(&model);
    uint32_t i;

    for (i = 0; i < DIGITS_IMAGE_LEN; i++)
        image[i] = (int8_t)i;
    if (error == CRT_OK)
        error = crt_graph_set_hook(&model.graph, crt_trace_hook, &trace);
    crt_trace_run(&trace);
    if (error == CRT_OK)
        error = digits_run(&model);
    for (mark = marks; mark != trace.next; mark++)
        printf("mark %u %u %u\\n", (unsigned)mark->time, (unsigned)mark->step,
               (unsigned)mark->row);
    printf("calls %u %u\\n", (unsigned)timed(nothing, &again),
           (unsigned)timed(crt_trace_hook, &again));
    return error;
}
"""


def _make(out: Path) -> None:
    tree = out / "tree"
    pybuild.load(DIGITS).build(tree, name="digits", target=CORE)
    (out / "main.c").write_text(PROGRAM)
    flags = [*STRICT, "-O2", f"-I{tree}", f"-I{tree}/crt/include"]
    flags.append(f"-I{ROOT}/crt/include")
    c = [*tree.glob("*.c"), *tree.glob("crt/src/*.c"), out / "main.c"]
    image = out / "program"
    core = compiler(CORES[CORE])
    run([*core, *flags, *c, *link_flags(CORE, out), "-o", image])
    board = in_qemu(load_board(BOARDS[CORE]))
    qemu = require(f"qemu-system-{board.system}")
    counted = [] if "-icount" in machine_options(board) else ["-icount", "shift=0"]
    command = [qemu, *machine_options(board), *counted]
    told = completed([*command, *program_options(board, image)], out).stdout
    (out / "said").write_text(told)
    numbers = re.findall(r"mark (\d+) (\d+) (\d+)", told)
    marks = [(int(time), int(step) | int(row) << 16) for time, step, row in numbers]
    (out / "marks.bin").write_bytes(np.array(marks, "<u4").tobytes())


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a program on an emulated Cortex-M4 marked."""
    require("arm-none-eabi-gcc")
    require("qemu-system-arm")
    return made_once(tmp_path_factory, "traced", _make)


def test_each_band_is_marked(traced: Path) -> None:
    """In the order of the run, with times that go up."""
    marks = np.fromfile(traced / "marks.bin", "<u4").reshape(-1, 2)
    steps, rows = marks[:, 1] & 0xFFFF, marks[:, 1] >> 16
    tables = pybuild.load(DIGITS).build(name="digits", target=CORE).tables
    assert steps[0] == 0xFFFF
    for number, step in enumerate(tables.steps):
        own = rows[steps == number]
        assert len(own) == step.images * step.bands, number
        assert (np.sort(own) == own).all(), "rows of a step follow each other"
    assert (np.diff(marks[:, 0].astype(np.int64)) >= 0).all()
    assert marks[-1, 0] - marks[0, 0] > 1000


# @req crt_trace_hook:Time
def test_what_a_mark_costs(traced: Path) -> None:
    """Beside a hook that does nothing: 5 to 15 instructions, as crt/trace.h says."""
    found = re.search(r"calls (\d+) (\d+)", (traced / "said").read_text())
    assert found
    cost = (int(found[2]) - int(found[1])) * TICK / 20000
    text = (ROOT / "crt/include/crt/trace.h").read_text()
    said = re.search(r"Time +(\d+) instructions of a Cortex-M4", text)
    assert said and 5 <= int(said[1]) <= 15
    assert abs(cost + 2 - int(said[1])) < 0.1  # the empty hook has two of its own


def test_babeltrace_reads_it(traced: Path, tmp_path: Path) -> None:
    require("babeltrace2")
    words = ["trace", traced / "marks.bin", "--tree", traced / "tree"]
    words += ["--hertz", HERTZ, "-o", tmp_path / "ctf"]
    assert main([str(word) for word in words]) == 0
    lines = completed(["babeltrace2", tmp_path / "ctf"]).stdout.splitlines()
    marks = np.fromfile(traced / "marks.bin", "<u4").reshape(-1, 2)
    assert len(lines) == len(marks)
    assert 'step = ( "(run)" : container = 65535 )' in lines[0]
    for line, (_, what) in zip(lines, marks.tolist(), strict=True):
        assert f"container = {what & 0xFFFF} )" in line
        assert f"row = {what >> 16} }}" in line
    clock = completed(["babeltrace2", "--clock-cycles", tmp_path / "ctf"]).stdout
    cycles = [int(n) for n in re.findall(r"^\[0*(\d+)\]", clock, re.MULTILINE)]
    assert cycles == marks[:, 0].tolist()
    layers = ("conv", "depthwise", "pointwise", "pool", "scores")
    assert all(f'step = ( "{name}" : ' in "\n".join(lines) for name in layers)


def test_a_file_for_perfetto(
    traced: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Slices lie end to end; their sum is the run's time; --json says it by layer."""
    file = tmp_path / "trace.json"
    words = ["trace", traced / "marks.bin", "--tree", traced / "tree", "--json"]
    words += ["--hertz", HERTZ, "--chrome", file]
    assert main([str(word) for word in words]) == 0
    told = json.loads(capsys.readouterr().out)
    events = json.loads(file.read_text())["traceEvents"]
    marks = np.fromfile(traced / "marks.bin", "<u4").reshape(-1, 2)
    assert told["marks"] == len(marks) == len(events) + 1
    whole = (marks[-1, 0] - marks[0, 0]) / HERTZ * 1e6
    assert sum(told["microseconds"].values()) == pytest.approx(whole)
    for before, after in itertools.pairwise(events):
        assert before["ts"] + before["dur"] == pytest.approx(after["ts"])
    assert {event["ph"] for event in events} == {"X"}


def test_a_counter_that_wraps() -> None:
    report = {"stages": [{"layers": ["a\n", 'b"c']}]}
    marks = np.array([0xFFFFFFF0, 0xFFFF, 0xFFFFFFFF, 0, 9, 1], "<u4").tobytes()
    found = read_trace(marks, report, 1_000_000)
    first, second = found.chrome()["traceEvents"]
    assert (first["ts"], first["dur"], second["dur"]) == (0, 15, 10)
    assert '"a\\\\n" = 0' in str(found.ctf()["metadata"])
    assert second["name"] == 'b"c' and '"b\\"c" = 1' in str(found.ctf()["metadata"])


REFUSED = {
    "is of several models": (b"", {"models": []}, 1),
    "does not name the steps": (b"", {"stages": 5}, 1),
    "has 7 bytes; a mark has 8": (b"1234567", {"stages": []}, 1),
    "has 0 bytes": (b"", {"stages": []}, 1),
    "marks step 3; this build has 1": (
        np.array([0, 3], "<u4").tobytes(), {"stages": [{"layers": ["a"]}]}, 1,
    ),
    "0 is not the frequency": (
        np.array([0, 0], "<u4").tobytes(), {"stages": [{"layers": ["a"]}]}, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_trace(what: str) -> None:
    stream, report, hertz = REFUSED[what]
    with pytest.raises(BuildError, match=re.escape(what)):
        read_trace(stream, report, hertz)


def test_off_it_costs_nothing(tmp_path: Path) -> None:
    """Without a call of it no object has anything of it; nor has CRT_NO_HOOK."""
    source = tmp_path / "user.c"
    source.write_text(
        '#include "crt/trace.h"\nint f(void);\nint f(void) { return 1; }\n'
    )
    for more in ([], ["-DCRT_NO_HOOK"]):
        words = ["gcc", *STRICT, "-O0", f"-I{ROOT}/crt/include", *more, "-c", source]
        completed([*words, "-o", tmp_path / "user.o"])
        names = completed(["nm", tmp_path / "user.o"]).stdout
        assert [line.split()[-1] for line in names.splitlines()] == ["f"]
    wrong = subprocess.run(
        ["gcc", "-fsyntax-only", "-DCRT_NO_HOOK", f"-I{ROOT}/crt/include", "-x", "c",
         "-", "-Werror"],
        input='#include "crt/trace.h"\nstruct crt_trace t;\n', text=True,
        capture_output=True,
    )  # fmt: skip
    assert wrong.returncode != 0


PAGE = ROOT / "docs" / "traces.md"
SYSVIEW = "void SEGGER_SYSVIEW_Mark(unsigned int id);\n"


def test_the_page(traced: Path, tmp_path: Path) -> None:
    """docs/traces.md: its C compiles, its commands run on these marks."""
    require("babeltrace2")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/digits").symlink_to(traced / "tree")
    (tmp_path / "marks.bin").symlink_to(traced / "marks.bin")
    (tmp_path / "SEGGER_SYSVIEW.h").write_text(SYSVIEW)
    env = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    blocks = [b for b in snippets(ROOT, PAGE) if b.said("run by")]
    assert [block.language for block in blocks] == ["c", "sh", "c"]
    includes = [f"-I{traced}/tree", f"-I{ROOT}/crt/include", f"-I{tmp_path}"]
    for block in blocks:
        if block.language == "c":
            (tmp_path / "page.c").write_text(block.text)
            words = [*compiler(CORES[CORE]), *STRICT, *includes, "-c"]
            run([*words, tmp_path / "page.c", "-o", tmp_path / "page.o"])
            continue
        for line in block.text.splitlines():
            assert completed(line.split(), tmp_path, env).stdout
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]

"""What builds cost, as tables: bytes of RAM, flash and code, seconds to build and to
run. Measured, nothing remembered; knows of pybuild what a user knows, and its planner.
"""

from __future__ import annotations

import functools
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pybuild
from pybuild.dtype import DType
from pybuild.host.jit import host_features
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import Func
from pybuild.kernels.base.candidate import Candidate, whole
from pybuild.plan.make import make_plan
from pybuild.verify.bench import litert, timed
from pybuild.verify.samples import sample
from tests.conftest import ROOT, models_folder
from tests.figures.tools import output
from tests.graphs.real_models import (
    ARENAS,
    CONSUMABLE_RAM,
    FILES,
    NETWORKS,
    PUSHED_RAM,
    RESIDENT_RAM,
    TFLITE,
)

TRIES = 3
SECONDS = 4.0  # of running, for each model
Row = Sequence[object]


@dataclass(frozen=True)
class Table:
    """says: what a reader must know to judge the numbers."""

    title: str
    says: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def markdown(self) -> str:
        rule = ["---" if n == 0 else "---:" for n in range(len(self.columns))]
        lines = [self.columns, rule, *self.rows]
        cells = ("| " + " | ".join(map(_text, line)) + " |" for line in lines)
        says = textwrap.wrap(self.says, 88, break_on_hyphens=False)
        return "\n".join([f"## {self.title}", "", *says, "", *cells, ""])


def _text(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "**no**"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return str(value)


def model(name: str) -> Path:
    return models_folder() / name


@functools.cache
def built(path: Path, **options: str) -> pybuild.Library:
    return pybuild.load(path).build(**options)


# ---- memory -------------------------------------------------------------------


def memory() -> Table:
    rows = []
    for name in FILES:
        reuse, keep = (built(model(name), input=i).report for i in ("reuse", "keep"))
        owed: object = ""
        if name.endswith("_int8.tflite"):
            owed = ARENAS[name.removesuffix("_int8.tflite")]
        rows.append(
            (name, reuse.ram.arena, owed, reuse.ram.lower_bound, keep.ram.arena,
             reuse.ram.instance, reuse.flash.weights, reuse.flash.tables)
        )  # fmt: skip
    says = (
        "Bytes of the default build, arena with `--input reuse` and `keep`; the bound "
        "is of reuse, the instance is for 32-bit pointers. Kernels come on top, below."
    )
    columns = (
        "model", "arena", "promised", "lower bound", "arena, keep", "instance",
        "weights", "tables",
    )  # fmt: skip
    return Table("RAM and flash", says, columns, tuple(rows))


def by_rows() -> Table:
    """What issue 6 asks for, what is reached, and what no plan can be below."""
    asked = {
        "resident": RESIDENT_RAM,
        "consumable": CONSUMABLE_RAM,
        "pushed": PUSHED_RAM,
    }
    rows: list[Row] = []
    for how, limits in asked.items():
        for name, limit in limits.items():
            for target in ("generic", "cortex-m4"):
                found = pybuild.load(model(f"{name}_int8.tflite"))
                push = found.graph.inputs if how == "pushed" else ()
                word = "consumable" if how == "consumable" else "reuse"
                made = found.build(target=target, push=push, input=word)
                have = made.report.ram.arena + made.report.ram.instance
                least = made.ram_bound()
                times = f"{have / least:.2f}"
                # of consumable inputs the others' limits are only the tests' own
                own = how == "consumable" and name != "vww"
                want = "" if own else limit
                rows.append((name, how, target, have, want, least, times))
    says = (
        "Arena and instance of `crt build X_int8.tflite`, with `--target cortex-m4`, "
        "with `--input consumable` and with `--push`; asked for, and what no plan by "
        "rows can be below (docs/memory-model.md)."
    )
    columns = ("model", "input", "target", "RAM", "asked", "bound", "times")
    return Table("RAM by rows", says, columns, tuple(rows))


FIRMWARE = """
#include "{name}.h"
static uint8_t arena[{upper}_ARENA_BYTES] __attribute__((aligned(16)));
static struct {name} model;
uint8_t given[{given}];
uint8_t taken[{taken}];
int result;
void _start(void);
void _start(void)
{{
    const struct {name}_memory memory = {upper}_MEMORY(arena);
    result = {name}_init(&model, &memory);
    result |= crt_graph_set_input(&model.graph, 0, given, {given});
    result |= {name}_run(&model);
    result |= crt_graph_get_output(&model.graph, 0, taken, {taken});
    for (;;) {{
    }}
}}
"""
CORTEX_M4 = (
    "-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-std=c99",
    "-Os", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections",
)  # fmt: skip


def text() -> Table:
    rows: list[Row] = []
    if shutil.which("arm-none-eabi-gcc"):
        rows = [_text_of(name) for name in FILES]
    says = (
        "Bytes of code in a program for Cortex-M4 that only inits, sets, runs and "
        "gets, by `arm-none-eabi-gcc -Os` with unused sections dropped. The "
        "runtime takes at most 2,048 with 12.2 and 14.2; a net that runs by rows "
        "(lock step) adds its runner to that. Library: memcpy, expf and the like."
    )
    columns = ("model", "runtime (crt)", "kernels", "API", "library")
    return Table("Code", says, columns, tuple(rows))


def _text_of(name: str) -> Row:
    library = built(model(name))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for file, content in {
            **library.files(),
            "firmware.c": _firmware(library),
        }.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(str(content))
        runtime = _compiled(root, sorted((root / "crt" / "src").glob("*.c")))
        mine = _compiled(root, sorted(root.glob("*.c")))
        # only measured: RAM and flash of any size will do
        link = ("-nostartfiles", "-Wl,--gc-sections", "-specs=nano.specs")
        places = ("-Ttext=0", "-Tdata=0x20000000")
        _arm(*link, *places, *runtime, *mine, "-lm", "-o", root / "elf")
        linked = _functions([root / "elf"])
        crt, made = _functions(runtime), _functions(mine)
    del linked["_start"]
    api = {f for f in made if f.startswith(f"{library.name}_")}
    parts = (set(crt), set(made) - api, api, set(linked) - set(crt) - set(made))
    return name, *(sum(linked.get(f, 0) for f in part) for part in parts)


def _firmware(library: pybuild.Library) -> str:
    report, name = library.report, library.name
    given, taken = report.inputs[0].bytes, report.outputs[0].bytes
    return FIRMWARE.format(name=name, upper=name.upper(), given=given, taken=taken)


def _compiled(root: Path, sources: Sequence[Path]) -> list[Path]:
    objects = [root / f"{source.stem}.o" for source in sources]
    include = (f"-I{root}", f"-I{root / 'crt' / 'include'}")
    for source, made in zip(sources, objects, strict=True):
        _arm("-c", *include, source, "-o", made)
    return objects


def _arm(*arguments: object) -> None:
    command = ["arm-none-eabi-gcc", *CORTEX_M4, *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def _functions(files: Sequence[Path]) -> dict[str, int]:
    """Bytes of code by name."""
    listing = output("arm-none-eabi-nm", "-S", "-t", "d", *files)
    found = re.findall(r"^\d+ (\d+) [tTwW] (\S+)$", listing, re.MULTILINE)
    return {name: int(size) for size, name in found}


# ---- time ---------------------------------------------------------------------

AFTER_IMPORT = """
import sys, time
import pybuild
start = time.perf_counter()
pybuild.load(sys.argv[1]).build(sys.argv[2])
print(time.perf_counter() - start)
"""


def waiting() -> Table:
    rows = [_waits(f"{network}_int8.tflite") for network in NETWORKS]
    says = (
        f"Seconds on the clock, the least of {TRIES} processes. Promised: build under "
        "2 after import and under 3 as a whole process, inspect under 1.5."
    )
    columns = ("model", "build after import", "`crt build`", "`crt inspect`")
    return Table("Seconds to build", says, columns, tuple(rows))


def _waits(name: str) -> Row:
    path, crt = model(name), ("-m", "pybuild.cli")
    inside, process, inspect = [], [], []
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as folder:
            inside.append(float(_python("-c", AFTER_IMPORT, path, folder)))
        with tempfile.TemporaryDirectory() as folder:
            process.append(_clock(lambda: _python(*crt, "build", path, "-o", folder)))
        inspect.append(_clock(lambda: _python(*crt, "inspect", path)))
    return name, min(inside), min(process), min(inspect)


def _python(*arguments: str | Path) -> str:
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def _clock(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def planner() -> Table:
    rows = []
    for nodes in (100, 1_000, 10_000):
        graph = _chain(nodes)
        start = time.perf_counter()
        plan = make_plan(graph, _whole_tensors, False, None)
        seconds = time.perf_counter() - start
        over = f"{plan.arena_bytes / plan.lower_bound - 1:.1%}"
        rows.append((nodes, seconds, plan.arena_bytes, plan.lower_bound, over))
    says = "A chain of layers of many sizes, every fifth with a second input."
    columns = ("nodes", "seconds", "arena", "lower bound", "above it")
    return Table("The planner on large graphs", says, columns, tuple(rows))


def _chain(count: int) -> Graph:
    names = [f"t{index}" for index in range(count + 1)]
    tensors = {
        name: Tensor(name, (1000 + 3700 * index % 9700,), DType.INT8)
        for index, name in enumerate(names)
    }
    nodes = []
    for index in range(count):
        skip = (names[index - 5],) if index % 5 == 0 and index else ()
        made = names[index + 1]
        nodes.append(Node("conv", made, (names[index], *skip), (made,), {}))
    return Graph("chain", "chain", tuple(nodes), tensors, ("t0",), (names[-1],))


def _whole_tensors(node: Node, graph: Graph) -> list[Candidate]:
    nothing = Func("nothing", (), (), ())
    reads = tuple(whole(graph.tensor(name)) for name in node.inputs)
    return [Candidate(nothing, (), (whole(graph.tensor(node.output)),), reads)]


def speed() -> Table:
    rows = [_race(name) for name in TFLITE]
    says = (
        "Microseconds of a run with its input's copy, one thread, the median of runs "
        f"in turn with LiteRT's default CPU interpreter over {SECONDS:g} seconds. "
        "`default` is the build that ships, through LLVM; `host` is `--target host`. "
        "The aim is a ratio of at most 1.5 with int8 and 1.2 with floats. "
        f"{_processor()}"
    )
    columns = ("model", "runs", "default", "host", "LiteRT", "ratio", "ratio, host")
    return Table("Speed on this machine", says, columns, tuple(rows))


def _processor() -> str:
    """What decides about vectors of this machine."""
    known = ("avx512vnni", "avxvnni", "avx512f", "avx2", "neon", "dotprod")
    has = [one.removeprefix("+") for one in host_features().split(",")]
    return f"This processor has {', '.join(one for one in known if one in has)}."


def _race(name: str) -> Row:
    path = model(name)
    builds = [built(path), built(path, target="host")]
    graph = builds[0].plan.graph
    inputs = sample(graph, "uniform", (0, 0)).inputs
    nets = [library.host("llvm") for library in builds]
    runs = [functools.partial(net.run, **inputs) for net in nets]
    rivals = [timed(run) for run in runs]
    rivals.append(litert(path, graph, inputs)[1])
    times = in_turn(rivals, SECONDS)
    for net in nets:
        net.close()
    ours, host, theirs = (1e6 * statistics.median(seen) for seen in times)
    ratios = (f"{ours / theirs:.2f}", f"{host / theirs:.2f}")
    return name, len(times[0]), ours, host, theirs, *ratios


def in_turn(rivals: Sequence[Callable[[], float]], limit: float) -> list[list[float]]:
    """What each gives, its seconds, one after the other: all meet a busy moment."""
    for run in rivals:
        for _ in range(5):
            run()
    times: list[list[float]] = [[] for _ in rivals]
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        for run, seen in zip(rivals, times, strict=True):
            seen.append(run())
    return times

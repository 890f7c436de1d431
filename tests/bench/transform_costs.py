"""The Fourier transform of 512 numbers beside CMSIS-DSP's, as a table.

CMSIS_DSP is the folder of cmsisdsp-1.10.3.tar.gz of PyPI, unpacked; without it, its row
says that it was not there.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import open_device
from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from tests.bench.costs import Table
from tests.bench.keyword_costs import BOARD, TARGET
from tests.objects.simulated import Machine
from tests.toolchains import run

LENGTH, HERE = 512, Path(__file__).parent
_FILES = ("arm_rfft_q15", "arm_rfft_init_q15", "arm_cfft_q15", "arm_cfft_init_q15",
          "arm_cfft_radix4_q15", "arm_bitreversal2")  # fmt: skip
_MAIN = f"""
#include "arm_math.h"
q15_t x[{LENGTH}], y[{2 * LENGTH}];
arm_rfft_instance_q15 s;
void prepare(void)
{{
    for (int i = 0; i < {LENGTH}; i++)
        x[i] = (q15_t)(i * 7919);
    arm_rfft_init_{LENGTH}_q15(&s, 0, 1);
}}
void transform(void) {{ arm_rfft_q15(&s, x, y); }}
char stack_room[8192], stack_top[16] __attribute__((aligned(16)));
char *volatile kept;
void _start(void)
{{
    kept = stack_room;
    kept = stack_top;
    prepare();
    transform();
}}
"""


def net(halving: bool) -> Graph:
    b = pybuild.GraphBuilder("transform")
    x = b.input("x", (LENGTH,), "int16")
    b.output(b.op("rfft", x, length=LENGTH, inverse=False, halving=halving), "y")
    return b.build()


def instructions(halving: bool) -> int:
    """Of one transform on a simulated Cortex-M4, C by gcc."""
    library = pybuild.build(net(halving), name="transform", target=TARGET)
    found = bench_on_board(open_device(BOARD, "gcc", "auto", TARGET), library)
    return next(one.instructions for one in found.layers if one.op == "rfft")


def windows(count: int = 40) -> Array:
    """Tones in noise under a window, as loud as int16 can be: [count, LENGTH]."""
    rng, t = np.random.default_rng(0), np.arange(LENGTH)
    made = []
    for _ in range(count):
        tone = np.sin(t * rng.uniform(0.05, 3)) + 0.1 * rng.normal(0, 1, LENGTH)
        frame = tone * np.hanning(LENGTH)
        made.append(np.round(frame / np.abs(frame).max() * 32767))
    return np.asarray(made, np.int16)


def error(halving: bool) -> float:
    """Root mean square beside float64, in steps of what is told."""
    graph, apart = net(halving), []
    for x in windows():
        found = interpret(graph, {"x": x})["y"].reshape(-1, 2).astype(np.float64)
        real = np.fft.rfft(x.astype(np.float64)) / LENGTH
        apart.append(found[:, 0] + 1j * found[:, 1] - real)
    return float(np.sqrt((np.abs(np.asarray(apart)) ** 2).mean()))


def of_cmsis(folder: Path) -> int:
    """The same of arm_rfft_q15, by gcc -O3."""
    parts = [folder / "Source" / "TransformFunctions" / f"{n}.c" for n in _FILES]
    parts += [
        folder / "Source" / other
        for other in (
            "BasicMathFunctions/arm_shift_q15.c",
            "CommonTables/arm_common_tables.c",
            "CommonTables/arm_const_structs.c",
        )
    ]
    with TemporaryDirectory() as made:
        main, image = Path(made) / "main.c", Path(made) / "transform.elf"
        main.write_text(_MAIN)
        include = [
            f"-I{HERE}",
            f"-I{folder / 'Include'}",
            f"-I{folder / 'PrivateInclude'}",
        ]
        flags = [
            "-mcpu=cortex-m4", "-mthumb", "-O3", "-w", "-ffunction-sections",
            "-fdata-sections", "-nostartfiles", "-Wl,--gc-sections",
            "-Wl,-u,transform,-u,prepare", "-Wl,-Ttext=0x10000,-Tdata=0x20000000",
        ]  # fmt: skip
        sources = [str(one) for one in (main, *parts)]
        run(["arm-none-eabi-gcc", *flags, *include, *sources, "-o", str(image)])
        machine = Machine(TARGET, image)
        machine.symbols["stack_top"] = machine.symbols["stack_room"] + 8192
        machine.call("prepare")
        return int(machine.counted("transform"))


def transforms() -> Table:
    given = os.environ.get("CMSIS_DSP")
    theirs: object = of_cmsis(Path(given)) if given else "not there"
    rows = [
        ("`rfft` of `pybuild.features`", instructions(True), f"{error(True):.2f}"),
        ("`rfft` with the bits of kissfft", instructions(False), f"{error(False):.2f}"),
        ("`arm_rfft_q15`, CMSIS-DSP 1.10.3", theirs, ""),
    ]
    says = (
        f"{LENGTH} real int16 to {LENGTH // 2 + 1} complex ones on a simulated "
        "Cortex-M4: C by gcc -O2, CMSIS-DSP (of PyPI's source) by gcc -O3. Error: root "
        "mean square beside float64, in steps, of tones in noise under a window."
    )
    columns = ("transform", "instructions", "error")
    return Table("A Fourier transform of 512", says, columns, tuple(rows))

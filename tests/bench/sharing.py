"""What packed and shared weights save, and what the executor costs beside kernels, as
tables. Measured; knows of pybuild what a user knows.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import textwrap
import time

import numpy as np

import pybuild
from pybuild.verify.samples import example_inputs
from tests.bench.costs import Row, Table, model
from tests.conftest import ROOT
from tests.graphs.real_models import NETWORKS

INSTANCES = 10
STEPS = 64
RUNS = 2000


def compression() -> Table:
    rows: list[Row] = []
    for network in NETWORKS:
        loaded = pybuild.load(model(f"{network}_int8.tflite"))
        plain = loaded.build()
        once, layer = loaded.build(compress="lz4"), loaded.build(compress="lz4-layer")
        flash = [lib.report.flash.weights for lib in (plain, once, layer)]
        rows.append((
            network, *flash, f"{1 - min(flash) / flash[0]:.1%}",
            once.report.ram.unpacked,
            layer.report.ram.arena - plain.report.ram.arena,
            _seconds(layer) / _seconds(plain),
        ))  # fmt: skip
    says = """Bytes of flash for weights and biases: as they are, as an LZ4 image that
    is unpacked once to RAM for all instances, and packed by layer, unpacked to the
    arena before each run of the layer. RAM: what the one takes beside all arenas,
    and the other more in each. Time: of a run with unpacking by layer, to one
    without."""
    columns = (
        "model", "flash", "lz4", "lz4-layer", "saved", "RAM once", "RAM by layer",
        "time by layer",
    )  # fmt: skip
    return Table("Packed weights", " ".join(says.split()), columns, tuple(rows))


def _seconds(library: pybuild.Library) -> float:
    net = library.host()
    inputs = example_inputs(library.plan.graph)
    times = []
    for _ in range(30):
        net.run(**inputs)
        start = time.perf_counter()
        net.run(**inputs)
        times.append(time.perf_counter() - start)
    net.close()
    return statistics.median(times)


def shared() -> Table:
    """Resident memory of a process with ten instances, and what it should be."""
    code = f"""
    import pybuild
    model = pybuild.load({str(model("vww_int8.tflite"))!r})
    library = model.build(params="replaceable")
    from pybuild.verify.samples import example_inputs
    inputs = example_inputs(library.plan.graph)
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    nets = [library.host()]
    nets[0].run(**inputs)
    before = resident()
    for _ in range({INSTANCES}):
        nets.append(nets[0].another())
        nets[-1].share_params(nets[0])
        nets[-1].run(**inputs)
    there = {{n.parameter_address(nets[0].parameters[0].name) for n in nets}}
    ram = library.report.ram
    image = len(library.image())
    print(resident() - before, ram.arena, ram.instance, image, len(there))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    grown, arena, instance, image, places = map(int, done.stdout.split())
    says = f"""{INSTANCES} instances of vww_int8 more, all their weights parameters
    of one image: the image once, an arena and an instance each; resident memory as
    Linux says (whole pages, and what Python keeps of each)."""
    rows = (
        ("image of the weights, once", image),
        ("arena and instance, each", arena + instance),
        (f"{INSTANCES} instances, as planned", INSTANCES * (arena + instance)),
        (f"{INSTANCES} instances, measured", grown),
        (f"{INSTANCES} instances with weights of their own would add",
         INSTANCES * image),
        ("addresses of the first weight", places),
    )  # fmt: skip
    return Table("Shared weights", " ".join(says.split()), ("", "bytes"), rows)


def overhead() -> Table:
    """Of a step, and of a call from Python."""
    long, short = _chain(STEPS), _chain(1)
    step = (_run_seconds(long) - _run_seconds(short)) / (STEPS - 1)
    says = f"""The executor beside the kernels: graphs of {STEPS} and of 1 nodes that
    add one number, through LLVM; a step is their difference, its kernel included;
    run() is a call from Python of the graph with one node. Shortest of {RUNS} runs."""
    rows = (("step", step * 1e9), ("run()", _run_seconds(short) * 1e9))
    columns = ("", "nanoseconds")
    return Table("Overhead on this machine", " ".join(says.split()), columns, rows)


def _chain(nodes: int) -> pybuild.Library:
    b = pybuild.GraphBuilder("chain")
    x = b.input("x", (1, 1))
    for turn in range(nodes):
        one = b.constant(f"c{turn}", np.full((1, 1), turn + 1, np.float32))
        x = b.op("add", x, one)
    b.output(x, "y")
    return pybuild.build(b.build(), name="chain", input="keep")


def _run_seconds(library: pybuild.Library) -> float:
    net = library.host()
    net.set_input("x", np.zeros((1, 1), np.float32))
    least = 1.0
    for _ in range(RUNS):
        start = time.perf_counter()
        net.run()
        least = min(least, time.perf_counter() - start)
    net.close()
    return least

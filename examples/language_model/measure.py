"""RAM, flash and time of the two halves beside the same network as one graph.

    python measure.py

Both read a prompt of 16 words and say which comes next: compiled by the C compiler
of this machine, run in turn, the shortest of 400 runs each.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE))

import network  # noqa: E402

import pybuild  # noqa: E402
from pybuild.frontends import graphjson  # noqa: E402
from pybuild.install import crt_include, crt_sources, host_compiler  # noqa: E402

STEPS = 16
FLAGS = ("-std=c99", "-O3", "-march=native", "-ffp-contract=off")


def weights() -> dict[str, np.ndarray]:
    """All that was trained, from the files of both halves."""
    found: dict[str, np.ndarray] = {}
    for name in ("recurrent", "output"):
        path = HERE / f"{name}.json"
        params = path.with_suffix(".params").read_bytes()
        found |= graphjson.load(path.name, path.read_bytes(), params).constants
    return found


def libraries() -> tuple[pybuild.Library, pybuild.Library, pybuild.Library]:
    """The halves, and the whole."""
    halves = [pybuild.load(HERE / f"{n}.json").build(name=n, target="host")
              for n in ("recurrent", "output")]  # fmt: skip
    graph = network.monolithic(weights(), STEPS)
    return *halves, pybuild.build(graph, name="monolithic", target="host")


def sizes(*made: pybuild.Library) -> tuple[int, int]:
    """Bytes of RAM (arenas, instances) and of flash (weights, tables)."""
    reports = [library.report for library in made]
    ram = sum(r.ram.arena + r.ram.instance for r in reports)
    return ram, sum(r.flash.weights + r.flash.tables for r in reports)


def nanoseconds(*made: pybuild.Library) -> tuple[float, float]:
    """Of the halves, of the whole; that they say the same is checked."""
    with tempfile.TemporaryDirectory() as folder:
        files = [HERE / "compare.c", *crt_sources()]
        for library in made:
            for name, text in library.sources().items():
                path = Path(folder) / name
                path.write_text(text, encoding="utf-8")
                files += [path] if name.endswith(".c") else []
        program = Path(folder) / "compare"
        include = ["-I", folder, "-I", str(crt_include())]
        command = [*host_compiler(), *FLAGS, *include, *map(str, files)]
        subprocess.run([*command, "-o", str(program), "-lm"], check=True)
        said = subprocess.run([program], check=True, capture_output=True, text=True)
    halves, whole = map(float, said.stdout.split())
    return halves, whole


def main() -> None:
    recurrent, output, whole = libraries()
    two, one = sizes(recurrent, output), sizes(whole)
    ram = two[0] + 2 * 4 * network.HIDDEN  # the states
    halves, at_once = nanoseconds(recurrent, output, whole)
    print(f"two halves: RAM {ram:,}, flash {two[1]:,} bytes, {halves / 1000:.1f} us")
    print(
        f"one graph:  RAM {one[0]:,}, flash {one[1]:,} bytes, {at_once / 1000:.1f} us"
    )
    print(f"one graph to two halves: RAM {one[0] / ram:.1f}", end="")
    print(f", time {at_once / halves:.1f}")


if __name__ == "__main__":
    main()

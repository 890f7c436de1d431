"""Layers for Linux on RISC-V with V: the self-test of a build, whose outputs are
numpy's, passes in QEMU's user mode with registers of 128, 256 and 512 bits, by C, and
as an object, which may lie anywhere in memory; and the commands of
docs/riscv-vectors.md."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

from pybuild.bounds.layers import bounds
from pybuild.package.folder import write_tree
from pybuild.targets.core import CORES
from tests import toolchains
from tests.boards.side_by_side import built
from tests.kernels.kernel_cases import Case
from tests.kernels.rvv.rvv_cases import halves, others
from tests.kernels.rvv.rvv_jobs import wide_layer
from tests.kernels.vector_layers import PLAIN, layer

BITS = (128, 256, 512)
CORE = CORES["rv64gcv"]
OPERATORS = ("conv2d", "depthwise_conv2d", "grouped", *PLAIN)


@functools.cache
def _cases() -> dict[str, Case]:
    found = [*(layer(op, 3) for op in OPERATORS), *halves((0, 10, 13)), wide_layer(1)]
    return {f"case{n}_": one for n, one in enumerate([*found, *others(range(2))])}


@pytest.mark.parametrize(("emit", "links"), [("c", "-static"), ("obj", "-pie")])
def test_random_layers(emit: str, links: str, tmp_path: Path) -> None:
    toolchains.require_module("ziglang")
    qemu = toolchains.require("qemu-riscv64-static")
    library = built(_cases(), "rv64gcv", emit)
    kernels = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert sum("rvv" in name for name in kernels) > len(kernels) * 2 // 3
    if emit == "c":
        assert not [one for one in bounds(library.plan) if not one.is_proven]
    write_tree(tmp_path, library.files(), library.name)
    target, cpu = CORE.zig
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target, f"-mcpu={cpu}"]
    flags = [*toolchains.STRICT, "-O1", links, "-fPIE", "-ffp-contract=off"]
    folders = ["-DCRT_WITH_SELFTEST", "-I.", "-Icrt/include"]
    sources = [p for p in tmp_path.rglob("*.[co]")]
    program = tmp_path / "program"
    command = [*zig, *flags, *folders, *sources, "-o", program]
    print(toolchains.run(command, tmp_path))
    for bits in BITS:
        machine = f"rv64,v=true,vlen={bits},vext_spec=v1.0"
        said = toolchains.run([qemu, "-cpu", machine, program])
        assert "layers: self-test: no error" in said, bits


@pytest.mark.sweep
def test_the_commands_of_the_page(tmp_path: Path) -> None:
    toolchains.require_module("ziglang")
    toolchains.require("qemu-riscv64-static")
    text = (toolchains.ROOT / "docs" / "riscv-vectors.md").read_text()
    commands = text.partition("test_rvv_linux.py -->\n```sh\n")[2].partition("```")[0]
    moved = commands.replace("build/digits_rv64", str(tmp_path / "made"))
    said = toolchains.run(["sh", "-e", "-c", moved], toolchains.ROOT)
    assert "digits_int8: self-test: no error" in said

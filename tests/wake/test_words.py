"""Wake words in C: every probability and every decision is that of pymicro-features,
LiteRT and ESPHome's rules over made sound.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.targets.core import CORES
from pybuild.wake import WakeWords, build_wake_words
from tests.boards.programs import compiler, emulated, link_flags
from tests.conftest import models_folder
from tests.toolchains import (
    INCLUDE,
    ROOT,
    SANITIZE,
    SOURCES,
    STRICT,
    require,
    run,
    runtime,
)
from tests.wake.listen import listened, printed, program, sources
from tests.wake.nets import NETS, write_nets
from tests.wake.reference import heard, probabilities, rows_of
from tests.wake.sounds import sound

pytestmark = pytest.mark.usefixtures("bands_of_this_machine")
SECONDS = int(os.environ.get("CRT_WAKE_SECONDS", "30"))  # an hour by hand


def must_be_equal(
    words: WakeWords, nets: Mapping[str, Path], made: Path, samples: Array
) -> int:
    """Compares all steps; how many words were heard."""
    rows = rows_of(samples)
    wanted = {name: probabilities(path, rows) for name, path in nets.items()}
    order = [net.name for net in words.words.nets]
    steps, found = listened(made, samples, order)
    assert len(steps) == len(rows) // words.words.rows > 0
    for i, name in enumerate(order):
        np.testing.assert_array_equal(steps[:, i], wanted[name], name)
    assert found == heard(nets, wanted, words.words.rows)
    return len(found)


def test_made_nets(tmp_path: Path) -> None:
    """Strictly compiled, with sanitizers; each net says yes and no."""
    nets = write_nets(tmp_path / "nets")
    words = build_wake_words(nets, name="listen")
    made = program(words, tmp_path / "c", *STRICT, *SANITIZE["gcc"], "-O1")
    assert must_be_equal(words, nets, made, sound(SECONDS)) > 5


@pytest.mark.parametrize(
    "target", ["rv32imc", pytest.param("cortex-m4", marks=pytest.mark.sweep)]
)
def test_on_an_emulated_core(target: str, tmp_path: Path) -> None:
    """Kernels of that core, on four seconds."""
    nets = write_nets(tmp_path / "nets")
    words = build_wake_words(nets, name="listen", target=target)
    samples = sound(4, 3)
    own = sources(words, tmp_path / "c", samples)
    include = [f"-I{INCLUDE}", f"-I{tmp_path / 'c'}"]
    image = tmp_path / "listen.elf"
    run([*compiler(CORES[target]), "-O2", *include, *own, *SOURCES,
         *link_flags(target, tmp_path), "-o", image])  # fmt: skip
    order = [net.name for net in words.words.nets]
    steps, found = printed(emulated(target, image), order)
    rows = rows_of(samples)
    wanted = {name: probabilities(path, rows) for name, path in nets.items()}
    for i, name in enumerate(order):
        np.testing.assert_array_equal(steps[:, i], wanted[name], name)
    assert found == heard(nets, wanted, words.words.rows) and found


@pytest.mark.parametrize("names", [("hello",), ("stop", "voice")])
def test_fewer_nets(tmp_path: Path, names: tuple[str, ...]) -> None:
    nets = write_nets(tmp_path / "nets", names)
    words = build_wake_words(nets)
    assert words.name == "_".join(names)
    made = program(words, tmp_path / "c", "-O1")
    assert must_be_equal(words, nets, made, sound(20, 1)) > 1


def real(*names: str) -> dict[str, Path]:
    """Nets of the field by name, or skips the test."""
    folder = models_folder() / "wake"
    for name in names:
        if not (folder / f"{name}.tflite").is_file():
            pytest.skip(f"wake/{name}.tflite is not in {models_folder()}")
    return {name: folder / f"{name}.tflite" for name in names}


def test_nets_of_the_field(tmp_path: Path) -> None:
    nets = real("okay_nabu", "vad")
    words = build_wake_words(nets, name="wake")
    made = program(words, tmp_path / "c", "-O2")
    must_be_equal(words, nets, made, sound(SECONDS))


def ram(words: WakeWords, folder: Path) -> int:
    """Bytes of RAM on a 32-bit core: the arena and the struct."""
    for file, text in words.sources().items():
        (folder / file).write_text(text)
    name = words.name
    (folder / "size.c").write_text(
        f'#include "{name}_words.h"\nchar size[sizeof(struct {name}_words)];\n'
    )
    tool, include = require("riscv64-unknown-elf-gcc"), INCLUDE
    run([tool, "-march=rv32imc", "-mabi=ilp32", "-ffreestanding", f"-I{include}",
         f"-I{folder}", "-c", folder / "size.c", "-o", folder / "size.o"])  # fmt: skip
    nm = run([require("riscv64-unknown-elf-nm"), "-S", folder / "size.o"])
    return words.report.ram.arena + int(nm.split()[1], 16)


def test_ram_of_the_field(tmp_path: Path) -> None:
    """One word and voice in 11 KB; two words, whose weights are there once, and voice
    in 16,000 bytes."""
    nets = real("okay_nabu", "vad")
    one = build_wake_words(nets, name="wake", target="rv32imc")
    for suffix in (".tflite", ".json"):
        shutil.copy(nets["okay_nabu"].with_suffix(suffix), tmp_path / f"other{suffix}")
    both = {"other": tmp_path / "other.tflite", **nets}
    two = build_wake_words(both, name="wake", target="rv32imc")
    page = (ROOT / "docs/wake-words.md").read_text()
    for words, most in ((one, 11_000), (two, 16_000)):
        assert ram(words, tmp_path) <= most
        assert f"| {words.report.ram.arena:,} |" in page
        assert f"| {ram(words, tmp_path):,} |" in page
    assert two.report.flash.weights == one.report.flash.weights


def test_what_can_be_set(tmp_path: Path) -> None:
    """Cutoffs, windows, what is enabled, and reset, in C."""
    nets = write_nets(tmp_path / "nets", ("hello", "voice"))
    words = build_wake_words(nets, name="listen")
    for file, text in words.sources().items():
        (tmp_path / file).write_text(text)
    assert NETS["hello"][3] == 5
    shutil.copy(Path(__file__).with_name("settings.c"), tmp_path / "main.c")
    flags = (*STRICT, *SANITIZE["gcc"])
    tool = require("gcc")
    run([tool, *flags, f"-I{INCLUDE}", f"-I{tmp_path}", *sorted(tmp_path.glob("*.c")),
         *runtime(tool, *flags), "-o", tmp_path / "settings"])  # fmt: skip
    assert run([tmp_path / "settings"]) == ""

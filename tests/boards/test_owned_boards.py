"""Boards that people own: their facts, their memories, their core in a simulator."""

from __future__ import annotations

import re
import subprocess
import zlib
from collections import Counter
from pathlib import Path

import pytest

import pybuild
from pybuild.boards.available import board_facts
from pybuild.boards.bench import bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.boards.device import open_device
from pybuild.boards.firmware.build import example_firmware, linker_script
from pybuild.boards.firmware.export import board_files
from pybuild.boards.simulators.qemu import machine_options
from pybuild.boards.simulators.stand_ins import STAND_INS, in_qemu, simulation
from pybuild.errors import BuildError, LimitError
from pybuild.install import boards, crt_include
from pybuild.rpc import connect
from pybuild.targets.board import board_names, load_board
from pybuild.targets.chip import all_chips
from pybuild.targets.core import CORES, GCC
from pybuild.targets.toolchain import choose_toolchain
from tests.boards import board_table
from tests.boards.devices import DIGITS, device, library
from tests.conftest import model_path
from tests.toolchains import ROOT, STRICT, require, run

OWNED = tuple(name for name in board_names() if not load_board(name).machine)
ON_CORE = tuple(n for n in OWNED if simulation(load_board(n)) == "core-simulated")
ALWAYS = ("pico", "pico2-riscv", "ek-ra8d1", "esp8266-nodemcu", "nucleo-l4r5zi")
CHIPS = {chip.name: chip for chip in all_chips()}


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [] if name in ALWAYS else [pytest.mark.sweep]


@pytest.mark.parametrize("name", [pytest.param(n, marks=_marks(n)) for n in ON_CORE])
def test_the_core_gives_the_same_bits(name: str) -> None:
    board = device(name)
    try:
        done = check_on_board(board, library(DIGITS, board), DIGITS, count=3)
    except LimitError:
        assert board.board.ram.size <= 2048
        return
    assert done.result.ok


def test_how_each_is_simulated() -> None:
    kinds = [simulation(load_board(name)) for name in board_names()]
    assert [kinds.count(k) for k in ("simulated", "core-simulated", "facts only")] == [
        12, 19, 3,
    ]  # fmt: skip
    with pytest.raises(BuildError, match="no simulator is supported for its esp32"):
        open_device("esp32-devkitc")
    with pytest.raises(BuildError) as told:
        connect("unicorn:pico")
    assert str(told.value) == (
        "unicorn:pico: the console of pico is not simulated, only its core: calls have "
        "no line to it. Hint: crt run, check and bench with --on pico; or connect the "
        "board: serial:PORT,BAUD"
    )
    with pytest.raises(
        BuildError, match="qemu:esp32-devkitc: esp32-devkitc is not sim"
    ):
        connect("qemu:esp32-devkitc")


def test_chips_have_their_facts() -> None:
    assert len(CHIPS) >= 20
    for chip in CHIPS.values():
        assert chip.source and chip.ram.size and chip.flash.size and chip.hz
        assert chip.start_hz <= chip.hz
    assert CHIPS["rp2040"].cores == 2 and CHIPS["rp2040"].core.name == "cortex-m0plus"
    h747 = CHIPS["stm32h747xi"]
    assert h747.beside is CORES["cortex-m4"] and h747.fpu == "double"
    assert h747.memories["dtcm"].size == 128 * 1024
    assert CHIPS["nrf52840"].microjoules(1_000_000) == pytest.approx(156)
    assert CHIPS["rp2040"].microjoules(1) is None


def test_what_does_not_fit_does_not_fit() -> None:
    """The memories are the chip's, wherever they lie."""
    board = device("ch32v203-evt")
    net = pybuild.load(model_path("vww_int8.tflite")).build(target="rv32imac")
    with pytest.raises(LimitError) as caught:
        bench_on_board(board, net)
    assert " than ch32v203-evt has, 20480;" in str(caught.value)


@pytest.mark.parametrize("name", OWNED)
def test_its_memories_are_in_the_linker_script(name: str) -> None:
    board = load_board(name)
    if board.core.arch not in ("arm", "riscv", "xtensa"):
        return
    script = linker_script(board, board.core, 2048)
    for memory in (board.flash, board.ram, *board.memories.values()):
        place = f"ORIGIN = 0x{memory.origin:08X}, LENGTH = {memory.size}"
        assert place in script
    if board.core.name in STAND_INS:
        moved = in_qemu(board)
        assert moved.ram.size == board.ram.size
        assert [m.size for m in moved.memories.values()] == [
            m.size for m in board.memories.values()
        ]


@pytest.mark.parametrize("name", OWNED)
def test_its_console_compiles(name: str, tmp_path: Path) -> None:
    """Also where it is not run: on the board it must be right at once."""
    board = load_board(name)
    if board.core.arch.startswith("xtensa-"):
        gcc, flags = GCC["xtensa"], ()  # whose driver is the ESP8266's
    else:
        gcc, flags = GCC[board.core.arch], board.core.gcc
    facts = [f"-DBOARD_UART=0x{board.uart_base:08X}u", f"-DBOARD_HZ={board.hz}u"]
    common = ROOT / "boards" / "common"
    run([require(gcc), *flags, *STRICT, "-O2", *facts, f"-I{common}",
         f"-I{crt_include()}", "-DCRT_NO_STRING_H", "-ffreestanding", "-c",
         board.folder / "board.c", "-o", tmp_path / "board.o"])  # fmt: skip


def test_the_boot_stage_of_the_pico_has_its_checksum() -> None:
    text = (boards() / "pico" / "board.c").read_text()
    table = text[text.index("second_stage[64]") :]
    table = table[: table.index("};")]
    words = [int(w, 16) for w in re.findall(r"0x([0-9A-F]{8})u", table)]
    *code, checksum = words
    stage = b"".join(w.to_bytes(4, "little") for w in code).ljust(252, b"\0")
    # of the ROM: that of zlib with every byte and the result the other way round
    turned = bytes(int(f"{b:08b}"[::-1], 2) for b in stage)
    other = int(f"{zlib.crc32(turned) ^ 0xFFFFFFFF:032b}"[::-1], 2)
    assert checksum == other


def test_the_pico_begins_with_its_boot_stage() -> None:
    """The files that a firmware project takes: stage, vectors, then the program."""
    board = load_board("pico")
    files = board_files(board, choose_toolchain("auto", board.core))
    assert "second_stage" in files["board.c"] and "uart/pl011.h" in files
    assert files["link.ld"].index(".boot_first") < files["link.ld"].index(".vectors")


@pytest.mark.parametrize(
    "name", ["microbit", pytest.param("mps2-an386", marks=pytest.mark.sweep)]
)
def test_a_program_ends_well_where_nobody_answers(name: str) -> None:
    """As on a board without a debugger: QEMU without semihosting."""
    device(name)
    board = load_board(name)
    made = pybuild.load(DIGITS).build(target=board.core.target, name="digits")
    firmware = example_firmware(made, board, choose_toolchain("gcc", board.core))
    qemu = require("qemu-system-arm")
    options = machine_options(board)
    options = options[: options.index("-semihosting-config")]
    command = [qemu, *options, "-kernel", str(firmware.path)]
    with pytest.raises(subprocess.TimeoutExpired) as stopped:  # it waits for reset
        subprocess.run(command, capture_output=True, timeout=2)
    assert b"digits: self-test: no error" in (stopped.value.stdout or b"")
    assert stopped.value.stderr in (None, b"")


def test_the_page_has_a_row_for_each() -> None:
    assert board_table.PAGE.read_text().endswith(board_table.section())


def test_pages_say_how_many_boards_and_chips_there_are() -> None:
    kinds = Counter(simulation(load_board(name)) for name in board_names())
    whole, core = kinds["simulated"], kinds["core-simulated"]
    page = board_table.PAGE.read_text()
    opening = f"QEMU simulates {whole} of the {kinds.total()} boards whole"
    assert opening in page and f" For {core} more," in page
    assert f", so {whole + core} are simulated." in page
    for name in ("README.md", "docs/index.md"):
        text = (ROOT / name).read_text()
        assert f" {whole + core} simulated boards" in text, name
    for name in ("docs/tour.md", "docs/index.md"):
        assert f"which of {len(all_chips())} chips" in (ROOT / name).read_text(), name


def test_facts_for_scripts() -> None:
    (facts,) = board_facts("esp32-devkitc")
    assert facts["simulation"] == "facts only"
    assert (facts["cores"], facts["fpu"], facts["hz"]) == (2, "single", 240_000_000)
    assert "a simulator: none is supported for this core" in facts["missing"]


def test_functions_of_the_run_time_of_xtensa(tmp_path: Path) -> None:
    """Beside this machine's, on two hundred thousand pairs of numbers."""
    names = re.findall(
        r"^\w+ (__\w+)\(.*\);",
        (boards() / "common" / "libgcc_xtensa.c").read_text(),
        re.M,
    )
    assert len(names) == 15
    defines = [f"-D{name}=own{name}" for name in names]
    sources = [ROOT / "tests" / "boards" / "libgcc_xtensa_test.c"]
    include = f"-I{boards() / 'common'}"
    program = tmp_path / "test"
    run([require("gcc"), "-std=c99", "-O2", *defines, include, *sources, "-o", program])
    assert run([tmp_path / "test"]) == "equal\n"

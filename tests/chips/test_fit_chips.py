"""crt fit: every chip, what a model needs there, and what would make it fit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.chips import fit as chips
from pybuild.chips.fit import ChipFit, fit
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.install import crt_include, crt_sources
from pybuild.select.core_prices import plan_key
from pybuild.targets.chip import all_chips
from pybuild.targets.target import TARGETS
from tests.boards.devices import DIGITS, device, library
from tests.graphs.quantise import samples_of, small
from tests.toolchains import require, run


@pytest.fixture(scope="module")
def digits() -> dict[str, ChipFit]:
    return {one.chip: one for one in fit(DIGITS)}


def test_all_chips_are_there_in_order(digits: dict[str, ChipFit]) -> None:
    assert len(digits) >= 20
    assert set(digits) == {chip.name for chip in all_chips()}
    assert not {"an386", "virt_rv32"} & set(digits)
    rows = [(not one.fits, one.seconds) for one in digits.values()]
    assert rows == sorted(rows)


def test_one_chip_in_figures(digits: dict[str, ChipFit]) -> None:
    one, made = digits["nrf52840"], pybuild.load(DIGITS).build(target="cortex-m4")
    ram = made.report.ram
    assert one.fits and not one.missing and not one.options
    assert one.ram.needed == ram.arena + ram.instance + chips.STACK
    assert one.ram.has == 256 * 1024
    assert one.boards == ("nano-33-ble", "nrf52840-dk")
    assert one.seconds == one.cycles / 64e6
    fast = digits["stm32l4r5zi"]  # after reset its clock has 4 MHz
    assert fast.seconds == fast.cycles / 120e6
    assert one.microjoules == pytest.approx(one.cycles * 52e-6 * 3)


@pytest.mark.parametrize(
    "board", ["nrf52840-dk", pytest.param("pico", marks=pytest.mark.sweep)]
)
def test_estimates_beside_what_is_counted(
    board: str, digits: dict[str, ChipFit]
) -> None:
    """Not exact: a planner's estimate, and a part of the code that is always there."""
    here = device(board)
    counted = bench_on_board(here, library(DIGITS, here))
    one = digits[here.board.facts.name]
    assert counted.cycles is not None
    assert 0.7 < one.cycles / counted.cycles < 1.4
    flash = counted.flash
    used = flash.runtime + flash.kernels + flash.tables + flash.weights + flash.board
    assert used < one.flash.needed < 2 * used
    ram = counted.ram
    assert ram.arena + ram.instance + ram.data + ram.program < one.ram.needed


def test_an_atmega2560_beside_simavr(
    tmp_path: Path, digits: dict[str, ChipFit]
) -> None:
    """Cycles by its Timer1, which counts every 1024th; constants are in its RAM."""
    gcc, simulator = require("avr-gcc"), require("simavr")
    made = pybuild.load(DIGITS).build(target="avr", name="digits")
    for file, text in made.files().items():
        if "/" not in file and file.endswith((".c", ".h")):
            (tmp_path / file).write_text(str(text))
    names = ("array", "copy", "crc", "error", "graph")
    names += ("lockstep", "push", "run", "state")
    needed = [path for path in crt_sources() if path.stem in names]
    main = Path(__file__).with_name("avr_cycles.c")
    flags = ["-mmcu=atmega2560", "-std=c99", "-Os", "-ffunction-sections"]
    program = tmp_path / "cycles.elf"
    run([gcc, *flags, "-fdata-sections", "-Wl,--gc-sections", f"-I{crt_include()}",
         f"-I{tmp_path}", *needed, *sorted(tmp_path.glob("*.c")), main,
         "-o", program])  # fmt: skip
    told = run([simulator, "-m", "atmega2560", "-f", "16000000", program])
    counted = 1024 * int(re.findall(r"error 0, ticks (\d+)", told)[0])
    one = digits["atmega2560"]
    assert 0.8 < one.cycles / counted < 1.25
    flash, ram = made.report.flash, made.report.ram
    held = ram.arena + ram.instance + flash.weights + flash.tables
    assert 0 <= one.ram.needed - held - chips.STACK < 16  # of another name
    sizes = run([require("avr-size"), program]).splitlines()[1].split()
    text, data, bss = map(int, sizes[:3])
    assert data + bss < one.ram.needed and text + data < one.flash.needed


def _wide(tmp_path: Path) -> Path:
    """A float net of 96 KB of weights, and tensors of 16 and 12 KB."""
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    made = onnx.helper
    tensors = [
        onnx.numpy_helper.from_array(rng.normal(size=size).astype(np.float32), name)
        for name, size in (("a", (16, 4, 3, 3)), ("b", (6, 4096)))
    ]
    nodes = [
        made.make_node("Conv", ["x", "a"], ["c"], pads=[1, 1, 1, 1]),
        made.make_node("Relu", ["c"], ["r"]),
        made.make_node("Flatten", ["r"], ["f"]),
        made.make_node("Gemm", ["f", "b"], ["y"], transB=1),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = made.make_graph(
        nodes, "wide",
        [made.make_tensor_value_info("x", kind, (1, 4, 16, 16))],
        [made.make_tensor_value_info("y", kind, (1, 6))], tensors,
    )  # fmt: skip
    file = tmp_path / "wide.onnx"
    onnx.save(made.make_model(graph, opset_imports=[made.make_opsetid("", 17)],
                              ir_version=8), file)  # fmt: skip
    return file


def test_cores_that_differ_in_name_alone_share_a_plan() -> None:
    keys = {name: plan_key(target) for name, target in TARGETS.items()}
    same = [("cortex-m4", "cortex-m7"), ("cortex-m4", "cortex-m33")]
    same += [("xtensa", "rv32ec")]
    assert all(keys[one] == keys[other] for one, other in same)
    assert keys["cortex-m3"] != keys["cortex-m4"] and keys["esp32"] != keys["xtensa"]
    model = pybuild.load(DIGITS)
    one, other = (model.build(target=name).report for name in same[0])
    assert (one.kernels, one.ram, one.flash) == (other.kernels, other.ram, other.flash)


def test_processes_give_what_one_process_gives(
    monkeypatch: pytest.MonkeyPatch, digits: dict[str, ChipFit]
) -> None:
    names = ("rp2040", "nrf52840", "imxrt1062", "atmega2560")
    few = tuple(chip for chip in all_chips() if chip.name in names)
    monkeypatch.setattr(chips, "all_chips", lambda: few)
    monkeypatch.setattr(chips, "_LONG", 0.0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    found = fit(DIGITS)
    assert {one.chip for one in found} == {*names}
    assert all(one == digits[one.chip] for one in found)
    with pytest.raises(BuildError):
        fit(DIGITS, ram_limit=16)


def test_what_is_missing_and_what_would_help(tmp_path: Path) -> None:
    found = {one.chip: one for one in fit(_wide(tmp_path))}
    tight = found["ch32v203c8"]
    assert not tight.fits
    assert any(text.endswith(" bytes of flash") for text in tight.missing)
    assert tight.options == ("--quantise SAMPLES",)
    small = found["gd32vf103cb"]
    assert small.fits == (not small.missing)
    hopeless = found["ch32v003f4"]
    assert hopeless.missing and hopeless.options == ()


def test_the_option_that_is_named_makes_it_fit(
    monkeypatch: pytest.MonkeyPatch, digits: dict[str, ChipFit]
) -> None:
    (chip,) = (one for one in all_chips() if one.name == "nrf52840")
    ram = replace(chip.ram, size=digits["nrf52840"].ram.needed - 300)
    monkeypatch.setattr(chips, "all_chips", lambda: (replace(chip, ram=ram),))
    (tight,) = fit(DIGITS)
    assert tight.missing == ("300 bytes of RAM",) and not tight.fits
    option, _, limit = tight.options[0].partition(" ")
    assert option == "--ram-limit"
    (again,) = fit(DIGITS, ram_limit=int(limit))
    assert again.fits and again.cycles > tight.cycles
    (slow,) = fit(DIGITS, latency=0.9 * tight.seconds)
    assert slow.options == tight.options and len(slow.missing) == 2
    (whole,) = fit(DIGITS, plan="whole")
    assert whole.options != tight.options


def test_the_verdict_names_the_option_with_which_most_chips_fit(
    digits: dict[str, ChipFit], monkeypatch: pytest.MonkeyPatch
) -> None:
    (chip,) = (one for one in all_chips() if one.name == "nrf52840")
    needed = digits["nrf52840"].ram.needed
    rams = [replace(chip.ram, size=needed - less) for less in (0, 100, 300)]
    made = tuple(replace(chip, ram=ram, name=f"c{ram.size}") for ram in rams)
    monkeypatch.setattr(chips, "all_chips", lambda: made)
    found = fit(DIGITS)
    assert [one.fits for one in found] == [True, False, False]
    for one in found[1:]:
        assert one.options == one.ways[0] and ("--optimise ram",) in one.ways
    assert chips.verdict(found[:1]) == "fits 1 of 1 chips"
    said = chips.verdict(found)
    assert said.startswith("fits 1 of 3 chips; 3 with --")
    assert not re.search(r"ram-limit \d", said)


def test_a_net_that_was_quantised_here_may_have_integers_at_its_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = pybuild.quantise(small(), samples_of(small()).inputs).model
    (chip,) = (one for one in all_chips() if one.name == "nrf52840")
    monkeypatch.setattr(chips, "all_chips", lambda: (chip,))
    (roomy,) = fit(made, input="keep")
    ram = replace(chip.ram, size=roomy.ram.needed - 100)
    monkeypatch.setattr(chips, "all_chips", lambda: (replace(chip, ram=ram),))
    (tight,) = fit(made, input="keep")
    assert ("--boundary int8",) in tight.ways


def test_latency(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["fit", str(DIGITS), "--latency", "1ms", "--json"]
    assert main(words) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["latency"] == 0.001 and len(facts["chips"]) >= 20
    slow = [one for one in facts["chips"] if one["seconds"] > 0.001]
    assert slow and not any(one["fits"] for one in slow)
    assert all(any("too slow" in t for t in one["missing"]) for one in slow)
    few = [chip for chip in all_chips() if chip.name == "nrf52840"]
    monkeypatch.setattr(chips, "all_chips", lambda: few)
    assert main(["fit", str(DIGITS)]) == 0
    shown = capsys.readouterr().out
    assert "nrf52840" in shown and shown.endswith("in all fits 1 of 1 chips\n")
    assert "not    counted: the flash's wait states" in shown
    waits = {one["chip"]: one["wait_states"] for one in facts["chips"]}
    assert (waits["stm32l4r5zi"], waits["stm32f100rb"], waits["nrf52840"]) == (
        5,
        0,
        None,
    )
    with pytest.raises(BuildError, match="'soon' is not a time"):
        fit(DIGITS, latency="soon")


def test_equal_cores_compute_together_where_a_chip_has_them(
    digits: dict[str, ChipFit],
) -> None:
    """Not on one core, nor where a second core is another one; each has its stack. The
    code of two cores has 1.2 KB; kernels with slices may be up to 1 KB smaller."""
    one, two = digits, {chip.chip: chip for chip in fit(DIGITS, cores=2)}
    shared = {name for name, chip in two.items() if chip.cores == 2}
    assert shared == {"esp32", "esp32s3", "rp2040", "rp2350", "rp2350_riscv"}
    for name in set(two) - shared:
        assert two[name] == one[name]
    for name in shared:
        assert two[name].seconds < 0.75 * one[name].seconds
        assert two[name].ram.needed > one[name].ram.needed + 900
        assert two[name].flash.needed > one[name].flash.needed + 200


def test_the_table_has_room_in_100_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["fit", str(DIGITS), "--latency", "1ms"]) == 0
    shown = capsys.readouterr().out
    table, _, notes = shown.partition("lacks  ")
    assert "\N{HORIZONTAL ELLIPSIS}" not in table
    assert len(table.splitlines()) == len(all_chips()) + 4
    assert "too slow" in notes and "RAM    with stack, in KB" in notes

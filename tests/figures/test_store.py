"""What is kept of figures: the same program keeps its figure whatever its functions are
called, another one is measured anew."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import pybuild
from pybuild.boards.device import Device
from pybuild.boards.firmware.fit import Program
from tests.boards.devices import device
from tests.figures import keys
from tests.figures.counted import counted, program_key
from tests.figures.store import Facts, Ready, Store
from tests.toolchains import require, run

SOURCE = """
int input, output;
static __attribute__((noinline)) int FUNCTION(int x) { return 3 * x STEP; }
void _start(void) { output = FUNCTION(input); for (;;) { } }
"""


def linked(folder: Path, function: str, step: str = "+ 1") -> str:
    """The key of a program for a Cortex-M4."""
    require("arm-none-eabi-gcc")
    source, program = folder / "main.c", folder / "main.elf"
    source.write_text(SOURCE.replace("FUNCTION", function).replace("STEP", step))
    flags = ["-mcpu=cortex-m4", "-mthumb", "-O2", "-nostdlib", "-Wl,-Ttext=0x8000"]
    run(["arm-none-eabi-gcc", *flags, str(source), "-o", str(program)])
    return keys.image(program)


def test_a_function_by_another_name_is_the_same_program(tmp_path: Path) -> None:
    assert linked(tmp_path, "first") == linked(tmp_path, "of_quite_another_name")


def test_another_instruction_is_another_program(tmp_path: Path) -> None:
    assert linked(tmp_path, "first") != linked(tmp_path, "first", "- 1")


def key_on(on: Device, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of one program on that device."""
    b = pybuild.GraphBuilder("net")
    x = b.input("x", (4,))
    b.output(b.op("add", x, x), "y")
    library = pybuild.build(b.build(), name="net", target="cortex-m4")
    monkeypatch.setattr(keys, "image", lambda path: "the same bytes")
    firmware = SimpleNamespace(path=Path("program.elf"))
    made = SimpleNamespace(library=library, firmware=firmware)
    return program_key(on, cast(Program, made))


def test_another_compiler_or_board_is_another_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on = device("mps2-an386")
    newer = replace(on, toolchain=replace(on.toolchain, version="99.0"))
    moved = replace(on, board=replace(on.board, name="other"))
    found = [key_on(one, monkeypatch) for one in (on, on, newer, moved)]
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_another_version_of_a_package_is_another_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keys, "_package", lambda: ("pybuild", {}))
    found = []
    for version in ("1.0", "1.0", "1.1"):
        monkeypatch.setattr(keys, "versions", lambda v=version: {"numpy": v})
        found.append(keys.sources.__wrapped__("tests.bench.costs"))
    assert found[0] == found[1] != found[2]


# ---- sources ------------------------------------------------------------------

PYTHON = '''"""Adds."""

def total(first, second):
    """The sum."""
    return first - second  # not really
'''


def of_sources(folder: Path, *texts: str) -> str:
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}.py").write_text(text)
    return keys.without_names(sorted(folder.iterdir()))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("total", "difference", True),
        ("first", "minuend", True),
        ('    """The sum."""\n', "", True),
        ("# not really", "# yes", True),
        ("first - second", "second - first", False),
        ("first - second", "first + second", False),
        ("first - second", "first - len", False),
    ],
)
def test_sources_without_names(tmp_path: Path, old: str, new: str, same: bool) -> None:
    assert old in PYTHON
    before = of_sources(tmp_path / "a", PYTHON)
    after = of_sources(tmp_path / "b", PYTHON.replace(old, new))
    assert (before == after) is same


def test_a_name_is_one_in_all_files(tmp_path: Path) -> None:
    uses = "from a import total, other\n\ndef other(x):\n    return total(x)\n"
    before = of_sources(tmp_path / "a", PYTHON, uses)
    everywhere = [text.replace("total", "made") for text in (PYTHON, uses)]
    assert of_sources(tmp_path / "b", *everywhere) == before
    assert of_sources(tmp_path / "c", PYTHON, everywhere[1]) != before
    swapped = uses.replace("total(x)", "other(x)")
    assert of_sources(tmp_path / "d", PYTHON, swapped) != before


# ---- the store ----------------------------------------------------------------


class Counter:
    """How often something was measured."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Facts:
        self.calls += 1
        return {"rows": [[self.calls]]}


def test_a_figure_of_the_same_key_is_taken(tmp_path: Path) -> None:
    file, measure = tmp_path / "figures.json", Counter()
    for key, cold, calls in (
        ("a", False, 1), ("a", False, 1), ("b", False, 2), ("b", True, 3)
    ):  # fmt: skip
        store = Store(file, cold)
        assert store.measured("m: one", key, measure) == {"rows": [[calls]]}
        store.save(whole=True)
        assert measure.calls == calls


def test_what_nobody_asks_for_goes_with_a_run_of_all(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    store = Store(file)
    for name in ("one", "two"):
        store.measured(f"m: {name}", "a", Counter())
    store.save(whole=True)
    for whole, names in ((False, {"m: one", "m: two"}), (True, {"m: one"})):
        store = Store(file)
        store.measured("m: one", "a", Counter())
        store.save(whole)
        assert json.loads(file.read_text()).keys() == names


def test_figures_within_a_table_stay_with_it(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"

    def table(store: Store) -> Facts:
        return store.measured("inner: count", "a", Counter())

    for _ in range(2):
        store = Store(file)
        store.measured("m: table", "a", functools.partial(table, store))
        store.save(whole=True)
        assert json.loads(file.read_text()).keys() == {"inner: count", "m: table"}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"m: one": 1}', '{"m: one": {"key": 1, "value": {}}}']
)
def test_a_broken_file_is_told_and_all_measured_anew(
    tmp_path: Path, text: str, capsys: Any
) -> None:
    file, measure = tmp_path / "figures.json", Counter()
    file.write_text(text)
    store = Store(file)
    assert "is broken" in capsys.readouterr().err
    assert store.measured("m: one", "a", measure) == {"rows": [[1]]}
    store.save(whole=True)
    Store(file).measured("m: one", "a", measure)
    assert measure.calls == 1 and not capsys.readouterr().err


def prepared(number: int) -> Ready:
    """As of a program that is the same for two numbers."""
    facts = {"kernels": [f"kernel_{number}"]}
    return Ready(f"{number // 2}", facts, lambda: {"instructions": number})


def test_a_build_of_the_same_bytes_keeps_its_count(tmp_path: Path) -> None:
    """What is read off the build, such as names of kernels, is that of the new one."""
    file = tmp_path / "figures.json"
    for number, counts in ((2, 2), (3, 2), (4, 4)):
        store = Store(file)
        found = counted(store.all(prepared, {"m: one": (number,)})["m: one"])
        assert found.instructions == counts
        assert found.kernels == (f"kernel_{number}",)
        store.save(whole=True)
        assert store.new == (number != 3)

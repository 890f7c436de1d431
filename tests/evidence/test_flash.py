"""Bits of weights and tables that flip in flash are found by NAME_verify, in C and in
an object, on an emulated Cortex-M4; without the option nothing of it is there."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pybuild
from pybuild.emit.tables.sums import sums_of
from pybuild.model import Model
from tests.evidence.m4 import linked
from tests.graphs.networks import Network
from tests.toolchains import ROOT, require_module

if TYPE_CHECKING:
    from tests.objects.simulated import Machine

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
CHECKSUM = -22


def smallest() -> Model:
    """Of a few hundred bytes, with padding, weights and a table of values."""
    net = Network("net", (1, 3, 3, 2), "int8", 7)
    net.conv("stem", 2)
    net.add("reshape", "flat", (1, 18))
    net.dense("logits", 2)
    return net.model()


def machine(model: Model, folder: Path, emit: str, **options: object) -> Machine:
    require_module("unicorn")
    from tests.objects.simulated import Machine

    made = {"target": "cortex-m4", "name": "net", "emit": emit, "verify": True}
    model.build(folder / emit, **made, **options)
    return Machine("cortex-m4", linked(folder / emit, "m4.c", folder / f"{emit}.elf"))


def words(core: Machine, at: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"<{count}I", core.uc.mem_read(at, 4 * count))


def pieces(core: Machine) -> list[tuple[int, int, int]]:
    """All that a pass looks at: (address, bytes, the array whose turn finds it)."""
    both = core.symbols["net_sums"]
    first, again, count = words(core, both, 3)
    found = [(both, 24, 0), (first, 16 * count, -1), (again, 16 * count, -1)]
    for index in range(count):
        data, copy, size, _ = words(core, first + 16 * index, 4)
        found += [(data, size, index)] + [(copy, size, index)] * (copy != 0)
    return found


def flipped(core: Machine, address: int, bit: int) -> None:
    (byte,) = core.uc.mem_read(address, 1)
    core.uc.mem_write(address, bytes([byte ^ 1 << bit]))


def test_a_model_is_as_it_was_built(tmp_path: Path) -> None:
    core = machine(pybuild.load(DIGITS), tmp_path, "c", push=["image"])
    assert core.call("verify_all") == 0
    looked = sum(size for _, size, index in pieces(core) if index >= 0)
    slices = 0
    while core.call("passes") == 0:
        assert core.call("verify_slice", 100) == 0
        slices += 1
    header = (tmp_path / "c" / "net.h").read_text()
    (size,) = [int(x.split()[-1][:-1]) for x in header.split("\n") if "VERIFY_BY" in x]
    assert slices == -(-size // 100) and looked > size
    assert core.counted("verify_all") < 12 * size  # docs/security.md


@pytest.mark.parametrize("emit", ["c", "obj"])
def test_every_bit_of_a_small_model_is_found(emit: str, tmp_path: Path) -> None:
    core = machine(smallest(), tmp_path, emit)
    assert core.call("verify_all") == 0
    bits = missed = 0
    for start, size, index in pieces(core):
        for at in range(8 * size):
            address, turn = start + at // 8, index
            if index < 0:
                turn = at // 8 // 16
            flipped(core, address, at % 8)
            missed += core.call("verify_array", turn) != CHECKSUM
            flipped(core, address, at % 8)
            bits += 1
    assert missed == 0 and bits > 10_000
    assert core.call("verify_all") == 0


@pytest.mark.parametrize("emit", ["c", "obj"])
def test_bits_of_a_large_model_are_found_in_slices(emit: str, tmp_path: Path) -> None:
    """Of a model for two cores: what each core computes is in tables, too."""
    model = pybuild.load(DIGITS)
    core = machine(model, tmp_path, emit, params=["conv_w"], cores=2)
    chance, every = random.Random(24), pieces(core)
    own = [core.symbols[f"net_{word}"] for word in ("slices", "slice_args")]
    of_cores = [piece for piece in every if piece[0] in own]
    assert len(of_cores) == 2
    for start, size, _ in [*chance.sample(every, 10), *of_cores]:
        address, bit = start + chance.randrange(size), chance.randrange(8)
        flipped(core, address, bit)
        before, found = core.call("passes"), 0
        while core.call("passes") == before:
            found += core.call("verify_slice", 700) == CHECKSUM
            assert found < 200
            if start == core.symbols["net_sums"] and found:
                break
        assert found, hex(address)
        flipped(core, address, bit)
    assert core.call("verify_all") == 0


def test_models_of_an_image_verify_what_they_share(tmp_path: Path) -> None:
    models = {"a": smallest(), "b": smallest()}
    image = pybuild.build_image(models, tmp_path, name="net", verify=True)
    shared = {c.symbol for c in image.pool.constants}
    for tables in image.pool.models:
        assert shared <= {row.symbol for row in sums_of(tables)}


def test_without_the_option_nothing_of_it_is_there(tmp_path: Path) -> None:
    smallest().build(tmp_path, name="net")
    files = {p.name: p.read_text() for p in tmp_path.rglob("*.[ch]")}
    assert not [name for name, text in files.items() if "verify" in text]
    assert not {"verify.c", "verify.h", "crc.c"} & set(files)

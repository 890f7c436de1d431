"""Options of a build on boards: parameters, packed weights, lazy tensors and devices
give the same bits as on this machine, and lie where they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.boards.device import firmware_of
from pybuild.cli import main
from pybuild.verify.check import check
from tests.boards.devices import DIGITS, device
from tests.graphs.networks import Network

MODEL = pybuild.load(DIGITS)
ON_DEVICE = {"conv2d": 1, "input:image": 1, "output:scores": 1}
OPTIONS: dict[str, dict[str, Any]] = {
    "parameters": {"params": "replaceable", "lazy": ["scores"]},
    "numbers": {"params": "replaceable", "names": "ids", "input": "keep"},
    "devices": {"target": {0: "cortex-m4", 1: "cortex-m3"}, "place": ON_DEVICE,
                "lazy": ["image"], "params": "replaceable"},
    "object": {"emit": "obj", "params": "replaceable", "lazy": ["image"]},
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_same_bits_as_here(options: dict[str, Any]) -> None:
    board = device("mps2-an386", "gcc")
    library = MODEL.build(**{"target": "cortex-m4", **options})
    assert check_on_board(board, library, DIGITS, count=3).result.ok


@pytest.mark.parametrize("name", ["devices", "parameters"])
def test_every_tensor_is_the_same(name: str) -> None:
    """On this machine too, where the CPU does the work of devices."""
    board = device("mps2-an386", "gcc")
    library = MODEL.build(**{"target": "cortex-m4", **OPTIONS[name]})
    done = check_on_board(board, library, DIGITS, count=1, per_layer=True)
    assert done.result.ok and done.result.tensors == 5
    here = check(DIGITS, library, ["llvm"], "numpy", samples=1, per_layer=True)
    assert here.ok


def _compressible() -> Network:
    """A layer whose weights are mostly alike."""
    net = Network("packed", (1, 8, 8, 4), "int8", 0)
    net.conv("wide", 24)
    net.constants["wide/w"][:20] = 7
    return net


@pytest.mark.parametrize("compress", ["lz4", "lz4-layer"])
def test_packed_weights_are_unpacked(compress: str) -> None:
    board = device("mps2-an386", "gcc")
    model = _compressible().model()
    plain = bench_on_board(board, model.build(target="cortex-m4"))
    library = model.build(target="cortex-m4", compress=compress)
    assert check_on_board(board, library, "packed.test", count=2).result.ok
    packed = bench_on_board(board, library)
    assert packed.flash.weights < plain.flash.weights - 300
    grown = (packed.ram.data, packed.ram.arena)["layer" in compress]
    was = (plain.ram.data, plain.ram.arena)["layer" in compress]
    assert grown >= was + 864  # bytes of the weights


def test_a_parameter_image_is_in_flash() -> None:
    board = device("mps2-an386", "gcc")
    library = MODEL.build(target="cortex-m4", params="replaceable")
    symbols = firmware_of(board, library).elf.by_name
    flash = board.board.flash
    at = symbols["digits_int8_params_image"]
    assert at.size >= len(library.image())
    assert flash.origin <= at.address < flash.origin + flash.size


def test_verbs_take_the_options_here_too(tmp_path: Any) -> None:
    words = ["--lazy", "image", "--lazy", "scores", "--params", "replaceable"]
    words += ["--device", "1=host", "--place", "conv2d=1", "--json"]
    given = tmp_path / "x.npz"
    np.savez(given, image=np.ones((1, 8, 8, 1), np.int8))
    for verb in (["run", "--data", str(given)], ["check", "--samples", "2"],
                 ["bench", "--runs", "2"], ["debug"]):  # fmt: skip
        assert main([verb[0], str(DIGITS), *verb[1:], *words]) == 0


@pytest.mark.parametrize("options", ["parameters", "devices"])
def test_a_net_of_the_name_model(options: str) -> None:
    """As model.tflite has; the runner calls its own macros after the model, too."""
    library = MODEL.build(
        **{"target": "cortex-m4", **OPTIONS[options], "name": "model"}
    )
    assert check_on_board(
        device("mps2-an386", "gcc"), library, DIGITS, count=1
    ).result.ok

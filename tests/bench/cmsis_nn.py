"""Every layer that was counted of CMSIS-NN beside ours, as a table."""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.boards.device import open_device
from pybuild.frontends.tflite import load
from pybuild.model import Model
from tests.bench import cmsis_layers
from tests.bench.cmsis_layers import Layer, layers
from tests.bench.costs import Row, Table
from tests.boards.devices import CORES as BOARDS
from tests.figures.counted import Counted, counted, or_refused
from tests.figures.store import Ready, store

CORES = ("cortex-m4", "cortex-m55")


def every_layer() -> Table:
    """Theirs and ours on each core."""
    seen = costs_of({one["name"]: one for one in layers()})
    rows = [_row(one, seen) for one in layers()]
    says = (
        "Instructions of one call of CMSIS-NN 99f736a (gcc 12.2 -O3; where its counts "
        "are from: `tests/bench/cmsis_nn.toml`) and of our kernels for a .tflite of "
        "that one layer, by `crt bench` of a default build with `--plan whole`, C by "
        "gcc: the rows of its layers, without the runtime's. 16x8: activations of "
        "int16; w4: weights of int4; b: batch; without theirs: it has no such function."
    )
    columns = (
        "operator", "layer", "M4, theirs", "ours", "ratio", "M55, theirs", "ours ",
        "ratio ",
    )  # fmt: skip
    return Table("Beside CMSIS-NN, every layer", says, columns, tuple(rows))


def _row(one: Layer, seen: Mapping[tuple[str, str], Counted]) -> Row:
    figures: list[object] = []
    for core in CORES:
        ours, theirs = seen[one["name"], core], one["theirs"].get(core)
        spent = ours.kernel_instructions
        ratio = f"{spent / theirs:.2f}" if theirs and not ours.refused else ""
        figures += [theirs or "", ours.refused or spent, ratio]
    return one["operator"], one["name"], *figures


def costs_of(some: Mapping[str, Layer]) -> dict[tuple[str, str], Counted]:
    """What these layers take on both cores."""
    each = {(name, core): (name, core) for name in some for core in CORES}
    named = {f"{__name__}: {', '.join(way)}": way for way in each}
    found = store().all(_ready, named)
    return {way: counted(found[what]) for what, way in named.items()}


def _ready(name: str, core: str) -> Ready:
    one = next(one for one in layers() if one["name"] == name)
    graph = load("layer.tflite", cmsis_layers.file(one), {})
    model = Model("layer.tflite", graph, "litert", "0" * 64)
    device = open_device(BOARDS[core], "gcc", "qemu", core)
    return or_refused(
        lambda: (device, model.build(name="layer", target=core, plan="whole"))
    )

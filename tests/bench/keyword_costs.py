"""What examples/keyword hears, and what it costs on a simulated board, as tables."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import open_device
from pybuild.features import log_mel
from tests.bench.costs import Table
from tests.conftest import ROOT
from tests.features.nets import wakeword

BOARD, TARGET, HZ = "mps2-an386", "cortex-m4", 16000
EACH, ON_BOARD = 40, 2  # recordings of a word: on this machine, on the board


@cache
def example(name: str = "listen", of: str = "keyword") -> ModuleType:
    """A script of an example, as it stands there."""
    folder = str(ROOT / "examples" / of)
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def heard() -> Table:
    listen = example()
    real, whole = listen.chains()
    samples, words, _ = example("sounds").recordings(EACH, listen.SEED)
    rows: list[tuple[object, ...]] = []
    for name, net in (("float32", real), ("int8", whole)):
        made = [*map(listen.Compiled(net), samples)]
        count = sum(listen.right(m, w) for m, w in zip(made, words, strict=True))
        rows.append((f"{name}, this machine", count, len(words), ""))
    board = listen.Board(whole)
    samples, words, _ = example("sounds").recordings(ON_BOARD, listen.SEED)
    made, twins = [[run(one) for one in samples] for run in (board, whole)]
    count = sum(listen.right(m, w) for m, w in zip(made, words, strict=True))
    alike = all(
        (m[n] == t[n]).all() for m, t in zip(made, twins, strict=True) for n in t
    )
    rows.append((f"int8, {BOARD}", count, len(words), "yes" if alike else "NO"))
    says = (
        "Recordings of which exactly the word is heard that they are, of `silence` "
        "none; every output of every run on the board beside the numpy twin's."
    )
    columns = ("network", "right", "of", "bits of numpy")
    return Table("Words heard", says, columns, tuple(rows))


def costs() -> Table:
    listen = example()
    rows: list[tuple[object, ...]] = []
    models = {
        "keyword, stream": listen.chains(True)[1].model,
        "keyword, whole window": listen.chains(False)[1].model,
        "streaming wakeword": pybuild.chain(log_mel(), wakeword(), stream=True).model,
    }
    for name, model in models.items():
        library = pybuild.build(model, name="listener", target=TARGET)
        device = open_device(BOARD, "gcc", "auto", TARGET)
        found = bench_on_board(device, library)
        cycles = found.cycles or 0
        runs = HZ / model.graph.tensor("samples").size
        ram = library.tables.arena_bytes + library.tables.instance_bytes
        flash = found.flash
        rows.append((
            name, found.instructions, cycles, f"{cycles * runs / 1e6:.2f} M",
            ram, found.ram.stack, flash.kernels + flash.tables + flash.weights,
        ))  # fmt: skip
    says = (
        "`examples/keyword` with features and decision, a run each 20 ms of sound, C "
        "by gcc on a simulated Cortex-M4; cycles are estimated. `stream`: only what "
        "new rows add; `whole window`: the network is computed anew each time; "
        "`streaming wakeword`: a network of the layers of MLPerf Tiny's, with "
        "`log_mel()`."
    )
    columns = (
        "network", "instructions a run", "cycles a run", "cycles a second of sound",
        "RAM", "stack", "flash",
    )  # fmt: skip
    return Table("Words on a board", says, columns, tuple(rows))

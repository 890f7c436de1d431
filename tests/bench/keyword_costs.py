"""What examples/keyword hears, and what it costs on a simulated board, as tables."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType

import pybuild
from pybuild.boards.device import open_device
from pybuild.entry import model_of
from pybuild.features import log_mel, micro_frontend, motion
from pybuild.library import Library
from tests.bench.costs import Table
from tests.conftest import ROOT
from tests.features.nets import wakeword
from tests.features.time_nets import gru, kept_gru, quantised_gru, tcn
from tests.figures.counted import Counted, counted, ready
from tests.figures.store import store
from tests.frontends.tflite.signal.preprocessor import preprocessor

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


def _figures(what: str, library: Library) -> tuple[int, int, int, int, int]:
    """Instructions and cycles of a run, bytes of RAM, of stack, of flash."""
    found = on_board(__name__, what, library)
    ram, flash = found.arena + found.instance, found.code + found.tables
    return (
        found.instructions, found.cycles or 0, ram, found.stack, flash + found.weights
    )  # fmt: skip


def on_board(group: str, what: str, library: Library) -> Counted:
    """An inference on the board, kept by the bytes of its program."""
    one = ready(open_device(BOARD, "gcc", "auto", TARGET), library)
    value = store().measured(f"{group}: {what}", one.key, one.measure)
    return counted(one.facts | value)


def costs() -> Table:
    listen = example()
    rows: list[tuple[object, ...]] = []
    models = {
        "keyword, stream": listen.chains(True)[1].model,
        "keyword, whole window": listen.chains(False)[1].model,
        "streaming wakeword": pybuild.chain(log_mel(), wakeword(), stream=True).model,
    }
    for features in (log_mel(), micro_frontend()):
        models[f"`{features.graph.name}()` alone"] = model_of(features.graph)
    models["preprocessor of micro_speech, int8"] = model_of(preprocessor("int8").data)
    for name, model in models.items():
        library = pybuild.build(model, name="listener", target=TARGET)
        instructions, cycles, *memory = _figures(name, library)
        sampled = model.graph.sampled  # the preprocessor takes whole windows
        runs = HZ / (model.graph.tensor(sampled).size if sampled else 320)
        second = f"{int(cycles) * runs / 1e6:.2f} M"
        rows.append((name, instructions, cycles, second, *memory))
    says = (
        "`examples/keyword` with features and decision, a run each 20 ms of sound, C "
        "by gcc on a simulated Cortex-M4; cycles are estimated. `stream`: only what "
        "new rows add; `whole window`: the network is computed anew each time; "
        "`streaming wakeword`: a network of the layers of MLPerf Tiny's, with "
        "`log_mel()`, of whose RAM 960 bytes are the window of samples; "
        "`micro_frontend()` has a run each 10 ms."
    )
    columns = (
        "network", "instructions a run", "cycles a run", "cycles a second of sound",
        "RAM", "stack", "flash",
    )  # fmt: skip
    return Table("Words on a board", says, columns, tuple(rows))


def over_time() -> Table:
    steps = 1 + 2 * sum((1, 2, 4, 8))  # the window of the TCN

    def built(model: object, **options: list[str]) -> Library:
        return pybuild.build(model, name="net", target=TARGET, **options)

    shaken = motion(rate=100, window=128, hop=64, axes=3, bands=6, scale=1 / 8192)
    made = {
        "TCN, int8, whole window": built(tcn()),
        "TCN, int8, stream": built(tcn(), stream=["1"]),
        "the same behind `log_mel()`": built(
            pybuild.chain(log_mel(), tcn(), stream=True)
        ),
        f"GRU, float32, {steps} steps": built(pybuild.load(gru(steps))),
        "GRU, float32, one step": built(kept_gru()),
        "GRU, int8, one step": built(quantised_gru()),
        "the same behind `log_mel()`, int8": built(
            pybuild.chain(log_mel(), quantised_gru())
        ),
        "`log_mel()` alone": built(log_mel().graph),
        "`motion()` of 64 new readings": built(shaken.graph),
    }
    rows: list[tuple[object, ...]] = []
    for name, library in made.items():
        graph = library.plan.graph
        kept = sum(graph.tensor(state).bytes for state in graph.state)
        macs = sum(row.macs for row in library.report.layers)
        instructions, cycles, ram, stack, flash = _figures(name, library)
        rows.append((name, macs, instructions, cycles, ram, kept, stack, flash))
    says = (
        "A run of what goes on over time, C by gcc on a simulated Cortex-M4; cycles "
        "are estimated. TCN: four dilated convolutions of 32 channels and rows added, "
        f"over {steps} frames of 40 numbers; GRU: 32 numbers of state, of such frames. "
        "`tests/features/test_time_nets.py` holds that results have the bits of the "
        "whole, and that of a new frame only its own multiplications are done. "
        "Features of motion: 128 readings of three axes to 24 numbers. RAM with state."
    )
    columns = (
        "network", "multiplications", "instructions a run", "cycles a run", "RAM",
        "of it state", "stack", "flash",
    )  # fmt: skip
    return Table("Over time on a board", says, columns, tuple(rows))

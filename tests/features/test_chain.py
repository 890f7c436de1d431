"""Features, net and decision as one graph of samples: streams are windows by the bit,
pieces of any size are whole runs, in numpy, C, LLVM and on an emulated core.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import open_device
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.features import Decision, log_mel
from pybuild.install import crt_include, crt_sources
from pybuild.library import Library
from pybuild.targets.core import CORES
from tests.boards.programs import compiler, emulated, link_flags
from tests.features.listening import drawn_chunks, listening, wanted
from tests.features.nets import (
    BANDS,
    DECISION,
    HOP,
    chains,
    conv_net,
    dense_net,
    features,
    sound,
    wakeword,
)
from tests.toolchains import SANITIZE, STRICT, require, run

NAMES = tuple(chains())
COMPILED = ("window", "some_rows", "one_row", "stream")
PCM = sound(4000, 7)
CHUNKS = drawn_chunks(len(PCM), 900)
# traps need no run-time library, which Debian packs apart
FLAGS = {
    "gcc": SANITIZE["gcc"],
    "clang": ("-fsanitize=undefined", "-fsanitize-trap=all"),
}


@cache
def twin(name: str) -> dict[str, Array]:
    return chains()[name](PCM)


def told() -> str:
    samples = {name: chains()[name].samples for name in COMPILED}
    return wanted({name: twin(name) for name in COMPILED}, samples, CHUNKS)


def _libraries(target: str) -> dict[str, Library]:
    return {
        name: pybuild.build(chain, name=name, target=target)
        for name, chain in chains().items()
        if name in COMPILED
    }


def _sources(target: str, folder: Path) -> list[Path]:
    made = _libraries(target)
    (folder / "main.c").write_text(listening(made, PCM, CHUNKS))
    for library in made.values():
        for file, text in library.sources().items():
            (folder / file).write_text(text)
    return sorted(folder.glob("*.c"))


@pytest.mark.parametrize("name", NAMES)
def test_pieces_are_whole_runs(name: str) -> None:
    """LLVM, with every decision: no more is pushed than the next one wants."""
    chain, every = chains()[name], twin(name)
    net, rng = pybuild.build(chain).host("llvm"), np.random.default_rng(1)
    at = done = 0
    while at < len(PCM):
        count = int(rng.integers(0, net.samples_wanted() + 1))
        if net.push_samples(PCM[at : at + count]):
            for output, rows in every.items():
                np.testing.assert_array_equal(net.get_output(output), rows[done])
            done += 1
        at += count
    assert done == len(PCM) // chain.samples == len(every["scores"])
    assert len(np.unique(every["scores"])) > 10


@pytest.mark.parametrize(
    "kind", ["gcc", pytest.param("clang", marks=pytest.mark.sweep)]
)
def test_pieces_in_c(kind: str, tmp_path: Path) -> None:
    require(kind)
    flags = [*STRICT, "-O0", *FLAGS[kind], f"-I{crt_include()}", f"-I{tmp_path}"]
    sources, program = _sources("generic", tmp_path), tmp_path / "listen"
    run([require(kind), *flags, *sources, *crt_sources(), "-o", program])
    assert run([program]) == told()


def test_pieces_on_a_cortex_m4(tmp_path: Path) -> None:
    target, image = "cortex-m4", tmp_path / "listen.elf"
    include = [f"-I{crt_include()}", f"-I{tmp_path}"]
    sources = _sources(target, tmp_path)
    run([*compiler(CORES[target]), *STRICT, "-O2", *include, *sources, *crt_sources(),
         *link_flags(target, tmp_path), "-o", image])  # fmt: skip
    assert emulated(target, image) == told()


def test_a_net_of_floats_is_asked_the_real_features() -> None:
    chain = pybuild.chain(features(), dense_net((1, BANDS, 6), "float32"), DECISION)
    every, net = chain(PCM), pybuild.build(chain).host()
    for i in range(len(PCM) // HOP):
        assert net.push_samples(PCM[i * HOP : (i + 1) * HOP]) == 1
        np.testing.assert_allclose(net.get_output("scores"), every["scores"][i], 1e-5)
        assert net.get_output("heard") == every["heard"][i]
    alone = pybuild.build(dense_net((1, BANDS, 6), "float32")).host()
    last = _windows(PCM, 6)[-1].astype(np.float32) - features().zero_point
    alone.run(x=(last * np.float32(features().scale)).T[None])
    np.testing.assert_allclose(alone.get_output("scores"), every["scores"][-1], 1e-5)


def _windows(pcm: Array, rows: int) -> list[Array]:
    """The last rows of features at each hop; before them is silence."""
    made = features()(pcm)
    before = np.full((rows - 1, BANDS), features().zero_point, np.int8)
    whole = np.concatenate([before, made])
    return [whole[i : i + rows] for i in range(len(made))]


def test_a_stream_is_its_windows() -> None:
    """Features once, then the net alone over whole windows."""
    net, rows = conv_net(16), 16
    alone = pybuild.build(net).host()
    stream, whole = (twin(name) for name in ("stream", "whole"))
    for i, window in enumerate(_windows(PCM, rows)):
        alone.run(x=window.reshape(1, rows, 1, BANDS))
        score = alone.get_output("scores")
        np.testing.assert_array_equal(whole["scores"][i], score)
        if i >= rows:  # before, a stream has zeros where the layers' padding was
            np.testing.assert_array_equal(stream["scores"][i], score)


def test_three_rows_at_once_are_each_third_row() -> None:
    """Features go on within a run as they do from run to run."""
    once, thrice = (twin(name)["scores"] for name in ("window", "some_rows"))
    np.testing.assert_array_equal(thrice, once[2::3])


def test_a_stream_costs_its_new_rows() -> None:
    made = {n: pybuild.build(chains()[n]) for n in ("stream", "whole")}
    macs = {n: sum(row.macs for row in m.report.layers) for n, m in made.items()}
    assert macs["stream"] * 4 < macs["whole"]


def test_integers_of_features_become_those_of_the_net() -> None:
    """Each as the real number that it is; what the net cannot hold is held."""
    mel, net = features(), dense_net((1, 8, BANDS, 1), scale=0.06)
    graph = pybuild.chain(mel, net).model.lower()
    ours = (np.arange(-128, 128) + 128) * mel.scale
    made = np.clip(np.round(ours / 0.06) - 100, -128, 127)
    rows = [n for n in graph.nodes if n.op == "quantize" and n.output != "features"]
    (node,) = rows
    from pybuild.ops import OPERATORS

    found = []
    for at in range(0, 256, BANDS):
        value = np.resize(np.arange(at, at + BANDS) - 128, (1, BANDS)).astype(np.int8)
        (y,) = OPERATORS["quantize"].reference(node, graph, [value])
        found += list(zip(value.ravel().tolist(), y.ravel().tolist(), strict=True))
    assert all(abs(y - made[x + 128]) <= 1 for x, y in found)
    assert sum(y == made[x + 128] for x, y in found) > 0.9 * len(found)


def test_features_are_those_of_training_whatever_rounds_in_the_net() -> None:
    for rounding in ("litert", "onnx", "single", "tflm"):
        chain = chains()["window"]
        library = pybuild.build(chain, rounding=rounding)
        values = {node.output: node for node in library.plan.graph.nodes}
        assert values["features"].attrs["rounding"] == "double"


@pytest.mark.parametrize(
    ("net", "options", "what"),
    [
        (dense_net((1, 33)), {}, r"\[1, 33\] does not split into rows of 10 bands"),
        (dense_net((1, 8, BANDS)), {"every": 9}, "every is 9 rows, not from 1 to 8"),
        (dense_net((1, 8, BANDS), scale=1 / 255, zero=-128), {},
         "is for numbers from 0 to 1, features are from 0 to 17"),
        (dense_net((1, 8, BANDS), scale=5.0), {}, "is for numbers from"),
        (dense_net((2, 4, BANDS)), {"stream": True}, "has no axis of 8 rows"),
        (dense_net((1, 4, BANDS)), {"decision": Decision(threshold=0.2, release=0.3,
         ignore=(4,))}, "release is 0.3, threshold 0.2; ignores class 4, there are 4"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    net: Any, options: dict[str, Any], what: str
) -> None:
    with pytest.raises(BuildError, match=what):
        pybuild.chain(features(), net, **options)


def test_samples_of_another_type_are_refused() -> None:
    chain = chains()["one_row"]
    with pytest.raises(BuildError, match=r"float64\[9\]"):
        chain(np.zeros(9))
    net = pybuild.build(chain).host()
    with pytest.raises(ValueError, match=r"samples are int16\[n\], not int8\[9\]"):
        net.push_samples(np.zeros(9, np.int8))
    other = pybuild.build(dense_net((1, BANDS))).host()
    with pytest.raises(BuildError, match="takes no samples one by one"):
        other.push_samples(np.zeros(HOP, np.int16))


def test_a_reset_forgets_what_waits() -> None:
    net = pybuild.build(chains()["one_row"]).host()
    net.push_samples(PCM[:9])
    net.reset()
    assert net.samples_wanted() == HOP


@pytest.mark.parametrize("name", NAMES)
def test_outputs_stay_while_samples_come(name: str) -> None:
    """No output lies where the next samples are put; whatever else may."""
    plan = pybuild.build(chains()[name]).plan
    graph = plan.graph
    start = plan.places["samples"].home
    end = start + graph.tensor("samples").bytes
    for output in graph.outputs:
        at = plan.places[output].home
        assert at + graph.tensor(output).bytes <= start or at >= end


def test_a_streaming_wakeword_takes_little() -> None:
    """MLPerf Tiny's layers with features: estimated cycles of a step on a Cortex-M4,
    and RAM with all state, without the window of samples.
    """
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    chain = pybuild.chain(log_mel(), wakeword(), stream=True)
    library = pybuild.build(chain, name="wakeword", target="cortex-m4")
    device = open_device("mps2-an386", "gcc", "auto", "cortex-m4")
    found = bench_on_board(device, library)
    assert found.cycles is not None and 100_000 < found.cycles < 250_000
    window = 2 * 480  # bytes
    assert library.tables.arena_bytes + library.tables.instance_bytes - window < 5800

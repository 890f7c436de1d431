"""Windows that slide over time: each run has the bits of the whole window, once warm,
and computes only the new rows; what would be other bits is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Quant, Tensor
from pybuild.model import Model
from pybuild.verify.bench import bench
from pybuild.verify.check import check
from tests.boards.devices import device
from tests.graphs.rows import model_of
from tests.plan.test_rows import quick
from tests.toolchains import ROOT

TCN = ROOT / "examples" / "streams" / "tcn.onnx"
Q: dict[str, Any] = {"quant": (0.1, 3)}


class Maker:
    """A network over [1, time, width, channels], int8."""

    def __init__(self, frames: int = 40, width: int = 1, seed: int = 0) -> None:
        self.chance = np.random.default_rng(seed)
        self.net, self.count = GraphBuilder("stream"), 0
        self.x = self.net.input("x", (1, frames, width, 4), "int8", **Q)

    def weights(self, shape: tuple[int, ...], axis: int) -> Tensor:
        self.count += 1
        scales = self.chance.uniform(0.002, 0.01, shape[axis]).astype(np.float32)
        quant = Quant(tuple(map(float, scales)), (0,) * shape[axis], axis)
        values = self.chance.integers(-127, 128, shape).astype(np.int8)
        return self.net.constant(f"w{self.count}", values, quant)

    def conv(self, x: Tensor, size: int, channels: int, **attrs: Any) -> Tensor:
        w = self.weights((channels, size, 1, x.shape[3]), 0)
        return self.net.op("conv2d", x, w, **Q, **attrs)

    def depthwise(self, x: Tensor, size: int, **attrs: Any) -> Tensor:
        w = self.weights((size, 1, x.shape[3]), 2)
        return self.net.op("depthwise_conv2d", x, w, **Q, **attrs)

    def late(self, x: Tensor, rows: int) -> Tensor:
        """Without the first rows: what a residual connection adds."""
        end = x.shape
        begin = (0, end[1] - rows, 0, 0)
        return self.net.op("slice", x, begin=begin, end=end, strides=(1, 1, 1, 1))

    def model(self, y: Tensor) -> Model:
        self.net.output(y)
        return model_of(self.net.build())


def head(m: Maker, y: Tensor) -> Tensor:
    y = m.net.op("mean", y, axes=(1, 2), keepdims=False, **Q)
    return m.net.op("dense", y, m.weights((3, y.shape[1]), 0), **Q)


def residual(**attrs: Any) -> Model:
    """Strides, dilations, a residual, pooling; the mean of the whole window."""
    m = Maker()
    y = m.conv(m.x, 3, 8, **attrs)
    z = m.conv(m.depthwise(y, 3, dilations=(2, 1)), 1, 8)
    y = m.net.op("add", m.late(y, z.shape[1]), z, **Q)
    y = m.net.op("max_pool2d", m.conv(y, 5, 6), kernel=(2, 1), strides=(2, 1))
    return m.model(head(m, y))


def causal() -> Model:
    """Padding before the first frame; the output is a row for each frame."""
    m = Maker(width=3)
    y = m.conv(m.x, 3, 8, pads=(2, 0, 0, 0))
    y = m.net.op("pad", y, pads=((0, 0), (4, 0), (0, 0), (0, 0)))
    z = m.conv(y, 3, 8, dilations=(2, 1))
    y = m.net.op("concat", m.net.op("tanh", z, **Q), z, axis=3)
    return m.model(m.net.op("avg_pool2d", y, kernel=(2, 1), strides=(1, 1)))


def flattened() -> Model:
    """Everything that the window has left goes into a dense layer."""
    m = Maker(frames=17)
    y = m.conv(m.x, 4, 5, strides=(2, 1))
    y = m.net.op("transpose", y, perm=(0, 2, 1, 3))
    y = m.net.op("reshape", y, shape=(1, y.shape[2] * 5))
    return m.model(m.net.op("dense", y, m.weights((3, y.shape[1]), 0), **Q))


def must_equal(model: Model, frames: int = 0, runs: int = 3, **options: Any) -> int:
    """Compares further windows than the first; how many frames a run takes."""
    axis = f"1:{frames}" if frames else "1"
    whole, made = model.build().host(), model.build(stream=[axis], **options)
    graph, net = made.plan.graph, made.host()
    window = graph.windows["x"].rows
    shape = graph.tensor("x").shape
    count = shape[1]
    chance = np.random.default_rng(1)
    total = graph.warm_runs + runs
    every = chance.integers(-128, 128, (1, total * count, *shape[2:])).astype(np.int8)
    for again in range(2):
        for run in range(1, total + 1):
            have = net(x=every[:, (run - 1) * count : run * count])
            if run < graph.warm_runs:
                continue
            want = whole(x=every[:, run * count - window : run * count])
            for name, value in have.items():
                must_end_alike(value, want[name], name in graph.windows)
        if not again:
            net.reset()
            total = graph.warm_runs
    return count


def must_end_alike(have: Array, want: Array, flows: bool) -> None:
    if flows:
        want = want[:, want.shape[1] - have.shape[1] :]
    np.testing.assert_array_equal(have, want)


def test_streams_have_the_bits_of_the_whole_window() -> None:
    assert must_equal(residual(), plan="rows") == 2
    assert must_equal(residual(strides=(2, 1))) == 4
    assert must_equal(causal()) == 1
    assert must_equal(flattened(), plan="rows") == 2


@pytest.mark.parametrize(
    "frames", [12, *(pytest.param(n, marks=pytest.mark.sweep) for n in (4, 38, 40))]
)
def test_more_frames_a_run(frames: int) -> None:
    assert must_equal(residual(), frames, 2) == frames


@st.composite
def temporal(draw: Any) -> Model:
    """Layers over time of any size, stride and dilation."""
    m = Maker(
        draw(st.integers(14, 30)), draw(st.integers(1, 2)), draw(st.integers(0, 99))
    )
    y = m.x
    for op in draw(st.lists(st.sampled_from("cdmars"), min_size=1, max_size=5)):
        size, stride, far = (draw(st.integers(1, most)) for most in (4, 2, 2))
        if (size - 1) * far + 1 > y.shape[1]:
            continue
        strides = (stride, 1)
        match op:
            case "c":
                y = m.conv(y, size, 5, strides=strides, dilations=(far, 1))
            case "d":
                y = m.depthwise(y, size, strides=strides, dilations=(far, 1))
            case "m" | "a":
                kind = "max_pool2d" if op == "m" else "avg_pool2d"
                y = m.net.op(kind, y, kernel=(size, 1), strides=strides)
            case "r":
                z = m.conv(y, size, y.shape[3])
                y = m.net.op("add", m.late(y, z.shape[1]), z, **Q)
            case _:
                y = m.net.op("tanh", y, **Q)
    if y is m.x:
        y = m.conv(y, 2, 3)
    return m.model(head(m, y) if draw(st.booleans()) else y)


@given(temporal())
@quick(5)
def test_random_networks_over_time(model: Model) -> None:
    _must_equal_or_be_refused(model)


@pytest.mark.sweep
@given(temporal())
@quick(60)
def test_more_random_networks_over_time(model: Model) -> None:
    _must_equal_or_be_refused(model)


def _must_equal_or_be_refused(model: Model) -> None:
    try:
        must_equal(model, runs=2)
    except BuildError as error:
        assert "leave as no whole rows" in str(error)


def test_only_new_rows_are_computed() -> None:
    """Exact counts: two frames of 40 make 2 of 38 rows, 2 of 34, 1 of 15."""
    whole, made = residual().build(), residual().build(stream=["1"])
    macs = {row.name: row.macs for row in whole.report.layers}
    for row in made.report.layers:
        if row.name in macs and "conv" in row.op:
            rows = whole.plan.graph.tensor(row.name).shape[1]
            assert row.macs * rows == 2 * macs[row.name]
    assert made.report.ram.arena < whole.report.ram.arena
    new = 2 * 4 + 2 * 8 + 2 * 8 + 1 * 6  # which are kept with those before
    assert made.report.state == 4 + 2 * 4 + 4 * 8 + 4 * 8 + 14 * 6 + new
    assert made.report.warm_runs == 20


@pytest.mark.sweep
def test_a_core_needs_a_twentieth_of_the_instructions() -> None:
    model, board = pybuild.load(TCN), device("mps2-an386")
    whole = bench_on_board(board, model.build()).instructions
    stream = bench_on_board(board, model.build(stream=["2"])).instructions
    assert stream * 20 < whole


def test_check_compares_windows_with_the_file_s_reference() -> None:
    library = pybuild.load(TCN).build(stream=["frames=2:2"])
    assert library.report.warm_runs == 32
    assert check(TCN, library, ["llvm"], samples=3).ok
    with pytest.raises(BuildError, match="--per-layer: layers of a stream"):
        check(TCN, library, ["llvm"], samples=1, per_layer=True)


def test_the_header_says_when_it_is_warm() -> None:
    header = residual().build(name="s", stream=["1"]).sources()["s.h"]
    for line in ("#define S_STATE_BYTES 206u", "#define S_WARM_RUNS 20u",
                 "#define S_X_DIM1 2"):  # fmt: skip
        assert line in header


def test_rows_that_depend_on_padding_are_refused() -> None:
    m = Maker()
    same = m.model(m.conv(m.x, 3, 4, pads=(1, 0, 1, 0)))
    with pytest.raises(BuildError, match="pads after the last frame, where the next"):
        same.build(stream=["1"])
    m = Maker()
    padded = m.model(head(m, m.conv(m.x, 3, 4, pads=(2, 0, 0, 0))))
    with pytest.raises(BuildError, match="in which 2 rows depend on padding"):
        padded.build(stream=["1"])
    m = Maker(frames=6)
    short = m.conv(m.conv(m.x, 4, 4, pads=(3, 0, 0, 0)), 4, 4, pads=(3, 0, 0, 0))
    with pytest.raises(BuildError, match="the window is too short"):
        m.model(short).build(stream=["1"])


def test_what_makes_no_sense_is_refused() -> None:
    for given_, what in (
        ("7", "there is no axis 7 of 'x'"),
        ("1:41", "41 frames are more than the window of 'x', 40"),
        ("1:-2", "-2 frames are too few"),
        ("1:3", "frames that strides leave as no whole rows"),
        ("y=1", "there is no 'y'"),
        ("time", "'time' is not an axis"),
    ):
        with pytest.raises(BuildError, match=what):
            residual().build(stream=[given_])


def test_a_bench_runs_a_stream() -> None:
    assert bench(residual().build(stream=["1"]), runs=2).runs == 2

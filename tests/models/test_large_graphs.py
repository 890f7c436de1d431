"""Large models: time near linear in nodes, memory at most four times the file."""

from __future__ import annotations

import cProfile
import os
import tracemalloc
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.ops.fixed_point import chunks
from pybuild.ops.fixed_point.quant import accumulator_bound
from tests.bench.large_graphs import (
    SECONDS,
    SLOWEST,
    cost,
    many_bytes,
    many_nodes,
    unlike_layers,
    verb,
    wide_bytes,
    wide_convolutions,
)
from tests.perf.layers import large


@cache
def _least(name: str, *options: str) -> tuple[int, float, int]:
    """What a verb costs of a graph of few nodes: its start."""
    return verb(name, many_nodes(5), *options)


def _calls(model: onnx.ModelProto, target: str = "generic") -> int:
    """The Python calls of a build in memory: unlike seconds, the same on any machine
    and beside any load."""
    data, profile = model.SerializeToString(), cProfile.Profile()
    profile.enable()
    assert pybuild.load(data).build(target=target).report.layers
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


def test_calls_are_near_linear_in_nodes() -> None:
    _calls(many_nodes(5))  # fills caches
    start, few, many = (_calls(many_nodes(nodes)) for nodes in (5, 30, 120))
    assert many - start < 1.5 * 4 * (few - start)


def test_layers_that_all_differ_take_few_calls() -> None:
    """4,723,673 in December 2026, fewer after other tests; a plan that is searched anew
    for each layer would take ten times as many."""
    _calls(unlike_layers(5), SLOWEST)  # fills caches
    assert _calls(unlike_layers(100), SLOWEST) < 6_000_000


@pytest.mark.sweep
def test_time_is_near_linear_in_nodes() -> None:
    _, start, _ = _least("build")
    _, few, _ = verb("build", many_nodes(2500))
    _, many, _ = verb("build", many_nodes(10_000))
    assert many - start < 1.5 * 4 * max(few - start, 0.1)


@pytest.mark.sweep
@pytest.mark.parametrize("count", SECONDS)
def test_layers_that_all_differ_are_built_in_seconds(count: int) -> None:
    """Of a machine that does nothing else: beside other processes of this run a second
    of CPU does less."""
    beside = 1.5 if "PYTEST_XDIST_WORKER" in os.environ else 1
    seconds = []
    for _ in range(3):  # one is enough
        seconds.append(verb("build", unlike_layers(count), "--target", SLOWEST)[1])
        if seconds[-1] < SECONDS[count] * beside:
            return
    raise AssertionError(seconds)


@pytest.mark.parametrize("layers", [12, pytest.param(40, marks=pytest.mark.sweep)])
@pytest.mark.parametrize(
    "name", ["inspect", pytest.param("build", marks=pytest.mark.sweep)]
)
def test_memory_is_four_times_the_file(name: str, layers: int) -> None:
    _, _, empty = _least(name)
    size, _, held = verb(name, many_bytes(layers))
    assert held - empty < 4 * size


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("layers", [1, pytest.param(4, marks=pytest.mark.sweep)])
def test_weights_that_are_moved_are_few_times_in_memory(
    layers: int, beside: bool
) -> None:
    """25 and 100 MB: as they are read, as they lie for kernels, and one order of them
    that a kernel reads, of all that it could."""
    _, _, empty = _least("inspect")
    size, _, held = verb("inspect", wide_convolutions(layers), beside=beside)
    assert held - empty < 4 * size


@pytest.mark.parametrize(
    ("target", "channels"),
    [
        ("cortex-m4", 840),
        *(
            pytest.param(target, 1680, marks=pytest.mark.sweep)
            for target in ("cortex-m4", "cortex-m55", "cortex-m3", "generic")
        ),
    ],
)
def test_int8_weights_are_few_times_in_memory(target: str, channels: int) -> None:
    """6 and 25 MB, of which kernels of each core have an order of their own."""
    _, _, empty = verb("build", wide_bytes(1, 8), "--target", target)
    size, _, held = verb("build", wide_bytes(1, channels), "--target", target)
    assert held - empty < 4 * size


_SLOW = pytest.mark.sweep


@pytest.mark.parametrize(
    ("kind", "channels", "wide", "target"),
    [
        ("convolution", 840, True, "cortex-m4"),
        ("dense", 2450, False, "cortex-m4"),
        ("dense", 2450, True, "cortex-m55"),
        *(
            pytest.param(kind, channels, wide, target, marks=_SLOW)
            for target in ("cortex-m4", "cortex-m55", "cortex-m3", "generic")
            for wide in (False, True)
            for kind, channels in (("convolution", 1200), ("dense", 3510))
        ),
        pytest.param("transposed", 1190, False, "cortex-m4", marks=_SLOW),
    ],
)
def test_layers_of_any_kind_are_few_times_in_memory(
    kind: str, channels: int, wide: bool, target: str, tmp_path: Path
) -> None:
    """6, 12 MB: what is asked of sums and steps is asked of some channels at a time."""
    _, _, empty = _least("build", "--target", target)
    file = tmp_path / "large.tflite"
    file.write_bytes(large(kind, channels, wide))
    words = ("build", str(file), "-o", str(tmp_path / "out"), "--target", target)
    _, held = cost("-m", "pybuild.cli", *words)
    assert held - empty < 4 * file.stat().st_size


@pytest.mark.parametrize("channels", [840, pytest.param(1680, marks=pytest.mark.sweep)])
def test_int8_weights_of_objects_are_few_times_in_memory(channels: int) -> None:
    """LLVM does not see them: it would take 40 times their bytes."""
    options = ("--target", "cortex-m4", "--emit", "obj")
    _, _, empty = verb("build", wide_bytes(1, 8), *options)
    size, _, held = verb("build", wide_bytes(1, channels), *options)
    assert held - empty < 4 * size


@pytest.mark.parametrize("target", ["generic", "cortex-m3", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("wide", [False, True])
def test_chunks_of_weights_make_the_whole(
    wide: bool, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """37 channels: no kernel's blocks of them come out even. Of int16, sums of so many
    inputs have 64 bits, in runs."""
    narrow = wide_bytes(2, 37).SerializeToString()
    data = large("convolution", 137, True) if wide else narrow
    whole = pybuild.load(data).build(target=target)
    monkeypatch.setattr(chunks, "MOST", 1)
    in_chunks = pybuild.load(data).build(target=target)
    pairs = zip(whole.tables.constants, in_chunks.tables.constants, strict=True)
    assert all(a.array.tobytes() == b.array.tobytes() for a, b in pairs)


def test_bounds_of_sums_make_no_wide_copy_of_weights() -> None:
    weights = np.full((256, 4096), -3, np.int8)
    tracemalloc.start()
    least, most = accumulator_bound(weights, None, 0)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 3 * weights.nbytes
    assert (least == -3 * 127 * 4096).all() and (most == 3 * 128 * 4096).all()

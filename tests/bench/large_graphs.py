"""Graphs of many nodes, models of many bytes: what reading and building them costs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pybuild.select.build_seconds import NOMINAL, fixed_work
from tests.bench.costs import Table

SIDE = 800
# bytes of a dense layer's weights
LAYER = 4 * SIDE * SIDE


def many_nodes(count: int) -> onnx.ModelProto:
    """Convolutions of one pixel, activations and residuals in a chain."""
    rng = np.random.default_rng(0)
    nodes, weights, last, skip = [], [], "x", "x"
    for index in range(count):
        kind = ("Conv", "Relu", "Add", "Sigmoid", "Mul")[index % 5]
        reads = [last, skip] if kind in ("Add", "Mul") else [last]
        if kind == "Conv":
            reads.append(f"w{index}")
            values = rng.standard_normal((8, 8, 1, 1)).astype(np.float32)
            weights.append(numpy_helper.from_array(values, reads[1]))
        last = f"t{index}"
        nodes.append(helper.make_node(kind, reads, [last], name=f"n{index}"))
        skip = last if kind == "Sigmoid" else skip
    return _model(nodes, weights, [1, 8, 4, 4], last)


def many_bytes(layers: int) -> onnx.ModelProto:
    """Dense layers of LAYER bytes each."""
    rng = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for index in range(layers):
        values = rng.standard_normal((SIDE, SIDE), np.float32) / np.float32(40)
        weights.append(numpy_helper.from_array(values, f"w{index}"))
        reads, made = [last, f"w{index}"], f"t{index}"
        nodes.append(helper.make_node("Gemm", reads, [made], name=made, transB=1))
        last = f"r{index}"
        nodes.append(helper.make_node("Relu", [made], [last], name=last))
    return _model(nodes, weights, [1, SIDE], last)


def wide_convolutions(layers: int, channels: int = 850) -> onnx.ModelProto:
    """3x3 convolutions whose weights are moved when they are read, and packed."""
    rng = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for index in range(layers):
        values = rng.standard_normal((channels, channels, 3, 3), np.float32)
        weights.append(numpy_helper.from_array(values / channels, f"w{index}"))
        reads, made = [last, f"w{index}"], f"t{index}"
        nodes.append(helper.make_node("Conv", reads, [made], name=made, pads=[1] * 4))
        last = made
    return _model(nodes, weights, [1, channels, 4, 4], last)


def wide_bytes(layers: int, channels: int, side: int = 3) -> onnx.ModelProto:
    """Convolutions of int8 with Q and DQ nodes, scales by channel."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(np.float32(0.02), "s")]
    weights.append(numpy_helper.from_array(np.int8(0), "z"))
    nodes, last = _through_int8("x"), "x_d"
    for index in range(layers):
        shape = (channels, channels, side, side)
        given = {
            "w": rng.integers(-127, 128, shape, np.int8),
            "ws": rng.uniform(0.5, 1.5, channels).astype(np.float32) / 5000 / side,
            "wz": np.zeros(channels, np.int8),
        }
        own = {name: f"{name}{index}" for name in given}
        weights += [numpy_helper.from_array(v, own[n]) for n, v in given.items()]
        reads, made = [last, f"d{index}"], f"t{index}"
        nodes += [
            helper.make_node("DequantizeLinear", [*own.values()], reads[1:], axis=0),
            helper.make_node("Conv", reads, [made], name=made, pads=[side // 2] * 4),
            *_through_int8(made),
        ]
        last = f"{made}_d"
    return _model(nodes, weights, [1, channels, 4, 4], last)


def unlike_layers(count: int) -> onnx.ModelProto:
    """Convolutions of int8 in a chain, each with a window and channels of its own; a
    quarter of them are depthwise."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(np.float32(0.02), "s")]
    weights.append(numpy_helper.from_array(np.int8(0), "z"))
    nodes, last, channels = _through_int8("x"), "x_d", 16
    for index in range(count):
        ends = index == count - 1  # as it began
        side, alone = int(rng.choice([1, 3, 3, 5])), rng.random() < 0.25 and not ends
        made = channels if alone else 16 if ends else int(rng.integers(4, 48))
        shape = (made, 1 if alone else channels, side, side)
        loud = 1500 * np.sqrt(np.prod(shape[1:]))
        given = {
            "w": rng.integers(-127, 128, shape, np.int8),
            "ws": (rng.uniform(0.5, 1.5, made) / loud).astype(np.float32),
            "wz": np.zeros(made, np.int8),
        }
        own = {name: f"{name}{index}" for name in given}
        weights += [numpy_helper.from_array(v, own[n]) for n, v in given.items()]
        to, group = f"t{index}", channels if alone else 1
        reads = [last, f"d{index}"]
        nodes += [
            helper.make_node("DequantizeLinear", [*own.values()], reads[1:], axis=0),
            helper.make_node(
                "Conv", reads, [to], name=to, pads=[side // 2] * 4, group=group
            ),
            *_through_int8(to),
        ]
        last, channels = f"{to}_d", made
    return _model(nodes, weights, [1, 16, 8, 8], last)


def _through_int8(name: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", "s", "z"], [f"{name}_d"]),
    ]


def _model(
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto],
    shape: list[int],
    last: str,
) -> onnx.ModelProto:
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name in ("x", last)
    ]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def cost(*words: str) -> tuple[float, int]:
    """CPU seconds of a command of Python, and the most bytes that it held."""
    code = (
        "import os, resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(code, used.ru_utime + used.ru_stime, used.ru_maxrss)\n"
    )
    command = [sys.executable, "-c", code, sys.executable, *words]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    failed, seconds, kilobytes = said.stdout.split()
    assert failed == "0", said.stderr
    return float(seconds), int(kilobytes) << 10


def verb(
    name: str, model: onnx.ModelProto, *options: str, beside: bool = False
) -> tuple[int, float, int]:
    """Bytes of the file; seconds and bytes of `crt inspect` or `crt build` of it.

    beside  the weights are in a file of their own
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.onnx"
        more = {"save_as_external_data": True, "location": "large.bin"}
        onnx.save(model, path, **(more if beside else {}))
        size = sum(one.stat().st_size for one in Path(folder).iterdir())
        out = ["-o", f"{folder}/out"] if name == "build" else []
        words = ("-m", "pybuild.cli", name, str(path), *out, *options)
        return size, *cost(*words)


# layers -> CPU seconds of a build for the core whose builds take longest
SECONDS = {100: 5, 1000: 15, 10000: 90}
SLOWEST = "cortex-m4"


def growth() -> Table:
    """For `./dev bench`."""
    rows: list[tuple[object, ...]] = []
    paces: list[float] = []
    for count, most in SECONDS.items():
        model = unlike_layers(count)
        for target, limit in ((SLOWEST, most), ("generic", most / 2)):
            before = fixed_work()
            size, spent, held = verb("build", model, "--target", target)
            paces.append((before + fixed_work()) / 2 / NOMINAL)
            seconds = spent / paces[-1]
            shown = f"{seconds:.1f}", f"{limit:g}", seconds <= limit
            rows.append((f"{count:,}", f"{size:,}", target, *shown, held >> 20))
    says = (
        "CPU seconds of `crt build`, the whole process, of int8 convolutions that all "
        "differ, and the most memory that it held. Seconds are those of a machine that "
        f"does a fixed piece of Python in {NOMINAL:g} s; this one took "
        f"{sum(paces) / len(paces):.1f} times as long."
    )
    columns = ("layers", "bytes", "target", "seconds", "asked", "held", "MiB")
    return Table("Large models: layers that all differ", says, columns, tuple(rows))


def measured() -> Table:
    """For `./dev bench`."""
    rows: list[tuple[object, ...]] = []
    models = {f"{n:,} nodes": many_nodes(n) for n in (5, 1000, 2500, 10000)}
    models |= {f"{n} dense layers": many_bytes(n) for n in (10, 40)}
    for title, model in models.items():
        for name in ("inspect", "build"):
            size, seconds, held = verb(name, model)
            ratio = f"{held / size:.1f}" if size > 1 << 24 else ""
            rows.append((title, f"{size:,}", name, f"{seconds:.1f}", held >> 20, ratio))
    says = (
        "CPU seconds and the most memory of the whole process; the last column is that "
        "memory in sizes of the file. Five nodes show what the command itself takes."
    )
    columns = ("model", "bytes", "crt", "seconds", "MiB", "x file")
    return Table("Large models", says, columns, tuple(rows))

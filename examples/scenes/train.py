"""Trains the network of the scenes and writes its files beside this script.

Needs numpy, scikit-learn (for its pictures of digits) and onnx.
"""

from __future__ import annotations

import sys
from pathlib import Path

import network
import numpy as np
import onnx
from network import LAYERS, Layer, Parameters
from onnx import TensorProto, helper, numpy_helper
from scenes import F32, I64, SIZE, scenes

HERE = Path(__file__).parent
DIGITS = HERE.parent / "digits"
SEED = 11
STEPS = 1400
BATCH = 64
CALIBRATION = 128
MADE = 12_000


def training_digits() -> tuple[F32, I64]:
    """Those that examples/digits trains with too: none of its held-out ones."""
    sys.path.append(str(DIGITS))
    from sklearn.datasets import load_digits

    found = load_digits()
    held = {i.tobytes() for i in np.load(DIGITS / "digits_test.npz")["images"]}
    images = found.images.astype(np.uint8)
    free = [i for i, image in enumerate(images) if image.tobytes() not in held]
    return images[free].astype(np.float32) / 16, found.target[free].astype(np.int64)


def save(path: str, p: Parameters) -> None:
    """As PyTorch's exporter would: NCHW, ReLU as a node of its own."""
    nodes, values = [], []
    last = "image"

    def node(op: str, inputs: list[str], output: str, **attrs: object) -> str:
        nodes.append(helper.make_node(op, inputs, [output], name=output, **attrs))
        return output

    for layer in LAYERS:
        name = layer.name
        made = f"{name}_out" if layer.relu else name
        if layer.kind == "average":
            last = node("Flatten", [node("GlobalAveragePool", [last], "pool")], name)
            continue
        weights, bias = f"{name}_w", f"{name}_b"
        values.append(numpy_helper.from_array(_arranged(p[weights], layer), weights))
        values.append(numpy_helper.from_array(p[bias], bias))
        if layer.kind == "dense":
            last = node("Gemm", [last, weights, bias], made)
        else:
            edge = layer.kernel // 2
            group = layer.outputs if layer.kind == "depthwise" else 1
            last = node(
                "Conv", [last, weights, bias], made, group=group, pads=[edge] * 4,
                kernel_shape=[layer.kernel] * 2, strides=[layer.stride] * 2,
            )  # fmt: skip
        if layer.adds:
            last = node("Add", [last, layer.adds], f"{name}_sum")
        last = node("Relu", [last], name) if layer.relu else last
    graph = helper.make_graph(
        nodes, "scenes",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, SIZE, SIZE])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
        values,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _arranged(w: F32, layer: Layer) -> F32:
    match layer.kind:
        case "conv":
            return np.ascontiguousarray(w.transpose(3, 2, 0, 1))
        case "depthwise":
            return np.ascontiguousarray(w.transpose(2, 0, 1)[:, None])
    return w


def main() -> None:
    rng = np.random.default_rng(SEED)
    digits, labels = training_digits()
    images, classes = scenes(rng, digits, labels, MADE)
    images = images[..., None]

    def batch() -> tuple[F32, I64]:
        chosen = rng.integers(0, len(images), BATCH)
        return images[chosen], classes[chosen]

    p = network.trained(rng, batch, STEPS)
    test = np.load(DIGITS / "digits_test.npz")
    held = test["images"].astype(np.float32) / 16, test["labels"].astype(np.int64)
    pictures, right = scenes(np.random.default_rng(SEED), *held, 1000)
    share = network.accuracy(p, pictures[..., None], right)
    print(f"{share:.1%} of 1000 scenes of held-out digits right")
    save(str(HERE / "scenes_f32.onnx"), p)
    calibration = {
        "image": images[:CALIBRATION, None, :, :, 0],
        "labels": classes[:CALIBRATION].astype(np.uint8),
    }
    path = HERE / "scenes_calibration.npz"
    np.savez_compressed(path, allow_pickle=False, **calibration)


if __name__ == "__main__":
    main()

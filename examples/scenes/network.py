"""A convolutional network with residual blocks in numpy: forward, gradients, Adam.

NHWC throughout. Knows nothing of files or of what the pictures show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
Parameters = dict[str, F32]
Data = Callable[[], tuple[F32, I64]]


@dataclass(frozen=True)
class Layer:
    """kind  conv | depthwise | dense | average, each but the last with a bias
    adds     the layer whose output is added before the ReLU
    """

    name: str
    kind: str
    inputs: int
    outputs: int
    kernel: int = 3
    stride: int = 1
    relu: bool = True
    adds: str = ""


LAYERS = (
    Layer("stem", "conv", 1, 24),
    Layer("down1", "conv", 24, 32, stride=2),
    Layer("depthwise1", "depthwise", 32, 32),
    Layer("point1", "conv", 32, 32, kernel=1, adds="down1"),
    Layer("down2", "conv", 32, 48, stride=2),
    Layer("depthwise2", "depthwise", 48, 48),
    Layer("point2", "conv", 48, 48, kernel=1, adds="down2"),
    Layer("top", "conv", 48, 64),
    Layer("average", "average", 64, 64, relu=False),
    Layer("scores", "dense", 64, 10, relu=False),
)


def initial(rng: np.random.Generator) -> Parameters:
    """He-initialised weights, zero biases.

    Shapes  conv [K,K,I,O]  depthwise [K,K,C]  dense [I,O]
    """
    made: Parameters = {}
    for layer in LAYERS:
        k = layer.kernel
        shape: tuple[int, ...] = (k, k, layer.inputs, layer.outputs)
        if layer.kind == "depthwise":
            shape = (k, k, layer.outputs)
        if layer.kind == "dense":
            shape = (layer.inputs, layer.outputs)
        if layer.kind != "average":
            fan = int(np.prod(shape[:-1]))
            scale = np.sqrt((1 if layer.adds else 2) / fan)
            made[f"{layer.name}_w"] = _float(rng.standard_normal(shape) * scale)
            made[f"{layer.name}_b"] = np.zeros(layer.outputs, np.float32)
    return made


def _float(value: npt.NDArray[np.float64]) -> F32:
    return value.astype(np.float32)


def _pad(x: F32, kernel: int) -> F32:
    edge = kernel // 2
    return np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))


def _taps(x: F32, layer: Layer) -> Iterator[tuple[int, int, tuple[slice, ...]]]:
    """Each position of the kernel, and the part of the padded input that it sees."""
    for dy in range(layer.kernel):
        for dx in range(layer.kernel):
            rows = slice(dy, dy + x.shape[1], layer.stride)
            columns = slice(dx, dx + x.shape[2], layer.stride)
            yield dy, dx, (slice(None), rows, columns)


def _patches(x: F32, layer: Layer) -> F32:
    """[N,OH,OW,K*K*C]"""
    padded = _pad(x, layer.kernel)
    return np.concatenate([padded[part] for _, _, part in _taps(x, layer)], -1)


def forward(p: Parameters, images: F32) -> dict[str, F32]:
    """The output of every layer, and "image", for images [N,H,W,1]."""
    seen = {"image": images}
    x = images
    for layer in LAYERS:
        name = layer.name
        match layer.kind:
            case "conv":
                w = p[f"{name}_w"]
                x = _patches(x, layer) @ w.reshape(-1, w.shape[-1]) + p[f"{name}_b"]
            case "depthwise":
                padded, w = _pad(x, layer.kernel), p[f"{name}_w"]
                x = sum(
                    (padded[part] * w[dy, dx] for dy, dx, part in _taps(x, layer)),
                    p[f"{name}_b"],
                )
            case "average":
                x = x.mean((1, 2))
            case _:
                x = x @ p[f"{name}_w"] + p[f"{name}_b"]
        if layer.adds:
            x = x + seen[layer.adds]
        x = np.maximum(x, 0) if layer.relu else x
        seen[name] = x
    return seen


def accuracy(p: Parameters, images: F32, labels: I64) -> float:
    """The share of images whose greatest score is their label."""
    return float((forward(p, images)["scores"].argmax(1) == labels).mean())


def gradients(p: Parameters, images: F32, labels: I64) -> Parameters:
    """Of the mean cross entropy with respect to every parameter."""
    seen = forward(p, images)
    odds = np.exp(seen["scores"] - seen["scores"].max(1, keepdims=True))
    d = odds / odds.sum(1, keepdims=True)
    d[np.arange(len(labels)), labels] -= 1
    d /= len(labels)
    grads: Parameters = {}
    later: dict[str, F32] = {}
    names = ["image", *(layer.name for layer in LAYERS)]
    for index, layer in reversed(list(enumerate(LAYERS))):
        if layer.name in later:
            d = d + later.pop(layer.name)
        if layer.relu:
            d = d * (seen[layer.name] > 0)
        if layer.adds:
            later[layer.adds] = d
        d = _back(p, layer, seen[names[index]], d, grads)
    return grads


def _back(p: Parameters, layer: Layer, x: F32, d: F32, grads: Parameters) -> F32:
    """The gradient of the input; those of the parameters go to `grads`."""
    name = layer.name
    if layer.kind == "average":
        even = d[:, None, None] / np.float32(x.shape[1] * x.shape[2])
        return np.broadcast_to(even, x.shape)
    grads[f"{name}_b"] = d.sum(tuple(range(d.ndim - 1)))
    w = p[f"{name}_w"]
    if layer.kind == "dense":
        grads[f"{name}_w"] = x.T @ d
        return d @ w.T
    out = _pad(np.zeros_like(x), layer.kernel)
    if layer.kind == "depthwise":
        padded, made = _pad(x, layer.kernel), np.zeros_like(w)
        for dy, dx, part in _taps(x, layer):
            made[dy, dx] = (padded[part] * d).sum((0, 1, 2))
            out[part] += d * w[dy, dx]
        grads[f"{name}_w"] = made
    else:
        flat = d.reshape(-1, d.shape[-1])
        patches = _patches(x, layer).reshape(len(flat), -1)
        grads[f"{name}_w"] = (patches.T @ flat).reshape(w.shape)
        for dy, dx, part in _taps(x, layer):
            out[part] += d @ w[dy, dx].T
    edge = layer.kernel // 2
    return out[:, edge : edge + x.shape[1], edge : edge + x.shape[2]]


def trained(rng: np.random.Generator, batch: Data, steps: int) -> Parameters:
    """Parameters after `steps` of Adam with a rate that falls to zero."""
    p = initial(rng)
    mean = {name: np.zeros_like(value) for name, value in p.items()}
    square = {name: np.zeros_like(value) for name, value in p.items()}
    for step in range(1, steps + 1):
        rate = 3e-3 * (1 - step / (steps + 1))
        for name, grad in gradients(p, *batch()).items():
            mean[name] = 0.9 * mean[name] + 0.1 * grad
            square[name] = 0.999 * square[name] + 0.001 * grad**2
            hat = mean[name] / (1 - 0.9**step)
            size = np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8
            p[name] = (p[name] - rate * hat / size).astype(np.float32)
    return p

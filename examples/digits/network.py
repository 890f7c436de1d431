"""A small convolutional network in numpy: forward, gradients, Adam.

NHWC throughout. Knows nothing of files or quantisation.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
Parameters = dict[str, F32]

CHANNELS = 8
FEATURES = 16
CLASSES = 10


def initial(rng: np.random.Generator) -> Parameters:
    """He-initialised weights, zero biases.

    Shapes  conv_w [KH,KW,I,O]  depthwise_w [KH,KW,C]  pointwise_w [I,O]
            dense_w [H*W*C,10]
    """

    def he(*shape: int, fan_in: int) -> F32:
        return (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)

    flat = 4 * 4 * FEATURES
    return {
        "conv_w": he(3, 3, 1, CHANNELS, fan_in=9),
        "conv_b": np.zeros(CHANNELS, np.float32),
        "depthwise_w": he(3, 3, CHANNELS, fan_in=9),
        "depthwise_b": np.zeros(CHANNELS, np.float32),
        "pointwise_w": he(CHANNELS, FEATURES, fan_in=CHANNELS),
        "pointwise_b": np.zeros(FEATURES, np.float32),
        "dense_w": he(flat, CLASSES, fan_in=flat),
        "dense_b": np.zeros(CLASSES, np.float32),
    }


def _padded(x: F32) -> F32:
    return np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))


def _taps(height: int, width: int) -> Iterator[tuple[int, int, tuple[slice, ...]]]:
    """Each kernel position with the part of the padded input it sees."""
    for dy in range(3):
        for dx in range(3):
            rows, columns = slice(dy, dy + height), slice(dx, dx + width)
            yield dy, dx, (slice(None), rows, columns)


def forward(p: Parameters, images: F32) -> dict[str, F32]:
    """Every activation, by layer name, for images [N,8,8,1] in 0..1."""
    _, height, width, _ = images.shape
    padded = _padded(images)
    conv = np.zeros((*images.shape[:3], CHANNELS), np.float32) + p["conv_b"]
    for dy, dx, part in _taps(height, width):
        conv += padded[part] @ p["conv_w"][dy, dx]
    conv = np.maximum(conv, 0)
    padded = _padded(conv)
    depthwise = np.zeros_like(conv) + p["depthwise_b"]
    for dy, dx, part in _taps(height, width):
        depthwise += padded[part] * p["depthwise_w"][dy, dx]
    depthwise = np.maximum(depthwise, 0)
    pointwise = np.maximum(depthwise @ p["pointwise_w"] + p["pointwise_b"], 0)
    blocks = pointwise.reshape(-1, height // 2, 2, width // 2, 2, FEATURES)
    pool = blocks.max(axis=(2, 4))
    flat = pool.reshape(len(images), -1)
    scores = flat @ p["dense_w"] + p["dense_b"]
    return {
        "image": images,
        "conv": conv,
        "depthwise": depthwise,
        "pointwise": pointwise,
        "pool": pool,
        "flat": flat,
        "scores": scores,
    }


def accuracy(p: Parameters, images: F32, labels: I64) -> float:
    """The share of images whose greatest score is their label."""
    return float((forward(p, images)["scores"].argmax(1) == labels).mean())


def gradients(p: Parameters, images: F32, labels: I64) -> Parameters:
    """Of the mean cross entropy with respect to every parameter."""
    act = forward(p, images)
    odds = np.exp(act["scores"] - act["scores"].max(1, keepdims=True))
    d_scores = odds / odds.sum(1, keepdims=True)
    d_scores[np.arange(len(labels)), labels] -= 1
    d_scores /= len(labels)
    grads = {"dense_w": act["flat"].T @ d_scores, "dense_b": d_scores.sum(0)}
    d_pool = (d_scores @ p["dense_w"].T).reshape(act["pool"].shape)
    d_pointwise = _unpool(d_pool, act["pool"], act["pointwise"])
    grads["pointwise_w"] = np.tensordot(
        act["depthwise"], d_pointwise, ((0, 1, 2), (0, 1, 2))
    )
    grads["pointwise_b"] = d_pointwise.sum((0, 1, 2))
    d_depthwise = (d_pointwise @ p["pointwise_w"].T) * (act["depthwise"] > 0)
    grads["depthwise_b"] = d_depthwise.sum((0, 1, 2))
    grads["depthwise_w"], d_conv = _depthwise_back(p, act["conv"], d_depthwise)
    d_conv *= act["conv"] > 0
    grads["conv_b"] = d_conv.sum((0, 1, 2))
    grads["conv_w"] = _conv_back(p, images, d_conv)
    return grads


def _unpool(d_pool: F32, pool: F32, pointwise: F32) -> F32:
    """Sends each pooled gradient back to the positions that held the maximum."""
    wide = pool.repeat(2, axis=1).repeat(2, axis=2)
    d_wide = d_pool.repeat(2, axis=1).repeat(2, axis=2)
    return d_wide * ((pointwise == wide) & (pointwise > 0))


def _depthwise_back(p: Parameters, conv: F32, d_out: F32) -> tuple[F32, F32]:
    padded = _padded(conv)
    d_padded = np.zeros_like(padded)
    d_w = np.zeros_like(p["depthwise_w"])
    for dy, dx, part in _taps(conv.shape[1], conv.shape[2]):
        d_w[dy, dx] = (padded[part] * d_out).sum((0, 1, 2))
        d_padded[part] += d_out * p["depthwise_w"][dy, dx]
    return d_w, d_padded[:, 1:-1, 1:-1]


def _conv_back(p: Parameters, images: F32, d_out: F32) -> F32:
    padded = _padded(images)
    d_w = np.zeros_like(p["conv_w"])
    for dy, dx, part in _taps(images.shape[1], images.shape[2]):
        d_w[dy, dx] = np.tensordot(padded[part], d_out, ((0, 1, 2), (0, 1, 2)))
    return d_w


def shifted(rng: np.random.Generator, images: F32) -> F32:
    """Each image moved by at most one pixel to any side, for training."""
    padded = _padded(images)
    out = np.empty_like(images)
    for index, (dy, dx) in enumerate(rng.integers(0, 3, (len(images), 2))):
        out[index] = padded[index, dy : dy + 8, dx : dx + 8]
    return out


def trained(
    rng: np.random.Generator, images: F32, labels: I64, epochs: int, batch: int = 64
) -> Parameters:
    """Parameters after `epochs` of Adam with a rate that falls to zero."""
    p = initial(rng)
    mean = {name: np.zeros_like(value) for name, value in p.items()}
    square = {name: np.zeros_like(value) for name, value in p.items()}
    steps = epochs * (len(images) // batch)
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for first in range(0, len(images) - batch + 1, batch):
            chosen = order[first : first + batch]
            step += 1
            rate = 4e-3 * (1 - step / (steps + 1))
            grads = gradients(p, shifted(rng, images[chosen]), labels[chosen])
            for name, grad in grads.items():
                mean[name] = 0.9 * mean[name] + 0.1 * grad
                square[name] = 0.999 * square[name] + 0.001 * grad**2
                hat = mean[name] / (1 - 0.9**step)
                size = np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8
                p[name] = (p[name] - rate * hat / size).astype(np.float32)
    return p

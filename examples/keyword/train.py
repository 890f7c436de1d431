"""Trains the network of this folder in numpy and writes it: keyword.onnx, and
calibration.npz to quantise it with. Seeded.

Two convolutions over time, the mean of what they find, a dense layer. Features are
those of front.toml, compiled: training has the bits of the device.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sounds import RATE, WORDS, recordings

import pybuild
from pybuild.front import read_front

HERE = Path(__file__).parent
ROWS, BANDS, WIDE, TAPS = 25, 32, 16, 5
EACH, EPOCHS, BATCH, SEED = 160, 30, 64, 3


def rows_of(samples: np.ndarray) -> np.ndarray:
    """Features of recordings, each from silence: int8 [n, rows, BANDS]."""
    graph = read_front(HERE / "front.toml").features
    net, hop = pybuild.build(graph, name="rows").host(), 320
    made = []
    for recording in samples:
        net.reset()
        parts = recording[: len(recording) // hop * hop].reshape(-1, hop)
        made.append([net.run(samples=part)["features"] for part in parts])
    return np.array(made)


def windows(each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The last ROWS of features, some moments around the ends of words: real numbers
    [n, ROWS, BANDS], and the words."""
    samples, words, ends = recordings(each, seed)
    rows = rows_of(samples)
    scale = 17 / 255  # of log_mel without gain
    rng, x, y = np.random.default_rng(seed), [], []
    silence = np.full((ROWS, BANDS), -128, np.int8)
    for made, word, end in zip(rows, words, ends, strict=True):
        whole = np.concatenate([silence, made])
        last = end // (RATE // 50) if word else int(rng.integers(1, len(made)))
        moments = last + rng.integers(
            2, 9, 4
        )  # it is over, so it is no part of another
        x += [whole[m : m + ROWS] for m in np.clip(moments, 0, len(made))]
        y += [word] * 4
        if word:  # before it, and while it lasts
            x += [whole[m : m + ROWS] for m in rng.integers(0, max(1, last - 1), 4)]
            y += [0] * 4
    return (np.array(x, np.float32) + 128) * np.float32(scale), np.array(y)


def taps_of(x: np.ndarray) -> np.ndarray:
    """[n, t, c] -> [n, t - TAPS + 1, TAPS * c]"""
    view = np.lib.stride_tricks.sliding_window_view(x, TAPS, axis=1)
    return np.moveaxis(view, -1, 2).reshape(*view.shape[:2], -1)


def spread(slopes: np.ndarray, rows: int) -> np.ndarray:
    """The way back of taps_of."""
    n, t, _ = slopes.shape
    each = slopes.reshape(n, t, TAPS, -1)
    made = np.zeros((n, rows, each.shape[-1]), slopes.dtype)
    for tap in range(TAPS):
        made[:, tap : tap + t] += each[:, :, tap]
    return made


def scores(x: np.ndarray, w: dict[str, np.ndarray]) -> tuple[np.ndarray, list]:
    t1 = taps_of(x)
    h1 = np.maximum(t1 @ w["w1"] + w["b1"], 0)
    t2 = taps_of(h1)
    h2 = np.maximum(t2 @ w["w2"] + w["b2"], 0)
    mean = h2.mean(1)
    logits = mean @ w["w3"] + w["b3"]
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True), [t1, h1, t2, h2, mean]


def slopes(x: np.ndarray, y: np.ndarray, w: dict[str, np.ndarray]) -> dict:
    made, (t1, h1, t2, h2, mean) = scores(x, w)
    made[np.arange(len(y)), y] -= 1
    d = made / len(y)
    g = {"w3": mean.T @ d, "b3": d.sum(0)}
    d = (d @ w["w3"].T)[:, None] * (h2 > 0) / h2.shape[1]
    g |= {"w2": np.tensordot(t2, d, ([0, 1], [0, 1])), "b2": d.sum((0, 1))}
    d = spread(d @ w["w2"].T, h1.shape[1]) * (h1 > 0)
    return g | {"w1": np.tensordot(t1, d, ([0, 1], [0, 1])), "b1": d.sum((0, 1))}


def trained(x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """By Adam."""
    rng, sizes = np.random.default_rng(SEED), [BANDS * TAPS, WIDE * TAPS, WIDE]
    w: dict[str, np.ndarray] = {}
    for i, (size, to) in enumerate(zip(sizes, [WIDE, WIDE, len(WORDS)], strict=True)):
        w[f"w{i + 1}"] = rng.normal(
            0, (2 / size) ** 0.5 / (4 if i == 0 else 1), (size, to)
        )
        w[f"b{i + 1}"] = np.zeros(to)
    first = {k: np.zeros_like(v) for k, v in w.items()}
    second = {k: np.zeros_like(v) for k, v in w.items()}
    step = 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(y))
        rate = 3e-3 * (1 - epoch / EPOCHS)
        for at in range(0, len(y), BATCH):
            step += 1
            part = order[at : at + BATCH]
            for k, g in slopes(x[part], y[part], w).items():
                first[k] += 0.1 * (g - first[k])
                second[k] += 0.001 * (g * g - second[k])
                m, v = first[k] / (1 - 0.9**step), second[k] / (1 - 0.999**step)
                w[k] = w[k] - rate * m / (np.sqrt(v) + 1e-8)
    return w


def save(w: dict[str, np.ndarray]) -> None:
    """[1, bands, rows]: time last, as PyTorch's Conv1d has it."""

    def conv(name: str) -> np.ndarray:
        each = w[name].reshape(TAPS, -1, WIDE)
        return each.transpose(2, 1, 0)

    values = {"w1": conv("w1"), "w2": conv("w2"), "w3": w["w3"]}
    values |= {name: w[name] for name in ("b1", "b2", "b3")}
    tensors = [
        numpy_helper.from_array(np.ascontiguousarray(v, np.float32), n)
        for n, v in values.items()
    ]
    nodes = [
        helper.make_node("Conv", ["rows", "w1", "b1"], ["c1"], name="first"),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name="second"),
        helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["mean"], name="mean"),
        helper.make_node("Flatten", ["mean"], ["flat"], name="flat"),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], name="dense"),
        helper.make_node("Softmax", ["logits"], ["scores"], name="softmax", axis=1),
    ]
    ends = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s)]
        for n, s in (("rows", (1, BANDS, ROWS)), ("scores", (1, len(WORDS))))
    ]
    graph = helper.make_graph(nodes, "keyword", *ends, tensors)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.checker.check_model(model)
    (HERE / "keyword.onnx").write_bytes(model.SerializeToString())


def main() -> None:
    x, y = windows(EACH, SEED)
    w = trained(x.astype(np.float64), y)
    tested, known = windows(40, SEED + 1)
    right = (scores(tested, w)[0].argmax(1) == known).mean()
    print(f"{len(y)} windows; of {len(known)} others right: {right:.1%}")
    save(w)
    chosen = np.random.default_rng(SEED).choice(len(y), 64, replace=False)
    turned = np.ascontiguousarray(x[chosen].transpose(0, 2, 1))[:, None]
    np.savez_compressed(HERE / "calibration.npz", rows=turned, labels=y[chosen])


if __name__ == "__main__":
    main()

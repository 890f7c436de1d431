"""Writes the .tflite files beside it as TensorFlow's converter does, and what they
compute.

python tests/exported/export_keras.py [FOLDER]: needs tensorflow. Nets with loops over
time have a batch of one: with an open one the converter refuses them, and with
calibration data it ends without a word. All others have an open batch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

HERE = Path(__file__).parent
Net = Callable[[Any], Any]


def gru(x: Any) -> Any:
    """All steps, in two forms of the reset gate."""
    x = layers.GRU(3, return_sequences=True, name="g")(x)
    return layers.GRU(2, return_sequences=True, reset_after=False, name="h")(x)


def both(x: Any) -> Any:
    """In both directions: an LSTM forward, a GRU backward."""
    back = layers.GRU(2, return_sequences=True, go_backwards=True, name="b")
    there = layers.LSTM(2, return_sequences=True, name="f")
    return layers.Bidirectional(there, backward_layer=back, name="n")(x)


def dense(x: Any) -> Any:
    """Of sequences: with an open batch their shapes are computed."""
    x = layers.Dense(6, activation="relu")(x)
    return layers.TimeDistributed(layers.Dense(3))(x)


def turned(x: Any) -> Any:
    """A transposed convolution, whose output's shape is computed."""
    return layers.Conv2DTranspose(3, 3, strides=2, padding="same")(x)


# net, shape, open batch, whether it is int8
NETS: dict[str, tuple[Net, tuple[int, ...], bool, bool]] = {
    "keras_gru": (gru, (3, 2), False, False),
    "keras_both": (both, (3, 2), False, False),
    "keras_dense": (dense, (5, 4), True, False),
    "keras_dense_int8": (dense, (5, 4), True, True),
    "keras_turned_int8": (turned, (3, 3, 2), True, True),
}


def export(name: str, folder: Path) -> dict[str, np.ndarray]:
    """The file, and by name what goes in and comes out of the net for one sample."""
    make, shape, opened, whole = NETS[name]
    keras.utils.set_random_seed(1)
    start = keras.Input(batch_shape=(None if opened else 1, *shape), name="x")
    net = keras.Model(start, make(start), name="k")
    samples = np.random.default_rng(0).normal(size=(16, 1, *shape)).astype("float32")
    converter = tf.lite.TFLiteConverter.from_keras_model(net)
    if whole:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([s] for s in samples)
        converter.inference_input_type = converter.inference_output_type = tf.int8
    (folder / f"{name}.tflite").write_bytes(converter.convert())
    return {f"{name}.x": samples[0], f"{name}.y": net(samples[0]).numpy()}


def main(folder: Path) -> None:
    arrays: dict[str, np.ndarray] = {}
    for name in NETS:
        arrays |= export(name, folder)
    np.savez(folder / "keras.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)

"""Trains a small network of digits in Keras 3 and exports it beside this script.

python train.py           trains, with any backend, and keeps build/digits.keras
python train.py tflite    that as digits_int8.tflite; KERAS_BACKEND=tensorflow
python train.py onnx      that as digits.onnx; KERAS_BACKEND=torch

Needs keras, scikit-learn (for its pictures), and tensorflow, or torch and onnxscript.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
HELD_OUT = HERE.parent / "digits" / "digits_test.npz"
KEPT = HERE.parents[1] / "build" / "digits.keras"
SEED, EPOCHS, CALIBRATION = 5, 60, 128


def network() -> keras.Model:
    """One picture at a time, which is what firmware has."""
    image = keras.Input(batch_shape=(1, 8, 8, 1), name="image")
    x = layers.Conv2D(8, 3, padding="same", use_bias=False)(image)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.SeparableConv2D(24, 3, strides=2, padding="same", use_bias=False)(x)
    x = skip = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.SeparableConv2D(24, 3, padding="same", use_bias=False)(x)
    x = layers.Add()([layers.BatchNormalization()(x), skip])
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(image, layers.Dense(10, name="scores")(x))


def pictures() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Those to train with, then those that are held out in examples/digits."""
    found, held = load_digits(), np.load(HELD_OUT)
    kept = {image.tobytes() for image in held["images"]}
    images = found.images.astype(np.uint8)
    free = [i for i, image in enumerate(images) if image.tobytes() not in kept]
    x, known = images[free][..., None], held["images"][..., None]
    return (
        x.astype(np.float32) / 16, found.target[free],
        known.astype(np.float32) / 16, held["labels"],
    )  # fmt: skip


def trained(x: np.ndarray, y: np.ndarray) -> keras.Model:
    """With batches; the weights then go into the network of one picture."""
    single = network()
    many = keras.Input((8, 8, 1))
    net = keras.Model(many, keras.models.clone_model(single)(many))
    steps = EPOCHS * -(-len(x) // 64)
    rate = keras.optimizers.schedules.CosineDecay(0.01, steps)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    net.compile(keras.optimizers.Adam(rate), loss)
    net.fit(x, y, batch_size=64, epochs=EPOCHS, verbose=0)
    single.set_weights(net.get_weights())
    return single


def to_tflite(net: keras.Model, x: np.ndarray) -> None:
    """Full integers by the converter, its ranges from some training pictures."""
    import tensorflow as tf

    def samples() -> Iterator[list[np.ndarray]]:
        for image in x[:CALIBRATION]:
            yield [image[None]]

    converter = tf.lite.TFLiteConverter.from_keras_model(net)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    (HERE / "digits_int8.tflite").write_bytes(converter.convert())


def to_onnx(net: keras.Model) -> None:
    import onnx

    net.export(HERE / "digits.onnx", format="onnx", verbose=False)
    model = onnx.load(HERE / "digits.onnx")
    # where this script and Keras lie on this machine
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    onnx.save(model, HERE / "digits.onnx")


def main(*words: str) -> None:
    keras.utils.set_random_seed(SEED)
    x, y, test_x, test_y = pictures()
    if not words:
        KEPT.parent.mkdir(exist_ok=True)
        trained(x, y).save(KEPT)
    net = keras.models.load_model(KEPT)
    right = [net(image[None]) for image in test_x]
    said = [int(np.argmax(keras.ops.convert_to_numpy(scores))) for scores in right]
    count = sum(a == b for a, b in zip(said, test_y, strict=True))
    print(f"{net.count_params()} parameters, {count} of {len(test_y)} right")
    if "tflite" in words:
        to_tflite(net, x)
    if "onnx" in words:
        to_onnx(net)
        some = {"image": x[:CALIBRATION], "labels": y[:CALIBRATION].astype(np.uint8)}
        np.savez_compressed(HERE / "calibration.npz", allow_pickle=False, **some)


if __name__ == "__main__":
    main(*sys.argv[1:])

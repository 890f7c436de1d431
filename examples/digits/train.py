"""Trains the digits network and writes the model files beside this script.

Needs numpy, scikit-learn (for its images), onnx and tflite; with onnxruntime and
ai-edge-litert installed it also measures the files that it wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import export_onnx
import export_tflite
import network
import numpy as np
import quantised
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
SEED = 7
HELD_OUT = 360
CALIBRATION = 200
EPOCHS = 80

Images = np.ndarray


def split() -> tuple[Images, np.ndarray, Images, np.ndarray]:
    """Training images and labels, held-out images and labels; pixels 0..16."""
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.images))
    images = digits.images.astype(np.uint8)[order]
    labels = digits.target.astype(np.uint8)[order]
    return images[HELD_OUT:], labels[HELD_OUT:], images[:HELD_OUT], labels[:HELD_OUT]


def real(images: Images) -> network.F32:
    """Pixels 0..16 as the network's input, 0..1 and NHWC."""
    return (images[..., None] / np.float32(16)).astype(np.float32)


def with_onnxruntime(path: Path) -> Callable[[Images], int]:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def classify(image: Images) -> int:
        (scores,) = session.run(None, {"image": real(image)[None, None, :, :, 0]})
        return int(scores.argmax())

    return classify


def with_litert(path: Path) -> Callable[[Images], int]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    net = Interpreter(
        str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    net.allocate_tensors()
    reads, makes = net.get_input_details()[0], net.get_output_details()[0]
    scale, zero = reads["quantization"]

    def classify(image: Images) -> int:
        q = np.clip(np.rint(real(image) / scale + zero), -128, 127).astype(np.int8)
        net.set_tensor(reads["index"], q[None])
        net.invoke()
        return int(net.get_tensor(makes["index"]).argmax())

    return classify


def measure(images: Images, labels: np.ndarray) -> None:
    """Prints the held-out accuracy of each file in its own interpreter."""
    for name, interpreter in (
        ("digits_f32.onnx", with_onnxruntime),
        ("digits_int8.onnx", with_onnxruntime),
        ("digits_int8.tflite", with_litert),
    ):
        try:
            classify = interpreter(HERE / name)
        except ImportError as missing:
            print(f"{name}: not measured, {missing}")
            continue
        right = sum(classify(i) == k for i, k in zip(images, labels, strict=True))
        print(f"{name}: {right} of {len(labels)} held-out digits right")


def write_calibration(arrays: dict[str, np.ndarray]) -> None:
    """As `crt build digits_f32.onnx --quantise` takes them."""
    packed = {"image": arrays["image"], "labels": arrays["labels"].astype(np.uint8)}
    np.savez_compressed(HERE / "digits_calibration.npz", allow_pickle=False, **packed)


def main() -> None:
    images, labels, test_images, test_labels = split()
    x, y = real(images), labels.astype(np.int64)
    p = network.trained(np.random.default_rng(SEED), x, y, EPOCHS)
    share = network.accuracy(p, real(test_images), test_labels.astype(np.int64))
    print(f"float network: {share:.1%} of {HELD_OUT} held-out digits right")
    model = quantised.quantised(p, x)
    export_onnx.save_float(str(HERE / "digits_f32.onnx"), p)
    export_onnx.save_int8(str(HERE / "digits_int8.onnx"), model)
    export_tflite.save_int8(str(HERE / "digits_int8.tflite"), model)
    test = {"images": test_images, "labels": test_labels}
    np.savez_compressed(HERE / "digits_test.npz", allow_pickle=False, **test)
    some = {"image": x[:CALIBRATION].transpose(0, 3, 1, 2), "labels": y[:CALIBRATION]}
    write_calibration(some)
    measure(test_images, test_labels)


if __name__ == "__main__":
    main()

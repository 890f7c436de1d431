"""Whether values are equal to those of LiteRT and ONNX Runtime, as tables. Knows of
pybuild what a user knows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pybuild.verify.check import CheckResult, check
from pybuild.verify.samples import samples
from tests.bench.costs import Row, Table, built, model
from tests.conftest import ROOT
from tests.graphs.real_models import (
    BACKENDS,
    FLOATS,
    HYBRID,
    NETWORKS,
    kind_of_reference,
    steps_from_onnx_runtime,
    twice_rounded,
    worst_distance,
)

DIGITS = ROOT / "examples" / "digits"
SAMPLES = 20


def integers() -> Table:
    rows = []
    for network in NETWORKS:
        path = model(f"{network}_int8.tflite")
        seen = check(path, built(path), BACKENDS, "litert", SAMPLES, per_layer=True)
        rows += _tallies(network, seen)
    says = (
        f"Every tensor of the plan that ships, {SAMPLES} seeded samples, against "
        "LiteRT's reference kernels: `crt check X_int8.tflite --ref litert "
        "--per-layer`."
    )
    columns = ("model", "back end", "tensors", "elements", "mismatches")
    return Table("int8 against LiteRT", says, columns, tuple(rows))


def _tallies(network: str, seen: CheckResult) -> Iterator[Row]:
    for backend, tally in seen.backends.items():
        yield network, backend, seen.tensors, tally.elements, tally.mismatches


def rounds_twice() -> Table:
    path = model("ad_int8.tflite")
    library = built(path, rounding="tflm")
    (name,) = library.plan.graph.inputs
    rows = []
    for backend in BACKENDS:
        net, wrong, elements = library.host(backend), 0, 0
        for given in samples(library.plan.graph, SAMPLES):
            net.run(**given.inputs)
            want = twice_rounded(path, given.inputs[name])
            wrong += int((net.get_output(0) != want).sum())
            elements += want.size
        net.close()
        rows.append(("ad", backend, elements, wrong))
    says = (
        f"`--rounding tflm`, {SAMPLES} samples, against a numpy model of TensorFlow "
        "Lite Micro's dense layer that shares no code with pybuild."
    )
    columns = ("model", "back end", "elements", "mismatches")
    return Table("Rounding twice", says, columns, tuple(rows))


def floats() -> Table:
    pairs = [(name, name, 1e-5) for name in (*FLOATS, HYBRID)]
    rows = []
    for name, other, limit in pairs:
        library = built(model(name))
        for backend in BACKENDS:
            far = worst_distance(library, model(other), backend, SAMPLES)
            ref = {"litert": "LiteRT", "ort": "ONNX Runtime"}
            known = ref[kind_of_reference(model(other))]
            rows.append(
                (name, f"{known}, {other}", backend, far.absolute, far.relative, limit,
                 far.relative <= limit)
            )  # fmt: skip
    says = (
        f"Greatest difference of an output over {SAMPLES} samples; relative to the "
        "range that the output had in them. kws_f32.tflite is a hybrid file: int8 "
        "weights, and float activations, which both quantise on the fly."
    )
    columns = ("model", "against", "back end", "absolute", "relative", "limit", "held")
    return Table("float32", says, columns, tuple(rows))


def qdq() -> Table:
    rows = []
    for network in NETWORKS:
        path = model(f"{network}_qdq.onnx")
        for softmax in ("float", "integer"):
            for backend in BACKENDS:
                seen = steps_from_onnx_runtime(
                    built(path), path, backend, 5 * SAMPLES, softmax == "integer"
                )
                held = seen.unequal <= 0.001 * seen.elements and seen.most <= 1
                equal = f"{1 - seen.unequal / seen.elements:.4%}"
                counts = (seen.elements, seen.unequal, equal, seen.most)
                rows.append((network, softmax, backend, *counts, held))
    says = (
        f"Outputs of {5 * SAMPLES} samples. Promised: at most one step, 99.9 % equal. "
        "By default ONNX Runtime uses an integer softmax that is steps away from the "
        "result of the ONNX standard; with its float softmax and all else as by "
        "default, only ic differs: there it computes convolutions in float, and where "
        "one of them falls to the other side of a tie, all later layers differ a "
        "little. ad has no softmax."
    )
    columns = (
        "model", "their softmax", "back end", "elements", "unequal", "equal",
        "most steps", "held",
    )  # fmt: skip
    return Table("QDQ against ONNX Runtime", says, columns, tuple(rows))


def qdq_checked() -> Table:
    rows = []
    for network in NETWORKS:
        path = model(f"{network}_qdq.onnx")
        for what, inside in (("outputs", False), ("all tensors", True)):
            seen = check(path, built(path), BACKENDS, "ort", SAMPLES, per_layer=inside)
            for backend, tally in seen.backends.items():
                equal = f"{1 - tally.unequal / tally.elements:.4%}"
                rows.append(
                    (network, what, backend, tally.elements, tally.unequal, equal,
                     tally.mismatches, tally.good)
                )  # fmt: skip
    says = (
        f"`crt check X_qdq.onnx --ref ort`, {SAMPLES} samples, without and with "
        "`--per-layer`. To see every tensor, ONNX Runtime must give them as outputs, "
        "and then runs more convolutions in float than it does by default. `beyond`: "
        "outputs more than a step away."
    )
    columns = (
        "model", "compared", "back end", "elements", "unequal", "equal", "beyond",
        "held",
    )  # fmt: skip
    return Table("QDQ, by `crt check`", says, columns, tuple(rows))


def digits() -> Table:
    """The committed example, whose accuracy a user sees in the demo."""
    test = np.load(DIGITS / "digits_test.npz")
    rows = []
    for name in ("digits_int8.tflite", "digits_int8.onnx", "digits_f32.onnx"):
        library = built(DIGITS / name)
        (image,) = library.report.inputs
        real = test["images"].astype(np.float32) / 16
        if image.dtype == "int8":
            steps = np.rint(real / np.float32(image.scale)) + image.zero_point
            real = np.clip(steps, -128, 127).astype(np.int8)
        for backend in BACKENDS:
            net, right = library.host(backend), 0
            for value, label in zip(real, test["labels"], strict=True):
                net.run(image=value.reshape(image.shape))
                right += int(net.get_output("scores").argmax() == label)
            net.close()
            rows.append((name, backend, right, len(real), f"{right / len(real):.1%}"))
    columns = ("model", "back end", "right", "of", "accuracy")
    says = "Held-out pictures of `examples/digits` through both back ends."
    return Table("Digits", says, columns, tuple(rows))

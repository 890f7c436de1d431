"""Quantised here and by onnxruntime.quantization: the same float files, calibration
samples and tests, side by side.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import logging
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pybuild
from tests.bench.costs import Row, Table, model
from tests.bench.large_graphs import cost
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples"
METHODS = ("minmax", "percentile", "entropy")
# of real networks those that tell classes
CLASSIFIERS = ("kws", "vww", "ic")
# samples of these
CALIBRATED, MEASURED = 64, 128

Samples = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Network:
    """A float file with samples to calibrate and others to measure with."""

    path: Path
    calibration: Samples
    test: Samples

    @property
    def input(self) -> str:
        return next(iter(self.calibration))


@dataclass(frozen=True)
class Outcome:
    """hits: which samples are right; error: root mean square of the outputs', of the
    float ones
    """

    hits: np.ndarray
    error: float

    @property
    def right(self) -> int:
        return int(self.hits.sum())

    def alone(self, other: Outcome) -> int:
        """Samples that are right here, and there are not."""
        return int((self.hits & ~other.hits).sum())


def digits() -> Network:
    folder = EXAMPLES / "digits"
    held = np.load(folder / "digits_test.npz")
    test = {"image": held["images"].astype(np.float32)[:, None, None] / 16}
    test["labels"] = held["labels"]
    calibration = dict(np.load(folder / "digits_calibration.npz"))
    return Network(folder / "digits_f32.onnx", calibration, test)


def scenes() -> Network:
    """Made from digits that neither training nor calibration has seen; so many that
    chance is small.
    """
    folder = EXAMPLES / "scenes"
    spec = importlib.util.spec_from_file_location("scenes", folder / "scenes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    held = np.load(EXAMPLES / "digits" / "digits_test.npz")
    small = held["images"].astype(np.float32) / 16
    made, labels = module.scenes(
        np.random.default_rng(6), small, held["labels"], 20_000
    )
    calibration = dict(np.load(folder / "scenes_calibration.npz"))
    test = {"image": made[:, None, None], "labels": labels}
    return Network(folder / "scenes_f32.onnx", calibration, test)


def real_one(name: str, calibrated: int, measured: int) -> Network:
    """On made inputs; labels are what the float network says of them."""
    path, whole = model(f"{name}_f32.onnx"), model(f"{name}_int8.tflite")
    plane = pybuild.load(path).lower()
    shape = plane.tensor(plane.inputs[0]).shape[1:]
    graph = pybuild.load(whole).lower()
    given = graph.tensor(graph.inputs[0])
    low, high = ((end - given.zero_point) * given.scale for end in (-128, 127))
    rng = np.random.default_rng(0)
    image = low + (high - low) * fields(rng, shape, calibrated + measured)
    image = image.astype(np.float32)[:, None]
    test = {plane.inputs[0]: image[calibrated:]}
    test["labels"] = _scores(path, image[calibrated:]).argmax(1)
    return Network(path, {plane.inputs[0]: image[:calibrated]}, test)


def fields(rng: np.random.Generator, shape: tuple[int, ...], count: int) -> np.ndarray:
    """[count, *shape] in 0..1: slopes and spots of all sizes, the larger the stronger,
    as pictures and spectrograms have them; each sample with a contrast of its own.

    shape  channels, rows, columns
    """
    made, size = np.zeros((count, *shape)), 1
    while size < max(shape[1:]):
        spots = rng.standard_normal((count, shape[0], size + 1, size + 1))
        tint = np.eye(shape[0]) + rng.standard_normal((count, *2 * shape[:1])) / 2
        spots = np.einsum("ncd,ndhw->nchw", tint, spots)
        for axis in (2, 3):
            at = np.linspace(0, size, shape[axis - 1], endpoint=False)
            share = (at % 1).reshape([-1 if i == axis else 1 for i in range(4)])
            low = at.astype(int)
            near, far = spots.take(low, axis), spots.take(low + 1, axis)
            spots = near * (1 - share) + far * share
        made += spots * size**-0.7
        size *= 2
    made -= made.min((1, 2, 3), keepdims=True)
    made /= made.max((1, 2, 3), keepdims=True)
    dark = rng.uniform(0, 0.3, (count, 1, 1, 1))
    return dark + made * (rng.uniform(0.5, 1, dark.shape) - dark)


def ours(network: Network, method: str) -> tuple[Outcome, int]:
    """And the samples that are right in float."""
    made = pybuild.quantise(network.path, network.calibration, calibrate=method)
    net = made.model.build().host()
    (given,) = net.inputs
    images = network.test[network.input].astype(np.float32)
    found = [net(**{given.name: x.reshape(given.shape)}) for x in images]
    name = net.results[0].name
    scores = np.concatenate([each[name] for each in found])
    want = _scores(network.path, images)
    whole = want.argmax(1) == network.test["labels"]
    return _outcome(network, scores, want), int(whole.sum())


def theirs(network: Network, method: str) -> Outcome:
    """onnxruntime.quantization: int8, weights by channel, as QDQ, its integer kernels.

    Source  its documentation's static quantisation, without options of its own
    """
    import onnxruntime.quantization as other

    methods = {
        "minmax": other.CalibrationMethod.MinMax,
        "percentile": other.CalibrationMethod.Percentile,
        "entropy": other.CalibrationMethod.Entropy,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "quantised.onnx"
        logging.getLogger().setLevel(logging.ERROR)  # it advises to do its own passes
        with contextlib.redirect_stdout(io.StringIO()):
            other.quantize_static(
                network.path,
                path,
                _reader(network),
                quant_format=other.QuantFormat.QDQ,
                per_channel=True,
                activation_type=other.QuantType.QInt8,
                weight_type=other.QuantType.QInt8,
                calibrate_method=methods[method],
            )
        made, want = (
            _scores(p, network.test[network.input]) for p in (path, network.path)
        )
    return _outcome(network, made, want)


def _outcome(network: Network, made: np.ndarray, want: np.ndarray) -> Outcome:
    hits = made.argmax(1) == network.test["labels"]
    error = float(np.sqrt(np.square(made - want).sum() / np.square(want).sum()))
    return Outcome(hits, error)


def _reader(network: Network) -> object:
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._left: Iterator[np.ndarray] = iter(network.calibration[network.input])

        def get_next(self) -> dict[str, np.ndarray] | None:
            one = next(self._left, None)
            shape = () if one is None else (1, *one.shape[-3:])
            return None if one is None else {network.input: one.reshape(shape)}

    return Reader()


def _scores(path: Path, images: np.ndarray) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # without this, CPUs that have no VNNI saturate sums of two products to 16 bits
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.intra_op_num_threads = 1
    net = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )
    (given,) = net.get_inputs()
    return np.concatenate(
        [net.run(None, {given.name: x.reshape(1, *x.shape[-3:])})[0] for x in images]
    )


def quantised() -> Table:
    rows: list[Row] = []
    for name, network in (("digits", digits()), ("scenes", scenes())):
        for method in METHODS:
            (mine, whole), other = ours(network, method), theirs(network, method)
            held = mine.right >= other.right and mine.error < other.error
            rows.append((
                name, method, len(network.test["labels"]), whole, mine.right,
                other.right, mine.alone(other), other.alone(mine),
                f"{mine.error:.2%}", f"{other.error:.2%}", held,
            ))  # fmt: skip
    says = """The float networks of `examples/digits` and `examples/scenes` quantised
    after training: by `pybuild.quantise` and by onnxruntime.quantization (static, QDQ,
    int8, weights by channel, its defaults else) from the same calibration samples,
    measured on the same held-out ones. Right: greatest score is the label. Error: root
    mean square of the scores' difference from the float network's, of the scores.
    Promised: not less right, and a smaller error. Alone: samples that one side has
    right and the other has not. By chance the two sides differ by about the square root
    of their sum, by a third of that among 2,000 scenes, which were counted here before:
    there theirs had one more of minmax and three more of percentile."""
    columns = (
        "network", "calibration", "samples", "float right", "right", "theirs", "alone",
        "theirs alone", "error", "theirs ", "held",
    )  # fmt: skip
    return Table(
        "Quantised after training", " ".join(says.split()), columns, tuple(rows)
    )


def real_ones() -> Table:
    rows: list[Row] = []
    for name in CLASSIFIERS:
        network = real_one(name, CALIBRATED, MEASURED)
        with tempfile.TemporaryDirectory() as folder:
            words = ["build", str(network.path), "-o", f"{folder}/out"]
            for option, data in (("", network.calibration), ("-test", network.test)):
                np.savez(f"{folder}/data{option}.npz", allow_pickle=False, **data)
                words += [f"--quantise{option}", f"{folder}/data{option}.npz"]
            seconds, held = cost("-m", "pybuild.cli", *words)
            made = json.loads(Path(folder, "out", "report.json").read_text())
        report, other = made["quantisation"], theirs(network, "minmax")
        right = report["score"]["right_quantised"]
        rows.append((
            name, CALIBRATED, MEASURED, right, other.right, f"{report['error']:.2%}",
            f"{other.error:.2%}", f"{seconds:.1f}", held >> 20,
        ))  # fmt: skip
    says = """Float networks of MLPerf Tiny that tell classes, quantised by `crt build
    --quantise` and by onnxruntime.quantization (minmax, else as above) from the same
    made inputs: fields of spots of all sizes over the range of the network's input.
    Right: the class that the float network gives. Error: as above. Seconds of CPU and
    MiB are of the whole command, which measures, plans and prints the code, too."""
    columns = (
        "network", "calibrated with", "samples", "right", "theirs", "error", "theirs ",
        "seconds", "MiB",
    )  # fmt: skip
    return Table(
        "Real networks quantised after training", " ".join(says.split()), columns,
        tuple(rows),
    )  # fmt: skip

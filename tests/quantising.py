"""Quantised here and by onnxruntime.quantization: the same float files, calibration
samples and tests, side by side.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pybuild
from tests.conftest import ROOT
from tests.costs import Row, Table

EXAMPLES = ROOT / "examples"
METHODS = ("minmax", "percentile", "entropy")

Samples = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Network:
    """A float file with samples to calibrate and others to measure with."""

    path: Path
    calibration: Samples
    test: Samples


@dataclass(frozen=True)
class Outcome:
    """right: samples; error: root mean square of the outputs', of the float ones"""

    right: int
    error: float


def digits() -> Network:
    folder = EXAMPLES / "digits"
    held = np.load(folder / "digits_test.npz")
    test = {"image": held["images"].astype(np.float32)[:, None, None] / 16}
    test["labels"] = held["labels"]
    calibration = dict(np.load(folder / "digits_calibration.npz"))
    return Network(folder / "digits_f32.onnx", calibration, test)


def scenes(seed: int = 5, count: int = 2000) -> Network:
    """Made from digits that neither training nor calibration has seen."""
    folder = EXAMPLES / "scenes"
    spec = importlib.util.spec_from_file_location("scenes", folder / "scenes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    held = np.load(EXAMPLES / "digits" / "digits_test.npz")
    small = held["images"].astype(np.float32) / 16
    made, labels = module.scenes(
        np.random.default_rng(seed), small, held["labels"], count
    )
    calibration = dict(np.load(folder / "scenes_calibration.npz"))
    test = {"image": made[:, None, None], "labels": labels}
    return Network(folder / "scenes_f32.onnx", calibration, test)


def many_scenes() -> Network:
    """So many that chance is small: of 2,000, a network a little off the float one gets
    a few right that the float one does not.
    """
    return scenes(6, 20_000)


def ours(network: Network, method: str) -> tuple[Outcome, int]:
    """And the samples that are right in float."""
    report = pybuild.quantise(
        network.path, network.calibration, test=network.test, calibrate=method
    ).report
    assert report.score is not None
    outcome = Outcome(report.score.right_quantised, report.error)
    return outcome, report.score.right_float


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
                _reader(network.calibration["image"]),
                quant_format=other.QuantFormat.QDQ,
                per_channel=True,
                activation_type=other.QuantType.QInt8,
                weight_type=other.QuantType.QInt8,
                calibrate_method=methods[method],
            )
        made, want = (_scores(p, network.test["image"]) for p in (path, network.path))
    right = int((made.argmax(1) == network.test["labels"]).sum())
    error = float(np.sqrt(np.square(made - want).sum() / np.square(want).sum()))
    return Outcome(right, error)


def _reader(images: np.ndarray) -> object:
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._left: Iterator[np.ndarray] = iter(images)

        def get_next(self) -> dict[str, np.ndarray] | None:
            image = next(self._left, None)
            return None if image is None else {"image": image.reshape(1, *image.shape)}

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
    return np.concatenate(
        [net.run(None, {"image": x.reshape(1, *x.shape[-3:])})[0] for x in images]
    )


def quantised() -> Table:
    rows: list[Row] = []
    networks = ("digits", digits()), ("scenes", scenes()), ("scenes", many_scenes())
    for name, network in networks:
        for method in METHODS:
            (mine, whole), other = ours(network, method), theirs(network, method)
            held = mine.right >= other.right and mine.error < other.error
            rows.append((
                name, method, len(network.test["labels"]), whole, mine.right,
                other.right, f"{mine.error:.2%}", f"{other.error:.2%}",
                held,
            ))  # fmt: skip
    says = """The float networks of `examples/digits` and `examples/scenes` quantised
    after training: by `pybuild.quantise` and by onnxruntime.quantization (static, QDQ,
    int8, weights by channel, its defaults else) from the same calibration samples,
    measured on the same held-out ones. Right: greatest score is the label. Error: root
    mean square of the scores' difference from the float network's, of the scores.
    Promised: not less right, and a smaller error. Of the 2,000 scenes chance moves
    either side by some (theirs can be more right than the float network), hence the
    20,000 others."""
    columns = (
        "network", "calibration", "samples", "float right", "right", "theirs", "error",
        "theirs ", "held",
    )  # fmt: skip
    return Table(
        "Quantised after training", " ".join(says.split()), columns, tuple(rows)
    )

"""How long a build takes is said before it begins, if it is long."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnx
import pytest

import pybuild
from pybuild.cli import main
from pybuild.select import build_seconds as rates
from pybuild.select.build_seconds import in_words, nominal_seconds
from tests.bench.large_graphs import many_nodes

ROOT = Path(__file__).resolve().parents[2]
# a convolution's own scale and zero points are not layers of a build
DIFFER = re.compile(r"\| ([\d,]+) \| ([\d,]+) \| (generic|cortex-m4) \| ([\d.]+) \|")
NODES = re.compile(r"\| ([\d,]+) nodes \| ([\d,]+) \| build \| ([\d.]+) \|")
DENSE = re.compile(r"\| (\d+) dense layers \| ([\d,]+) \| build \| ([\d.]+) \|")


def numbers(*words: str) -> list[float]:
    return [float(word.replace(",", "")) for word in words]


def test_it_is_what_was_measured() -> None:
    """Of every build that docs/benchmarks-seconds.md says takes long: half to twice."""
    text = (ROOT / "docs" / "benchmarks-seconds.md").read_text()
    text = text[text.index("## Large models\n") :]
    found = []
    for row in DIFFER.finditer(text):
        layers, size, seconds = numbers(row[1], row[2], row[4])
        found.append((layers, size, row[3] != "generic", seconds))
    for pattern in (NODES, DENSE):
        for row in pattern.finditer(text):
            count, size, seconds = numbers(*row.groups())
            found.append((1.6 * count, size, False, seconds))  # of Sigmoid's and Conv's
    long = [one for one in found if one[3] > 10]
    assert len(long) >= 5
    for layers, size, known, seconds in long:
        said = nominal_seconds(int(layers), int(size), known)
        assert 0.5 < said / seconds < 2, (layers, size, known, seconds, said)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"), (14.6, "15 seconds"), (42, "40 seconds"), (88, "90 seconds"),
        (91, "2 minutes"), (3600, "60 minutes"), (5500, "2 hours"),
    ],
)  # fmt: skip
def test_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_the_command_says_it_before_it_builds(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(many_nodes(5), tmp_path / "net.onnx")
    words = ["build", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "out")]
    assert main(words) == 0
    assert "about" not in capsys.readouterr().err
    # as if each layer took a hundred seconds, on a machine that is half as fast
    monkeypatch.setattr(rates, "LAYER", 100.0)
    monkeypatch.setattr(rates, "fixed_work", lambda: 2 * rates.NOMINAL)
    layers = len(pybuild.load(tmp_path / "net.onnx").graph.nodes)
    before: list[str] = []
    monkeypatch.setattr(
        pybuild.Model, "build", lambda *_, **__: before.append(capsys.readouterr().err)
    )
    with pytest.raises(AttributeError):  # nothing was built
        main([*words, "--force"])
    assert before == [
        f"note: net.onnx: {layers} layers, about {in_words(200 * layers)}\n"
    ]


def test_it_grows_with_weights_and_cores() -> None:
    model = pybuild.load(many_nodes(100))
    assert model.build_seconds("cortex-m4") > 1.5 * model.build_seconds()
    assert nominal_seconds(1, 100_000_000, False) > 10

"""A quantised model and a table of chips are kept by content: what comes back is what
was made, other content is made anew, and damaged files are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.chips import fit as chips
from pybuild.cli import main
from pybuild.files import result_cache as files
from pybuild.files.result_cache import load_result, store_result
from pybuild.ir.graph_text import text
from pybuild.quantisation import cached as quantised
from pybuild.targets.chip import all_chips
from tests.toolchains import ROOT

FOLDER = ROOT / "examples" / "digits"
FLOAT, CALIBRATION = FOLDER / "digits_f32.onnx", FOLDER / "digits_calibration.npz"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CRT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_comes_back_is_what_was_made(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = pybuild.load(FLOAT)
    first = pybuild.quantise(model, CALIBRATION)
    (file,) = cache.iterdir()
    monkeypatch.setattr(quantised, "quantise", None)  # it is not called again
    told: list[tuple[int, int]] = []
    again = pybuild.quantise(
        pybuild.load(FLOAT), CALIBRATION, progress=lambda *at: told.append(at)
    )
    assert again.report == first.report and told == [(100, 100)]
    assert again.model.graph.nodes == first.model.graph.nodes
    assert again.model.graph.origins == first.model.graph.origins
    assert text(again.model.graph) == text(first.model.graph)
    one, other = (made.build(name="m").files() for made in (first, again))
    assert {n: str(t) for n, t in one.items()} == {n: str(t) for n, t in other.items()}
    monkeypatch.undo()
    monkeypatch.setenv("CRT_CACHE", str(cache))
    whole = file.read_bytes()
    for damaged in (b"", whole[:-9], b"{}", whole.replace(b": int8[", b": int9[")):
        file.write_bytes(damaged)
        assert pybuild.quantise(model, CALIBRATION).report == first.report
        assert file.read_bytes() == whole


@pytest.mark.parametrize("change", ["sample", "label", "option", "weight", "tool"])
def test_other_content_is_made_anew(
    change: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with np.load(CALIBRATION) as data:
        samples = {name: data[name][:8].copy() for name in data.files}
    model = pybuild.load(FLOAT)
    pybuild.quantise(model, samples)
    pybuild.quantise(model, samples)
    assert len(list(cache.iterdir())) == 1
    options = {}
    if change == "sample":
        samples["image"][0, 0, 0, 0] += 0.5
    elif change == "label":
        samples["labels"][0] ^= 1
    elif change == "option":
        options = {"equalise": False}
    elif change == "weight":
        name, value = next(
            (n, v) for n, v in model.graph.constants.items() if v.ndim == 4
        )
        other = value.copy()
        other.flat[0] += 0.25
        constants = {**model.graph.constants, name: other}
        graph = type(model.graph)(**{**vars(model.graph), "constants": constants})
        model = model.with_graph(graph)
    else:
        monkeypatch.setattr(quantised, "tool_digest", lambda: "another pybuild")
    pybuild.quantise(model, samples, **options)  # type: ignore[arg-type]
    assert len(list(cache.iterdir())) == 2


def test_off_and_unwritable_folders_keep_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for place in ("off", str(tmp_path / "file" / "below")):
        monkeypatch.setenv("CRT_CACHE", place)
        store_result("name", b"data")
        assert load_result("name") is None
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file"]


def test_what_was_used_longest_ago_goes(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.setattr(files, "_MOST", 2)
    for at, name in enumerate("ab"):
        store_result(name, name.encode())
        os.utime(cache / name, (at + 1, at + 1))
    assert load_result("a") == b"a"  # which is its latest use
    store_result("c", b"c")
    assert sorted(path.name for path in cache.iterdir()) == ["a", "c"]


def test_fit_is_there_at_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [chip for chip in all_chips() if chip.name in ("nrf52840", "ch32v003f4")]
    monkeypatch.setattr(chips, "all_chips", lambda: few)
    words = ["fit", str(FLOAT), "--quantise", str(CALIBRATION), "--json"]
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert len(first["chips"]) == 2
    monkeypatch.setattr(chips, "_fit", None)
    monkeypatch.setattr(quantised, "quantise", None)
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == first
    with pytest.raises(TypeError):
        main([*words, "--latency", "1ms"])

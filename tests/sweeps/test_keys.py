"""A build that was made is not made again, and all that changes it makes it another:
bytes of every file, options, tool; not the folder where files lie."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.files import result_cache
from pybuild.files.result_cache import tool_digest
from pybuild.project.read import project_of
from pybuild.sweeps.job import content_of
from pybuild.sweeps.plan import rows_of
from tests.sweeps.networks import network, project

QUANTISED = {
    "quantise": "calib.npz", "quantise-test": "test.npz", "data": "data",
    "labels": "labels.npy", "target": "cortex-m4",
}  # fmt: skip


def keys(axes: dict[str, Any], file: str = "tiny.onnx", name: str = "tiny") -> set[str]:
    said = project(Path(file), axes)
    said["models"] = {name: said["models"]["tiny"]}
    rows = rows_of(project_of(said))
    return {row.job.key for row in rows}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, its weights beside it, and samples."""
    monkeypatch.chdir(tmp_path)
    network(tmp_path, outside=True)
    x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(12, 4)
    for name in ("calib", "test"):
        np.savez(tmp_path / f"{name}.npz", x=x, labels=np.arange(12) % 3)
    (tmp_path / "data" / "x").mkdir(parents=True)
    for number in range(3):
        np.save(tmp_path / "data" / "x" / f"{number}.npy", x[number])
    np.save(tmp_path / "labels.npy", np.arange(3))
    return tmp_path


def _flip(path: str) -> Callable[[], None]:
    def act() -> None:
        data = bytearray(Path(path).read_bytes())
        data[-3] ^= 1
        Path(path).write_bytes(data)

    return act


def _sample() -> None:
    np.save("data/x/1.npy", np.ones(4, np.float32))


def _labels() -> None:
    np.save("labels.npy", np.zeros(3, np.int64))


@pytest.mark.parametrize(
    "change",
    [_flip("tiny.bin"), lambda: _another_model(), lambda: _samples("calib"),
     lambda: _samples("test"), _sample, _labels],
    ids=["weights beside", "model", "calibration", "test", "a sample", "labels"],
)  # fmt: skip
def test_bytes_of_every_file_count(here: Path, change: Callable[[], None]) -> None:
    before = keys(QUANTISED)
    assert keys(QUANTISED) == before
    change()
    after = keys(QUANTISED)
    assert not after & before and len(after) == len(before) == 1


def _another_model() -> None:
    data = Path("tiny.onnx").read_bytes()
    assert data.count(b"\x04tiny") == 1
    Path("tiny.onnx").write_bytes(data.replace(b"\x04tiny", b"\x04tinz"))


def _samples(name: str) -> None:
    with np.load(f"{name}.npz") as data:
        np.savez(f"{name}.npz", x=data["x"] * 2, labels=data["labels"])


def test_the_folder_does_not_count(here: Path, tmp_path: Path) -> None:
    before = keys(QUANTISED)
    other = tmp_path / "elsewhere"
    other.mkdir()
    for name in ("tiny.onnx", "tiny.bin", *QUANTISED.values()):
        if name == QUANTISED["target"]:
            continue
        shutil.move(here / name, other / name)
    moved = {w: f"elsewhere/{v}" if w != "target" else v for w, v in QUANTISED.items()}
    assert keys(moved, "elsewhere/tiny.onnx") == before
    what = project(Path("elsewhere/tiny.onnx"), moved)
    (row,) = rows_of(project_of(what))
    assert row.axes == QUANTISED, "nor is it told in the table"


def test_every_option_and_the_name_count(here: Path) -> None:
    seen = [keys({}), keys({}, name="other")]
    for axes in (
        {"target": "cortex-m4"}, {"optimise": "size"}, {"ram-limit": "1K"},
        {"quantise": "calib.npz"}, {"quantise": "calib.npz", "no-equalise": True},
        {"quantise": "calib.npz", "calibrate": "entropy"}, {"data": "calib.npz"},
    ):  # fmt: skip
        seen.append(keys(axes))
    every = set[str]().union(*seen)
    assert len(every) == len(seen)


def test_one_value_written_in_two_ways_is_one_build(here: Path) -> None:
    assert len(keys({"ram-limit": ["1K", 1024, "1024"]})) == 1
    assert keys({"optimise": [False, "balanced"]}) == keys({})


def test_the_tool_counts(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys({})
    tool_digest.cache_clear()
    monkeypatch.setattr(result_cache, "_PACKAGES", ("numpy",))
    try:
        assert not keys({}) & before
    finally:
        tool_digest.cache_clear()


def test_parameters_beside_a_graph_count(tmp_path: Path) -> None:
    """Of a graph JSON, whose digest is of its text alone."""
    from pybuild.model import Model
    from pybuild.sweeps.plan import model_digest

    graph = pybuild.load(network(tmp_path)).graph
    model = Model(str(tmp_path / "graph.json"), graph, "litert", "0" * 64)
    alone = model_digest(model)
    (tmp_path / "graph.params").write_bytes(b"one")
    with_one = model_digest(model)
    (tmp_path / "graph.params").write_bytes(b"two")
    assert len({alone, with_one, model_digest(model)}) == 3


def test_content_knows_names_and_what_lies_deep(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"1")
    before = content_of(tmp_path / "a")
    (tmp_path / "a" / "b" / "c").rename(tmp_path / "a" / "b" / "d")
    assert content_of(tmp_path / "a") != before

"""What a file of few bytes may ask for: refused with a reason, in bounded time and
memory; the bounds are those of docs/security.md."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.frontends import graphjson
from pybuild.frontends.onnx.reader import asked
from pybuild.frontends.onnx.reader.asked import take_nodes
from pybuild.params import budget
from pybuild.params.budget import FREE_BYTES, MOST_NODES, TIMES, Budget, TooMuch
from pybuild.params.files import read_arrays
from tests.attacks import hostile
from tests.toolchains import ROOT

NODES = "more than {} nodes"
# what is refused by nodes is so at FEW as at MOST_NODES; in --all, at that
FEW = MOST_NODES >> 5
BYTES = f"more bytes than {FREE_BYTES >> 20} MiB and {TIMES} times its own"
# CPU seconds; the slowest takes 2
MOST_SECONDS = 20


@pytest.fixture(params=[FEW, pytest.param(MOST_NODES, marks=pytest.mark.sweep)])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many nodes, and no more, are read."""
    count: int = request.param
    for module in (budget, asked):
        monkeypatch.setattr(module, "MOST_NODES", count)
    return count


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(hostile.nested_loops(100, 3), id="loops"),
        pytest.param(hostile.nested_loops(3, 12), id="loops_in_loops"),
        pytest.param(hostile.empty_loops(4096, 3), id="loops_of_nothing"),
        pytest.param(hostile.doubling_functions(19), id="functions"),
    ],
)
def test_many_nodes_are_refused(data: bytes, most: int) -> None:
    start = time.process_time()
    with pytest.raises(BuildError, match=NODES.format(most)):
        pybuild.load(data).build()
    assert time.process_time() - start < MOST_SECONDS


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(hostile.dilated(), "do not fit the step table", id="dilation"),
        pytest.param(hostile.roi_align(1 << 30), "samples each way", id="roi_align"),
        pytest.param(hostile.filled(1 << 40), "is too large", id="filled"),
    ],
)
def test_much_is_refused(data: bytes, reason: str) -> None:
    start = time.process_time()
    with pytest.raises(BuildError, match=reason):
        pybuild.load(data).build()
    assert time.process_time() - start < MOST_SECONDS


def test_functions_are_counted_before_they_are_written_out() -> None:
    file = onnx.load_model_from_string(hostile.doubling_functions(40))
    with pytest.raises(TooMuch, match=NODES.format(MOST_NODES)):
        take_nodes("net.onnx", file)


@pytest.mark.slow
def test_a_chain_of_too_many_nodes_is_refused(most: int) -> None:
    nodes = NODES.format(most)
    with pytest.raises(TooMuch, match=nodes):
        pybuild.load(hostile.chain(most + 1))
    with pytest.raises(TooMuch, match=nodes):
        graphjson.load("net.json", _nulls(most + 1), None)
    if most == FEW:
        assert len(pybuild.load(hostile.chain(most)).graph.nodes) == most


def _nulls(count: int) -> bytes:
    """A graph of so many inputs."""
    document = {
        "nodes": [{"op": "null", "name": f"x{i}", "inputs": []} for i in range(count)],
        "arg_nodes": list(range(count)),
        "heads": [[0, 0, 0]],
        "node_row_ptr": list(range(count + 1)),
        "attrs": {
            "dltype": ["list_str", ["float32"] * count],
            "shape": ["list_shape", [[1]] * count],
            "storage_id": ["list_int", list(range(count))],
        },
    }
    return json.dumps(document).encode()


LIMITED = """
import resource, sys
from tests.attacks import hostile
import pybuild
from pybuild.errors import BuildError
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
for data in (hostile.doubling_concats(20), hostile.doubling_concats(40),
             hostile.many_filled(40)):
    try:
        print(pybuild.load(data).build() is not None)
    except BuildError as error:
        print(str(error).splitlines()[0])
"""


def test_values_of_constants_are_bounded() -> None:
    """In an address space of 3 GB: what onnx infers, what is folded."""
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    small, doubled, filled = done.stdout.splitlines()
    assert small == "True"
    assert "is too large" in doubled
    assert re.search(BYTES, filled)


def _zipped(entries: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return file.getvalue()


def _program(model: bytes) -> bytes:
    """A .pt2 with this as its program."""
    return _zipped({"m/archive_format": b"pt2", "m/models/model.json": model})


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """An .npz of 300 MB of zeros in some 1.3 MB."""
    entry = io.BytesIO()
    np.save(entry, np.zeros(300 << 20, np.int8))
    return _zipped({"w.npy": entry.getvalue()})


def test_packed_files_are_no_bombs(bomb: bytes) -> None:
    assert len(bomb) < 2 << 20
    with pytest.raises(TooMuch, match=BYTES):
        read_arrays(bomb, "w.npz")
    with zipfile.ZipFile(io.BytesIO(bomb)) as archive:
        data = archive.read("w.npy")
    with pytest.raises(TooMuch, match=BYTES):
        pybuild.load(_program(data))


COMMAND = "import sys; from pybuild.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize("depth", [60, 100_000])
def test_deep_nesting_is_an_error(depth: int, tmp_path: Path) -> None:
    text = '{"nodes": ' + "[" * depth + "]" * depth + "}"
    toml = "x = " + "[" * depth + "]" * depth
    readers: list[Callable[[], object]] = [
        lambda: pybuild.load(text),
        lambda: pybuild.load(_program(text.encode())),
    ]
    for read in readers:
        with pytest.raises(BuildError):
            read()
    (tmp_path / "crt.toml").write_text(toml)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "build"],
        cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode in (2, 64), done.stderr
    assert "Traceback" not in done.stderr


def test_a_budget_is_spent_once() -> None:
    left = Budget("net.onnx", 100)
    left.take_bytes(FREE_BYTES + TIMES * 100)
    with pytest.raises(TooMuch):
        left.take_bytes(1)
    left.take_nodes(MOST_NODES)
    with pytest.raises(TooMuch):
        left.take_nodes()

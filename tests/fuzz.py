"""Feeds the readers of files with damaged ones: what they may do is refuse them.

python -m tests.fuzz [SECONDS] [TARGET...]: each target for so many seconds (600).
Exit status 1 at a finding. In C under ASan and UBSan, by libFuzzer where clang has
it; in Python by hypothesis, where anything but a BuildError is a finding.
"""

from __future__ import annotations

import atexit
import functools
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from pybuild.errors import BuildError
from pybuild.frontends import graphjson
from pybuild.ir.graph import Graph
from pybuild.params.blob import read_blob, write_blob
from pybuild.params.image_read import read_image
from pybuild.params.lz4 import pack
from tests.frontends.graphjson.test_graphjson import duplex
from tests.graphs.networks import classifier
from tests.params.images import arrays, sealed, seeds
from tests.toolchains import INCLUDE, ROOT, SOURCES, STRICT, links, require, run

CHECKS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
LIBFUZZER = (*CHECKS, "-fsanitize=fuzzer")
COVERED = (*CHECKS, "-fsanitize=fuzzer-no-link")
ROUND = 500  # examples from one seed

# ---- C ---------------------------------------------------------------------


def _lz4_seeds() -> list[bytes]:
    """Blocks, behind the two bytes that say what they unpack to."""
    plain = [b"", b"abc", bytes(700), bytes(range(256)) * 5, b"abcabcab" * 9 + b"end.."]
    return [len(data).to_bytes(2, "little") + pack(data) for data in plain]


def _rpc_seeds() -> list[bytes]:
    """A byte that says what follows; then calls, or bytes of a line."""
    graph, buffer = 15, 13
    calls = [
        [1], [2, 40], [3, buffer], [4, buffer, 8], [5, buffer, 8, 16], [6, buffer, 90],
        [7], [8, graph, 0, 0, 1], [9, graph, 0, 0, 4], [9, graph, 1, 0, 4],
        [10, graph, 1], [11, graph, 0], [12, graph], [13, graph], [14, graph, 14],
        [15, graph, 1, 12, 1], [16, graph], [17, graph, 0, graph, 1],
        [18, graph, buffer, 1], [0],
    ]  # fmt: skip
    packed = [bytes([len(c) + 4, *c, 1, 2, 3, 4]) for c in calls]
    line = b"\x7e" + bytes(16) + b"\x7e\x7d\x5d" + bytes(90) + b"\x7e"
    return [b"\1" + b"".join(packed), *(b"\1" + p for p in packed), b"\0" + line]


def fuzz_c(target: str, inputs: Sequence[bytes], seconds: int) -> str:
    """Runs tests/crt/fuzz_<target>.c; what it counted.

    Errors  AssertionError with the sanitizer's report, or if nothing was accepted
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        folder = Path(temporary)
        (folder / "seeds").mkdir()
        for number, data in enumerate(inputs):
            (folder / "seeds" / str(number)).write_bytes(data)
        said = run([*_command(target, folder, seconds)], cwd=folder)
    counts = re.findall(r"^\d+ tried.*$", said, re.M)
    assert counts and " 0 " not in counts[-1], said
    return f"{counts[-1]}"


def _command(target: str, folder: Path, seconds: int) -> list[object]:
    program = folder / "fuzz"
    own = ROOT / "tests" / "crt" / f"fuzz_{target}.c"
    where = ["-I", INCLUDE, "-o", program]
    if shutil.which("clang") and _has_libfuzzer(folder):
        run(["clang", *STRICT, *LIBFUZZER, own, *_runtime("clang", COVERED), *where])
        limits = [f"-max_total_time={seconds}", "-seed=1", "-verbosity=0"]
        return [program, *limits, "-max_len=4096", folder / "seeds"]
    gcc = require("gcc")
    checks = CHECKS if links(gcc, CHECKS, folder) else ("-g",)
    driver = ROOT / "tests" / "crt" / "fuzz_driver.c"
    run([gcc, *STRICT, *checks, own, driver, *_runtime(gcc, checks), *where])
    return [program, seconds, *sorted((folder / "seeds").iterdir())]


@functools.cache
def _runtime(compiler: str, checks: tuple[str, ...]) -> list[Path]:
    """crt as objects, for all targets."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-crt-"))
    atexit.register(shutil.rmtree, folder)
    run([compiler, *STRICT, *checks, "-I", INCLUDE, "-c", *SOURCES], cwd=folder)
    return sorted(folder.glob("*.o"))


def _has_libfuzzer(folder: Path) -> bool:
    return links("clang", COVERED, folder) and bool(
        run(["clang", "-print-file-name=libclang_rt.fuzzer-x86_64.a"]).startswith("/")
    )


# ---- Python ----------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(0, 300),
    st.sampled_from([2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]),
).map(lambda n: n.to_bytes(8, "little"))
PIECES = st.one_of(
    st.binary(min_size=1, max_size=9),
    st.builds(lambda n, width: n[:width], NUMBERS, st.sampled_from([1, 2, 4, 8])),
)
NEAR = st.sampled_from([40, 300, 10**6])
CHANGES = st.lists(st.tuples(NEAR, st.integers(0, 10**6), PIECES), max_size=4)
ENDS = st.one_of(st.just(10**6), st.integers(0, 3000))


def _damaged(inputs: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Copies with a few bytes changed, cut at times."""

    def apply(data: bytes, changes: list[tuple[int, int, bytes]], end: int) -> bytes:
        for near, at, piece in changes:
            at %= min(near, len(data))
            data = data[:at] + piece + data[at + len(piece) :]
        return data[:end]

    return st.builds(apply, st.sampled_from(inputs), CHANGES, ENDS)


def _blobs() -> list[bytes]:
    return [write_blob(arrays()), write_blob({}), write_blob({"w": [1.0, 2.0]})]


def _read_blob(data: bytes) -> None:
    made = read_blob(data)
    assert sum(array.nbytes for array in made.values()) <= len(data)


def _images() -> st.SearchStrategy[bytes]:
    """Most with a true checksum."""
    seal = st.sampled_from([True, True, True, False])
    return st.builds(
        lambda data, sealing: sealed(data) if sealing else data,
        _damaged(seeds()), seal,
    )  # fmt: skip


def _read_image(data: bytes) -> None:
    image = read_image(data)
    image.parameters()
    for entry in image.entries:
        image.value(entry.name)


def _graphs() -> list[dict[str, Any]]:
    top = duplex()
    for node in top["nodes"]:
        function = node.get("attrs", {}).get("func_name", "__")
        if function.startswith("elemwise_"):
            node["attrs"]["op"] = function.removeprefix("elemwise_")
    return [top, _dumped(classifier().graph()), _dumped(classifier(kind="f").graph())]


def _dumped(graph: Graph) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(graphjson.dump(graph)[0])
    return made


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 40), st.text(max_size=9),
    st.sampled_from([2**31, 2**63, -(2**64), 1e300, 0.5, "int8", "list_int", "add"]),
    st.integers(0, 400).map(str),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner)
    ),
    max_leaves=6,
)
# which place; then a value to put there, or another place to copy, or: take it out
EDITS = st.lists(
    st.tuples(
        st.integers(0, 10**5),
        st.one_of(
            VALUES.map(lambda value: ("put", value)),
            st.integers(0, 10**5).map(lambda at: ("copy", at)),
            st.just(("drop", None)),
        ),
    ),
    max_size=4,
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with every key or index of it."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _edited(text: str, edits: Sequence[tuple[int, tuple[str, Any]]]) -> bytes:
    top = json.loads(text)
    for at, (what, value) in edits:
        places = list(_places(top))
        if not places:
            break
        holder, key = places[at % len(places)]
        if what == "drop":
            del holder[key]
        elif what == "copy":
            other, there = places[value % len(places)]
            holder[key] = json.loads(json.dumps(other[there]))
        else:
            holder[key] = value
    return json.dumps(top).encode()


def _documents() -> st.SearchStrategy[bytes]:
    texts = [json.dumps(top) for top in _graphs()]
    edited = st.builds(_edited, st.sampled_from(texts), EDITS)
    return st.one_of(edited, edited, _damaged([text.encode() for text in texts]))


def _read_json(data: bytes) -> None:
    graphjson.load("net.json", data, None)


def fuzz_python(
    inputs: Callable[[], st.SearchStrategy[bytes]],
    read: Callable[[bytes], None],
    seconds: int,
) -> str:
    """Reads what hypothesis makes of `inputs`; how many were taken and refused.

    Errors  what `read` raised, with the smallest input found that makes it
    """
    end = time.monotonic() + seconds
    counts = [0, 0]

    def once(data: bytes) -> None:
        if time.monotonic() > end:
            return
        try:
            read(data)
        except BuildError:
            counts[1] += 1
        else:
            counts[0] += 1

    number, strategy = 0, inputs()
    rounds = settings(
        max_examples=ROUND, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    while time.monotonic() < end:
        number += 1
        rounds(seed(number)(given(strategy)(once)))()
    assert all(counts), f"{counts[0]} accepted, {counts[1]} refused"
    return f"{sum(counts)} tried, {counts[0]} accepted, {counts[1]} refused"


# ---- all --------------------------------------------------------------------

TARGETS: Mapping[str, Callable[[int], str]] = {
    "image": lambda seconds: fuzz_c("params", seeds(), seconds),
    "lz4": lambda seconds: fuzz_c("lz4", _lz4_seeds(), seconds),
    "rpc": lambda seconds: fuzz_c("rpc", _rpc_seeds(), seconds),
    "blob": functools.partial(fuzz_python, lambda: _damaged(_blobs()), _read_blob),
    "json": functools.partial(fuzz_python, _documents, _read_json),
    "image-python": functools.partial(fuzz_python, _images, _read_image),
}


def main(words: Sequence[str]) -> int:
    seconds = int(words[0]) if words else 600
    for name in words[1:] or TARGETS:
        print(f"{name:13}{TARGETS[name](seconds)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

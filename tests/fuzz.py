"""Feeds the readers of files with damaged ones: what they may do is refuse them.

python -m tests.fuzz [--coverage] [SECONDS] [TARGET...]: each for so many seconds (600);
exit status 1 at a finding. In C libFuzzer under ASan and UBSan; in Python Atheris or
hypothesis: all but a BuildError is one. --coverage: page.py of tests/fuzzers.
"""

from __future__ import annotations

import functools
import json
import math
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
from tests.frontends.graphjson.test_graphjson import duplex
from tests.fuzzers import corpora, of_c, of_python
from tests.fuzzers.harnesses import READERS as IN_PYTHON
from tests.fuzzers.outcome import SHORT, SHORT_INPUTS, Outcome
from tests.graphs.networks import classifier
from tests.params.images import sealed, seeds

ROUND = 500  # examples from one seed

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


def _images() -> st.SearchStrategy[bytes]:
    """Most with a true checksum."""
    seal = st.sampled_from([True, True, True, False])
    return st.builds(
        lambda data, sealing: sealed(data) if sealing else data,
        _damaged(seeds()), seal,
    )  # fmt: skip


def documents() -> list[dict[str, Any]]:
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


def _edited_documents() -> st.SearchStrategy[bytes]:
    texts = [json.dumps(top) for top in documents()]
    edited = st.builds(_edited, st.sampled_from(texts), EDITS)
    return st.one_of(edited, edited, _damaged([text.encode() for text in texts]))


def fuzz_python(
    inputs: Callable[[], st.SearchStrategy[bytes]],
    read: Callable[[bytes], None],
    seconds: int,
) -> str:
    """Reads what hypothesis makes of `inputs`; how many were taken and refused. Of no
    more than SHORT seconds a number of inputs: the same on any machine.

    Errors  what `read` raised, with the smallest input found that makes it
    """
    strategy = inputs()
    end = time.monotonic() + seconds if seconds > SHORT else math.inf
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

    number = 0
    rounds = settings(
        max_examples=ROUND, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    while time.monotonic() < end:
        number += 1
        rounds(seed(number)(given(strategy)(once)))()
        if seconds <= SHORT and sum(counts) >= SHORT_INPUTS:
            break
    assert all(counts), f"{counts[0]} accepted, {counts[1]} refused"
    return f"{sum(counts)} tried, {counts[0]} accepted, {counts[1]} refused"


# ---- all --------------------------------------------------------------------


def _by_hypothesis(
    inputs: Callable[[], st.SearchStrategy[bytes]], reader: str
) -> Callable[[int], str]:
    return functools.partial(fuzz_python, inputs, IN_PYTHON[reader].read)


def on_from_stored(name: str, seconds: int, folder: Path) -> Outcome:
    """A reader in C, or one in Python by Atheris, from its seeds and what is stored;
    the inputs are then in `folder`.
    """
    reader = of_c.READERS.get(name) or IN_PYTHON[name]
    inputs = corpora.put(folder, [*reader.seeds(), *corpora.stored(name)])
    if isinstance(reader, of_c.CReader):
        return of_c.fuzz_c(name, reader, inputs, seconds)
    return of_python.fuzz_python(name, inputs, seconds)


def _in_a_folder(name: str) -> Callable[[int], str]:
    def fuzz(seconds: int) -> str:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            return on_from_stored(name, seconds, Path(folder) / "inputs").words

    return fuzz


BY_HYPOTHESIS = {
    "blob": _by_hypothesis(lambda: _damaged(IN_PYTHON["params"].seeds()), "params"),
    "json": _by_hypothesis(_edited_documents, "graph-json"),
    "image-python": _by_hypothesis(_images, "crtp"),
}
BY_ATHERIS = tuple(IN_PYTHON) if of_python.is_there() else ()
TARGETS: Mapping[str, Callable[[int], str]] = {
    **{name: _in_a_folder(name) for name in of_c.READERS},
    **BY_HYPOTHESIS,
    **{name: _in_a_folder(name) for name in BY_ATHERIS},
}


def main(words: Sequence[str]) -> int:
    if words[:1] == ["--coverage"]:
        from tests.fuzzers.page import write

        return write(words[1:], on_from_stored)
    seconds = int(words[0]) if words else 600
    for name in words[1:] or TARGETS:
        print(f"{name:13}{TARGETS[name](seconds)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

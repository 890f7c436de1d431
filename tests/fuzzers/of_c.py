"""Readers in C under libFuzzer, where clang has it; else under fuzz_driver.c.

Each is one file, fuzz_NAME.c, with crt or what it names, under ASan and UBSan.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pybuild
from pybuild.model import Model
from pybuild.params.codecs import CODECS, LZ4
from pybuild.params.image_read import read_image
from pybuild.params.image_write import write_image
from pybuild.params.lz4 import pack
from tests.fuzzers import corpora
from tests.fuzzers.outcome import SHORT, SHORT_INPUTS, Outcome, Reach, counted
from tests.params.images import seeds
from tests.toolchains import INCLUDE, ROOT, SOURCES, STRICT, links, require, run

CHECKS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COVERED = (*CHECKS, "-fsanitize=fuzzer-no-link")
COUNTED = ("-g", "-O0", "-fprofile-instr-generate", "-fcoverage-mapping")
MOST_BYTES = 4096  # of an input


@dataclass(frozen=True)
class CReader:
    """fuzz_<name>.c of tests/crt or of this folder.

    files  whose coverage counts; made: writes what is compiled beside crt
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    files: tuple[str, ...]
    made: Callable[[Path], Sequence[Path]] | None = None

    @property
    def source(self) -> Path:
        places = (ROOT / "tests" / "crt", corpora.HERE)
        name = f"fuzz_{self.name}.c"
        return next(place / name for place in places if (place / name).exists())


def _lz4_seeds() -> list[bytes]:
    """Blocks, behind the two bytes that say what they unpack to."""
    plain = [b"", b"abc", bytes(700), bytes(range(256)) * 5, b"abcabcab" * 9 + b"end.."]
    return [len(data).to_bytes(2, "little") + pack(data) for data in plain]


def _rpc_seeds() -> list[bytes]:
    """A byte that says what follows, and whether there is a key; then calls, or bytes
    of a line."""
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
    whole = b"".join(packed)
    again = bytes([204]) + whole + bytes([164]) + whole  # a hello; a wrong tag
    keyed = [b"\5" + again, *(b"\5" + p for p in packed), b"\4" + line]
    return [b"\1" + again, *(b"\1" + p for p in packed), b"\0" + line, *keyed]


# ---- a generated model ---------------------------------------------------------


@functools.cache
def _net() -> pybuild.Library:
    """y = x * w + b + what y was in the run before: parameters and state."""
    made = pybuild.GraphBuilder("net")
    x, kept = made.input("x", (1, 4)), made.input("h", (1, 4))
    w = made.parameter("w", np.ones((4, 4), np.float32))
    b = made.parameter("b", np.ones(4, np.float32))
    made.output(made.op("add", made.op("dense", x, w, b), kept), "y")
    model = Model("net", made.build(), "litert", "").with_state({"h": "y"})
    return model.build(name="net", params="replaceable", input="consumable")


def _net_files(folder: Path) -> list[Path]:
    for name, text in _net().sources().items():
        (folder / name).write_text(str(text))
    return [folder / "net.c", folder / "net_weights.c"]


def _model_seeds() -> list[bytes]:
    """Images, plain and packed, each with calls of every kind."""
    whole = bytes(_net().weights.image)
    read = read_image(whole)
    packed = write_image(read.parameters(), CODECS[LZ4], 16, plan=read.plan)
    calls = bytes([0, 5, 0, 0, 1, 2, 3, 4, 0, 1, 0, 3, 0, 4, 3, 7, 1, 9, 2, 0, 1])
    calls += bytes([1, 7, 1, 0, 1, 1, 0, 12, 0, 16, 0, 10, 0, 16, 0, 13, 0, 0, 8, 0])
    calls += bytes([0, 11, 1, 4, 4, 1, 0, 0, 0, 0, 0, 0, 9, 2, 0, 0, 1, 0, 2, 0, 6])
    images = (whole, packed, whole[:60], b"")
    heads = [b"\1" + len(image).to_bytes(2, "little") + image for image in images]
    return [head + calls for head in heads] + [b"\0" + heads[0][1:] + calls[:16]]


READERS = {
    "image": CReader("params", seeds, ("params.c", "unpack.c")),
    "lz4": CReader("lz4", _lz4_seeds, ("lz4.c",)),
    "rpc": CReader(
        "rpc",
        _rpc_seeds,
        ("frame.c", "rpc.c", "calls.c", "objects.c", "hmac.c"),
    ),
    "model": CReader(
        "model", _model_seeds, ("state.c", "weights.c", "array.c"), _net_files
    ),
}

# ---- to build and to run them ----------------------------------------------------


@functools.cache
def libfuzzer() -> str:
    """A clang that has it, or ""."""
    archive = f"libclang_rt.fuzzer-{platform.machine()}.a"
    for clang in ("clang-19", "clang"):
        if (
            shutil.which(clang)
            and run([clang, f"-print-file-name={archive}"])[0] == "/"
        ):
            return clang
    return ""


def fuzz_c(name: str, reader: CReader, inputs: Path, seconds: int) -> Outcome:
    """Goes on from the files of a folder, which grows where there is libFuzzer.

    Errors  AssertionError with the sanitizer's report, or if nothing was accepted
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        folder = Path(temporary)
        clang = libfuzzer()
        if clang:
            made = _built(
                reader, folder, clang, (*CHECKS, "-fsanitize=fuzzer"), COVERED
            )
            ends = f"-max_total_time={seconds}"
            if seconds <= SHORT:
                ends = f"-runs={SHORT_INPUTS}"
            limits = [ends, "-seed=1", "-verbosity=0"]
            limits += [f"-max_len={MOST_BYTES}", *corpora.dictionary(name)]
            return counted(run([made, *limits, inputs], cwd=folder))
        gcc = require("gcc")
        checks = CHECKS if links(gcc, CHECKS, folder) else ("-g",)
        driver = ROOT / "tests" / "crt" / "fuzz_driver.c"
        made = _built(reader, folder, gcc, checks, checks, driver)
        return counted(run([made, seconds, *sorted(inputs.iterdir())], cwd=folder))


def _built(
    reader: CReader,
    folder: Path,
    compiler: str,
    checks: tuple[str, ...],
    of_crt: tuple[str, ...],
    *more: Path,
) -> Path:
    program = folder / "fuzz"
    files = [reader.source, *more, *(reader.made(folder) if reader.made else ())]
    where = ["-I", INCLUDE, "-I", ROOT / "tests" / "crt", "-I", folder]
    objects = _runtime(compiler, of_crt)
    run([compiler, *STRICT, *checks, *files, *objects, *where, "-o", program])
    return program


@functools.cache
def _runtime(compiler: str, checks: tuple[str, ...]) -> list[Path]:
    """crt as objects, for all readers."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-crt-"))
    atexit.register(shutil.rmtree, folder)
    run([compiler, *STRICT, *checks, "-I", INCLUDE, "-c", *SOURCES], cwd=folder)
    return sorted(folder.glob("*.o"))


def least(reader: CReader, inputs: Path, folder: Path) -> list[bytes]:
    """As few of the inputs as reach what all of them do."""
    checks = (*CHECKS, "-fsanitize=fuzzer")
    program = _built(reader, folder, libfuzzer(), checks, COVERED)
    kept = corpora.put(folder / "kept", [])
    run([program, "-merge=1", f"-max_len={MOST_BYTES}", kept, inputs], cwd=folder)
    return corpora.inputs_in(kept)


def reach(reader: CReader, inputs: Path, folder: Path) -> Reach:
    """What inputs reach of the reader's files, by clang's own counters."""
    clang = libfuzzer()
    checks = (*COUNTED, "-fsanitize=fuzzer")
    program = _built(reader, folder, clang, checks, COUNTED)
    profile = folder / "one.profraw"
    env = {**os.environ, "LLVM_PROFILE_FILE": str(profile)}
    subprocess.run([program, "-runs=0", inputs], env=env, check=True, cwd=folder,
                   capture_output=True)  # fmt: skip
    merged = folder / "all.profdata"
    version = clang.removeprefix("clang")
    run([f"llvm-profdata{version}", "merge", "-o", merged, profile])
    asked = [f"llvm-cov{version}", "export", "-summary-only", program]
    report = json.loads(run([*asked, f"-instr-profile={merged}"]))
    files = [one["summary"] for one in report["data"][0]["files"]
             if Path(one["filename"]).name in reader.files]  # fmt: skip
    assert len(files) == len(reader.files), reader.files
    lines, branches = (
        (sum(f[kind]["covered"] for f in files), sum(f[kind]["count"] for f in files))
        for kind in ("lines", "branches")
    )
    return Reach(lines, branches)

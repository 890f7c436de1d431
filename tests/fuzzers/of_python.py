"""Readers of pybuild under Atheris: libFuzzer with the branches of Python.

python -m tests.fuzzers.of_python READER SECONDS FOLDER FLAG...: one reader, in a
process of its own, since Atheris ends it. FOLDER holds inputs, and gets those that
reach more of the reader's files.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import subprocess
import sys
import time
import types
import warnings
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.fuzzers import corpora
from tests.fuzzers.outcome import SHORT, SHORT_INPUTS, Outcome, counted
from tests.toolchains import ROOT

HERE = "tests.fuzzers.of_python"
MOST_BYTES = 16384  # of an input
MOST_SECONDS, MOST_MEGABYTES = 60, 3000  # of one input, beyond that it is a finding


def is_there() -> bool:
    """Whether Atheris is installed: it has wheels for Linux and some versions."""
    return importlib.util.find_spec("atheris") is not None


def fuzz_python(name: str, inputs: Path, seconds: int) -> Outcome:
    """Goes on from the files of a folder, which grows.

    Errors  AssertionError with what was raised and the input, or if all was refused
    """
    limits = [f"-timeout={MOST_SECONDS}", f"-rss_limit_mb={MOST_MEGABYTES}", "-seed=1"]
    limits += [f"-max_len={MOST_BYTES}", "-verbosity=0", *corpora.dictionary(name)]
    command = [sys.executable, "-m", HERE, name, str(seconds), str(inputs), *limits]
    command.append(f"-artifact_prefix={inputs.parent}/")
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        found = sorted(inputs.parent.glob("*-*"), key=lambda path: path.stat().st_mtime)
        shown = repr(found[-1].read_bytes()) if found else "no input was kept"
        raise AssertionError(f"{done.stdout}{done.stderr[-2000:]}\n{shown}")
    return counted(done.stderr)


def main(words: list[str]) -> None:
    import atheris

    name, seconds, folder, *flags = words
    reader = _reader(name)
    warnings.simplefilter("ignore")
    for data in reader.seeds()[:3]:  # what is imported late
        _read(reader, data)
    for function in _functions(reader.files):
        atheris.instrument_func(function)
    counts = {"accepted": 0, "refused": 0}
    end, most = time.monotonic() + int(seconds), float("inf")
    if int(seconds) <= SHORT:
        end, most = float("inf"), SHORT_INPUTS

    def once(data: bytes) -> None:
        if time.monotonic() > end or sum(counts.values()) >= most:
            told = ", ".join(f"{count} {what}" for what, count in counts.items())
            print(f"{sum(counts.values())} tried, {told}", file=sys.stderr, flush=True)
            os._exit(0)  # all that was found is in the folder
        counts["accepted" if _read(reader, data) else "refused"] += 1

    atheris.Setup([sys.argv[0], folder, *flags], once)
    atheris.Fuzz()


def _reader(name: str) -> Any:
    """One of the table, or MODULE:NAME."""
    from tests.fuzzers.harnesses import READERS

    module, _, of_it = name.partition(":")
    return getattr(importlib.import_module(module), of_it) if of_it else READERS[name]


def _functions(files: tuple[str, ...]) -> list[types.FunctionType]:
    """Those that are written in these files."""
    named = [f"{ROOT}/{one}" for one in files]
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, types.FunctionType)
        and any(fnmatch(one.__code__.co_filename, pattern) for pattern in named)
    ]


def _read(reader: Any, data: bytes) -> bool:
    from pybuild.errors import BuildError

    try:
        reader.read(data)
    except BuildError as error:
        str(error)
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])

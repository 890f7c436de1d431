"""The cases of onnx.backend.test through both back ends: passed, refused, wrong.

python -m tests.frontends.onnx.cases [PATTERN...]: the outcome of the cases that match.
The C of many cases is compiled at once. Knows of pybuild what its backend module does.
"""

from __future__ import annotations

import fnmatch
import functools
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.backend import Refused, given, library_for, outputs_of
from pybuild.host.cc import compile_shared, loaded
from pybuild.host.native import Net
from pybuild.install import host_library
from pybuild.library import Library

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
BACKENDS = ("c", "llvm")
BATCH = 40
FLAGS = ("-std=c99", "-O0", "-ffp-contract=off", "-fPIC", "-shared", "-w")


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    result   "passed", "refused" or "wrong"
    why      it was refused or is wrong; of a passed one ""
    steered  inputs whose values were taken at build time
    by       back ends that give what ONNX expects
    """

    name: str
    operators: tuple[str, ...]
    result: str
    why: str = ""
    steered: tuple[str, ...] = ()
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Built:
    """One data set of a case with its library; `index` makes its C names."""

    case: Any
    library: Library
    inputs: dict[str, Any]
    wanted: list[Any]
    steered: tuple[str, ...]


@functools.cache
def cases(kind: str = "node") -> tuple[Any, ...]:
    """Without those that are a function's body written out."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind=kind)
    return tuple(case for case in found if "_expanded" not in case.name)


def outcomes(chosen: Iterable[Any]) -> Iterator[Outcome]:
    """Of every case, through LLVM and through C; batch after batch."""
    rest = iter(chosen)
    while batch := list(islice(rest, BATCH)):
        yield from _batch(batch)


def _batch(batch: Sequence[Any]) -> Iterator[Outcome]:
    built: dict[str, list[Built]] = {}
    refused: dict[str, Outcome] = {}
    for number, case in enumerate(batch):
        try:
            built[case.name] = list(_built(case, number))
        except Refused as error:
            first = str(error).splitlines()[0]
            refused[case.name] = Outcome(case.name, kinds_of(case), "refused", first)
        except Exception as error:  # a fault of ours, to be seen in the table
            why = f"{type(error).__name__}: {error}"
            refused[case.name] = Outcome(case.name, kinds_of(case), "wrong", why)
    with _Compiled([one.library for many in built.values() for one in many]) as nets:
        for case in batch:
            done = refused.get(case.name)
            yield done or _outcome(case, built[case.name], nets)


def _built(case: Any, number: int) -> Iterator[Built]:
    model, sets = model_and_data(case)
    constants = {tensor.name for tensor in model.graph.initializer}
    names = [v.name for v in model.graph.input if v.name not in constants]
    for index, (inputs, wanted) in enumerate(sets):
        values = given(names, inputs)
        library, steered = library_for(model, values, f"case_{number}_{index}")
        yield Built(case, library, values, wanted, steered)


def model_and_data(case: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    """The model of a case, and arrays in and out of each of its data sets."""
    from onnx.backend.test.runner import _normalize_tensor

    model, sets = case.model, case.data_sets
    if model is None:
        model, sets = _of_folder(Path(case.model_dir))
    plain = [
        ([_normalize_tensor(v) for v in a], [_normalize_tensor(v) for v in b])
        for a, b in sets
    ]
    return model, plain


def _of_folder(folder: Path) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    import onnx
    from onnx.backend.test.runner import Runner

    model = onnx.load(folder / "model.onnx")
    sets = []
    for part in sorted(folder.glob("test_data_set*")):
        pair: tuple[list[Any], list[Any]] = ([], [])
        roles = (("input", model.graph.input), ("output", model.graph.output))
        for into, (role, values) in zip(pair, roles, strict=True):
            for index in range(len(list(part.glob(f"{role}_*.pb")))):
                file = str(part / f"{role}_{index}.pb")
                Runner._load_proto(None, file, into, values[index].type)
        sets.append(pair)
    return model, sets


def kinds_of(case: Any) -> tuple[str, ...]:
    """Operators of a case, with their domain where it is not ONNX's own."""
    model = case.model if case.model is not None else model_and_data(case)[0]
    names = {f"{node.domain}.{node.op_type}" for node in model.graph.node}
    return tuple(sorted(name.removeprefix(".") for name in names))


class _Compiled:
    """Libraries compiled together to C; nets by library name."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self._libraries = libraries
        self._folder = tempfile.TemporaryDirectory(prefix="onnx-")

    def __enter__(self) -> dict[str, Net]:
        root = Path(self._folder.name)
        files = []
        for library in self._libraries:
            for file, text in library.sources().items():
                (root / file).write_text(text)
                files += [str(root / file)] if file.endswith(".c") else []
        if not files:
            return {}
        whole = root / "cases.so"
        compile_shared([*files, str(host_library())], [root], whole, FLAGS)
        return {
            library.name: Net(library.plan, loaded(library.name, whole, None))
            for library in self._libraries
        }

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _outcome(case: Any, built: Sequence[Built], nets: dict[str, Net]) -> Outcome:
    from onnx.backend.test.runner import Runner

    steered = tuple(sorted({name for one in built for name in one.steered}))
    why, by = "", dict.fromkeys(BACKENDS)
    for one in built:
        for code, net in zip(BACKENDS, (nets[one.library.name], None), strict=True):
            try:
                model = model_and_data(case)[0]
                names = [v.name for v in model.graph.output]
                found = outputs_of(net or one.library.host(code), names, one.inputs)
                Runner.assert_similar_outputs(
                    one.wanted, found, case.rtol, case.atol, case.name
                )
            except Exception as error:
                text = " ".join(str(error).split())[:300]
                why = why or f"{code}: {type(error).__name__}: {text}"
                by.pop(code, None)
    result = "wrong" if why else "passed"
    return Outcome(case.name, kinds_of(case), result, why, steered, tuple(by))


def main(patterns: Sequence[str]) -> int:
    chosen = [
        case
        for kind in KINDS
        for case in cases(kind)
        if any(fnmatch.fnmatch(case.name, p) for p in patterns or ("*",))
    ]
    count: Counter[str] = Counter()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in outcomes(chosen):
            count[one.result] += 1
            print(one.result, one.name, ",".join(one.steered), one.why)
    print(dict(count))
    return int(count["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

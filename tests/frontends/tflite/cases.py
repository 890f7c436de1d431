"""Files of one random operator against LiteRT's reference kernels: passed, refused,
wrong, or unknown to LiteRT.

python -m tests.frontends.tflite.cases [OPERATOR[-TYPE]...]. The C of many cases is
compiled at once; their LLVM code too.
"""

from __future__ import annotations

import fnmatch
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.host.cc import compile_shared, loaded
from pybuild.host.native import Net
from pybuild.install import host_library
from pybuild.library import Library
from pybuild.model import Model
from tests.frontends.tflite.draws import all_cases, drawn

Key = tuple[str, str, int]
BATCH = 60
SAMPLES = 3
FLAGS = ("-std=c99", "-O0", "-ffp-contract=off", "-fPIC", "-shared", "-w")


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    result  "passed", "refused" (by us), "wrong", or "unknown": LiteRT refuses it
    why     it is not passed; "" otherwise
    """

    key: Key
    result: str
    why: str = ""


@dataclass(frozen=True)
class Case:
    """A file with the values that LiteRT gives; `theirs` None where it refuses."""

    key: Key
    data: bytes
    samples: list[dict[str, Array]]
    theirs: list[list[Array]] | None
    why: str = ""

    @property
    def name(self) -> str:
        code, kind, number = self.key
        return f"{code}_{kind}_{number}".lower()


# without a kernel in the reference resolver, or with one that is wrong (SUM of int8):
# of these, what LiteRT registers otherwise
ELSEWHERE = ("CEIL", "ELU", "ROUND", "BROADCAST_TO", "SUM")


def litert(code: str, data: bytes) -> Any:
    from ai_edge_litert import interpreter

    kinds = interpreter.OpResolverType
    plain = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return interpreter.Interpreter(
        model_content=data,
        experimental_op_resolver_type=plain if code in ELSEWHERE else kinds.BUILTIN_REF,
    )


def made(key: Key) -> Case:
    """The file, with the shapes of outputs that LiteRT finds, and what it computes."""
    one = drawn(*key)
    samples = one.samples(SAMPLES)
    try:
        net = litert(key[0], one.bytes())
        net.allocate_tensors()
        _run(net, samples[0])
        for index, detail in zip(one.outputs, net.get_output_details(), strict=True):
            shape = tuple(int(d) for d in net.get_tensor(detail["index"]).shape)
            one.tensors[index] = replace(one.tensors[index], shape=shape)
        data = one.bytes()
        net = litert(key[0], data)
        net.allocate_tensors()
        theirs = [_run(net, sample) for sample in samples]
    except (RuntimeError, ValueError) as error:
        return Case(key, one.bytes(), samples, None, " ".join(str(error).split()))
    return Case(key, data, samples, theirs)


def _run(net: Any, sample: Mapping[str, Array]) -> list[Array]:
    for detail in net.get_input_details():
        net.set_tensor(detail["index"], sample[detail["name"]])
    net.invoke()
    return [np.array(net.get_tensor(d["index"])) for d in net.get_output_details()]


def outcomes(
    keys: Iterable[Key], codes: Sequence[str] = ("c", "llvm")
) -> Iterator[Outcome]:
    """Of every case, through every back end; batch after batch."""
    rest = iter(keys)
    while batch := list(islice(rest, BATCH)):
        yield from _batch(batch, codes)


def _batch(keys: Sequence[Key], codes: Sequence[str]) -> Iterator[Outcome]:
    built: list[tuple[Case, Library]] = []
    for key in keys:
        case = made(key)
        try:
            library = library_of(case)
        except BuildError as error:
            what = "unknown" if case.theirs is None else "refused"
            yield Outcome(key, what, str(error.problems[0]))
            continue
        except Exception as error:  # a fault of ours, to be seen in the table
            yield Outcome(key, "wrong", f"{type(error).__name__}: {error}")
            continue
        if case.theirs is None:
            yield Outcome(key, "unknown", f"built here, LiteRT: {case.why}")
            continue
        built.append((case, library))
    with tempfile.TemporaryDirectory(prefix="tflite-") as folder:
        nets = compiled([library for _, library in built], Path(folder), codes)
        for (case, library), ours in zip(built, nets, strict=True):
            yield compared(case, library, ours)


def library_of(case: Case, rounding: str = "litert") -> Library:
    graph = load(f"{case.name}.tflite", case.data, {})
    model = Model(f"{case.name}.tflite", graph, "litert", "0" * 64)
    return model.build(name=case.name, rounding=rounding)


def compiled(
    libraries: Sequence[Library], root: Path, codes: Sequence[str]
) -> list[list[tuple[str, Any]]]:
    """(back end, net) of every library; the C of all is one shared object."""
    found: list[list[tuple[str, Any]]] = [[] for _ in libraries]
    files = []
    for library in libraries if "c" in codes else ():
        for file, text in library.sources().items():
            (root / file).write_text(text)
            files += [str(root / file)] if file.endswith(".c") else []
    if files:
        whole = root / "cases.so"
        compile_shared([*files, str(host_library())], [root], whole, FLAGS)
        for library, nets in zip(libraries, found, strict=True):
            nets += [("c", Net(library.plan, loaded(library.name, whole, None)))]
    if "llvm" in codes:
        for library, nets in zip(libraries, found, strict=True):
            nets += [("llvm", library)]
    return found


def compared(case: Case, library: Library, nets: list[tuple[str, Any]]) -> Outcome:
    for code, net in nets:
        try:
            ready = net.host("llvm") if isinstance(net, Library) else net
            assert case.theirs is not None
            for sample, theirs in zip(case.samples, case.theirs, strict=True):
                ready.run(**sample)
                names = library.plan.graph.outputs
                for index, (name, wanted) in enumerate(zip(names, theirs, strict=True)):
                    same(np.array(ready.get_output(name)), wanted, index)
        except Exception as error:
            text = " ".join(str(error).split())[:400]
            return Outcome(case.key, "wrong", f"{code}: {type(error).__name__}: {text}")
    return Outcome(case.key, "passed")


def same(ours: Array, theirs: Array, index: int = 0) -> None:
    """Integers exactly; floats to 1e-5 of the largest."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), (
        f"output {index} is {ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}"
    )
    if ours.dtype != np.float32:
        np.testing.assert_array_equal(ours, theirs)
        return
    span = max(float(np.abs(theirs).max(initial=0)), 1e-6)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * span)


def main(arguments: Sequence[str]) -> int:
    count = 2
    if arguments and arguments[0].isdigit():
        count, arguments = int(arguments[0]), arguments[1:]
    chosen = [
        key
        for key in all_cases(count)
        if any(
            fnmatch.fnmatch(key[0], p) or fnmatch.fnmatch(f"{key[0]}-{key[1]}", p)
            for p in arguments or ("*",)
        )
    ]
    counts: Counter[str] = Counter()
    for one in outcomes(chosen):
        counts[one.result] += 1
        if one.result != "passed":
            print(one.result, "-".join(map(str, one.key)), one.why[:500])
    print(dict(counts))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

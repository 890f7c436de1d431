"""Runs single kernel candidates, as crt's runner would, through both printers.

One C program (sanitised) runs many jobs at once; the LLVM twin runs in this
process. Every buffer is an allocation of its own, so that a byte too far is seen.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from pybuild.dtype import Array
from pybuild.emit.kernels import c as c_printer
from pybuild.emit.kernels import llvm as llvm_printer
from pybuild.emit.kernels.llvm_declared import declarations
from pybuild.emit.kernels.llvm_grows import grown
from pybuild.emit.kernels.llvm_wide import definitions
from pybuild.host.jit import host_features
from pybuild.ir.graph import Graph
from pybuild.ir.loop import Func, Intrin
from pybuild.ir.loop_verify import intrins, with_distinct_parts
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests import toolchains
from tests.compiled import optimised_or_kept, plainly
from tests.kernels.kernel_cases import Case
from tests.near import sampled

Pointer = tuple[int, int]  # buffer, byte offset

DRIVER = r"""
static int32_t number(FILE *f)
{
    int32_t n;
    if (fread(&n, sizeof n, 1, f) != 1)
        exit(9);
    return n;
}

int main(int argc, char **argv)
{
    FILE *f = fopen(argv[1], "rb"), *out = fopen(argv[argc - 1], "wb");
    int32_t jobs = number(f);
    while (jobs-- > 0) {
        crt_kernel *kernel = kernels[number(f)];
        int32_t count = number(f), results = number(f), calls, width;
        uint8_t **buffer = malloc(sizeof *buffer * (size_t)count);
        int32_t *bytes = malloc(sizeof *bytes * (size_t)count);
        int32_t *args, arg_count = number(f);
        void **p;
        args = malloc(sizeof *args * (size_t)(arg_count + 1));
        for (int32_t i = 0; i < arg_count; i++)
            args[i] = number(f);
        for (int32_t i = 0; i < count; i++) {
            bytes[i] = number(f);
            buffer[i] = malloc((size_t)bytes[i]);
            if (fread(buffer[i], 1, (size_t)bytes[i], f) != (size_t)bytes[i])
                exit(9);
        }
        calls = number(f);
        width = number(f);
        p = malloc(sizeof *p * (size_t)width);
        for (int32_t i = 0; i < calls; i++) {
            for (int32_t j = 0; j < width; j++) {
                int32_t which = number(f), at = number(f);
                p[j] = buffer[which] + at;
            }
            kernel(p, args);
        }
        for (int32_t i = 0; i < results; i++)
            fwrite(buffer[i], 1, (size_t)bytes[i], out);
        for (int32_t i = 0; i < count; i++)
            free(buffer[i]);
        free(buffer);
        free(bytes);
        free(args);
        free(p);
    }
    return fclose(f) + fclose(out);
}
"""


@dataclass
class Job:
    """One candidate with the values of its inputs.

    in_place  number of the node's input whose memory the output takes, or None
    """

    candidate: Candidate
    arrays: Mapping[str, Array]
    outputs: Mapping[str, Array]  # shape and type of each output
    in_place: int | None = None
    buffers: list[bytes] = field(init=False)
    calls: list[list[Pointer]] = field(init=False)

    def __post_init__(self) -> None:
        self.buffers, self.calls = _schedule(self)


def _schedule(job: Job) -> tuple[list[bytes], list[list[Pointer]]]:
    """Buffers (outputs first) and the pointers of every call."""
    offer = job.candidate
    contents: list[bytes] = []
    index: dict[str, int] = {}
    for out in offer.outputs:
        index[out.tensor] = len(contents)
        contents.append(b"\xa5" * job.outputs[out.tensor].nbytes)
    if job.in_place is not None:
        taken = offer.inputs[job.in_place].tensor
        index[taken] = 0
        contents[0] = np.ascontiguousarray(job.arrays[taken]).tobytes()
    for access in offer.inputs:
        if access.tensor not in index:
            index[access.tensor] = len(contents)
            contents.append(np.ascontiguousarray(job.arrays[access.tensor]).tobytes())
    constants = [(len(contents) + i, 0) for i in range(len(offer.constants))]
    contents += [np.ascontiguousarray(c.array).tobytes() for c in offer.constants]
    pads = {}
    for access in (*offer.outputs, *offer.inputs):
        if access.pad_row is not None and access.tensor not in pads:
            assert len(access.pad_row) == access.row_bytes, access
            pads[access.tensor] = (len(contents), 0)
            contents.append(access.pad_row)
    scratch: list[Pointer] = []
    if offer.scratch:
        scratch = [(len(contents), 0)]
        contents.append(b"\x5a" * offer.scratch)
    calls = []
    for image in range(offer.images):
        for band in range(offer.bands):
            rows = [
                pointer
                for access in (*offer.outputs, *offer.inputs)
                for pointer in _window(access, image, band, index, pads)
            ]
            calls.append(rows + constants + scratch)
    return contents, calls


def _window(
    access: RowAccess,
    image: int,
    band: int,
    index: Mapping[str, int],
    pads: Mapping[str, Pointer],
) -> list[Pointer]:
    first = image * access.rows if access.stride else 0
    start = band * access.stride - access.pad
    found = []
    for row in range(start, start + access.window):
        if 0 <= row < access.rows:
            found.append((index[access.tensor], (first + row) * access.row_bytes))
        else:
            assert access.pad_row is not None, f"{access.tensor}: row {row} is outside"
            found.append(pads[access.tensor])
    return found


def run_candidate(
    candidate: Candidate, arrays: Mapping[str, Array], outputs: Mapping[str, Array]
) -> dict[str, Array]:
    """One candidate through the LLVM JIT."""
    return run_llvm([Job(candidate, arrays, outputs)])[0]


def _functions(jobs: Sequence[Job]) -> tuple[list[Func], list[int]]:
    """Different kernels, renamed where names clash, and which one each job uses."""
    numbers: dict[Func, int] = {}
    taken: set[str] = set()
    funcs: list[Func] = []
    for job in jobs:
        func = job.candidate.func
        if func in numbers:
            continue
        name, count = func.name, 1
        while name in taken:
            count += 1
            name = f"{func.name}_{count}"
        taken.add(name)
        numbers[func] = len(funcs)
        funcs.append(replace(func, name=name))
    return [*with_distinct_parts(funcs)], [numbers[j.candidate.func] for j in jobs]


def _results(job: Job, raw: Sequence[bytes]) -> dict[str, Array]:
    return {
        access.tensor: np.frombuffer(data, job.outputs[access.tensor].dtype).reshape(
            job.outputs[access.tensor].shape
        )
        for access, data in zip(job.candidate.outputs, raw, strict=True)
    }


def run_llvm(
    jobs: Sequence[Job], features: frozenset[str] = frozenset()
) -> list[dict[str, Array]]:
    """All jobs through LLVM in this process; each kernel is compiled once.

    features  of the processor, whose instructions Intrins may be
    """
    funcs, which = _functions(jobs)
    engines = engines_of(funcs, features)
    results = []
    for job, number in zip(jobs, which, strict=True):
        func = funcs[number]
        address = engines[func].get_function_address(func.name)
        kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)
        buffers = [_guarded(data) for data in job.buffers]
        starts = [ctypes.addressof(b) + GUARD for b in buffers]
        count = len(job.candidate.args)
        args = (ctypes.c_int32 * (count + 1))(*job.candidate.args)
        for call in job.calls:
            pointers = [starts[b] + at for b, at in call]
            kernel((ctypes.c_void_p * len(pointers))(*pointers), args)
        for buffer in buffers:
            assert buffer.raw[:GUARD] == buffer.raw[-GUARD:] == b"\xcc" * GUARD
        made = len(job.candidate.outputs)
        raw = [b.raw[GUARD:-GUARD] for b in buffers[:made]]
        results.append(_results(job, raw))
    return results


GUARD = 64


def _guarded(data: bytes) -> Any:
    fence = b"\xcc" * GUARD
    return ctypes.create_string_buffer(fence + data + fence, len(data) + 2 * GUARD)


def engines_of(
    funcs: Sequence[Func], features: frozenset[str] = frozenset()
) -> dict[Func, Any]:
    """In which each is compiled. In the tests of the whole tree LLVM optimises for one
    of four."""
    if not sampled.drawn:
        return dict.fromkeys(funcs, _compile(funcs, features))
    first = funcs[::4]
    others = [func for number, func in enumerate(funcs) if number % 4]
    found = dict.fromkeys(first, _compile(first, features))
    plainly(True)
    found |= dict.fromkeys(others, _compile(others, features)) if others else {}
    plainly(False)
    return found


def _compile(funcs: Sequence[Func], features: frozenset[str]) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=host_features(),
        opt=3,
        jit=True,
    )
    printed: set[str] = set()
    code = (llvm_printer.function(f, "", features, printed) for f in funcs)
    text = "\n".join(code)
    kinds, more = grown(features, funcs, text)
    text = "\n".join([*kinds, text, *more, *definitions(features, text)])
    head = f'target triple = "{machine.triple}"\n'
    head += f'target datalayout = "{machine.target_data}"\n'
    text = f"{head}{text}\n{declarations(features)}attributes #0 = {{ nounwind }}\n"
    module = llvm.parse_assembly(text)
    module.verify()
    optimised_or_kept(module, machine, host=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def c_source(funcs: Sequence[Func]) -> str:
    """One C file with every kernel and the intrinsics that they call."""
    needed: dict[str, Intrin] = {}
    for func in funcs:
        for intrin in intrins(func):
            known = needed.setdefault(intrin.name, intrin)
            # of pointers that may be written, and that may not, the C is one
            assert known == intrin or (known.c and known.c == intrin.c), intrin.name
    parts = ['#include "crt/abi.h"', '#include "crt/eights.h"', '#include "crt/wide.h"']
    parts += ['#include "crt/pairs.h"', '#include "crt/extremes.h"']
    parts += ['#include "crt/floats.h"', '#include "crt/between.h"']
    headers = sorted({intrin.header for intrin in needed.values()} - {""})
    parts += [f'#include "{header}"' for header in headers]
    parts += ["#include <math.h>", "#include <stdio.h>", "#include <stdlib.h>", ""]
    parts += [c_printer.inline_function(i) for i in needed.values() if i.c is None]
    parts += [c_printer.function(func) for func in funcs]
    names = ", ".join(func.name for func in funcs)
    parts.append(f"static crt_kernel *const kernels[] = {{{names}}};")
    return "\n".join(parts) + DRIVER


def run_c(
    jobs: Sequence[Job], folder: Path, compiler: str = "gcc"
) -> list[dict[str, Array]]:
    """All jobs through one strictly compiled C program, sanitised if that links."""
    funcs, which = _functions(jobs)
    source = folder / f"kernels_{compiler}.c"
    source.write_text(c_source(funcs))
    program, data, made = (folder / f"{compiler}.{end}" for end in ("exe", "in", "out"))
    flags = [*toolchains.STRICT, "-O0", "-ffp-contract=off"]
    checks = toolchains.SANITIZE[compiler]
    if toolchains.links(toolchains.require(compiler), checks, folder):
        flags += checks
    command = [compiler, *flags, f"-I{toolchains.INCLUDE}"]
    toolchains.run([*command, source, "-o", program])
    numbers = [np.asarray([len(jobs)], np.int32).tobytes()]
    for job, number in zip(jobs, which, strict=True):
        numbers += _job_bytes(job, number)
    data.write_bytes(b"".join(numbers))
    done = subprocess.run([program, data, made], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    raw, at, results = made.read_bytes(), 0, []
    for job in jobs:
        pieces = []
        for buffer in job.buffers[: len(job.candidate.outputs)]:
            pieces.append(raw[at : at + len(buffer)])
            at += len(buffer)
        results.append(_results(job, pieces))
    return results


def given(graph: Graph) -> Array:
    """Random values of x, of int8."""
    shape = graph.tensor("x").shape
    return np.random.default_rng(shape).integers(-128, 128, shape).astype(np.int8)


def jobs_of(
    found: Iterable[Candidate], x: Array, wanted: Array
) -> list[tuple[str, Job]]:
    """Each kernel of a layer from x to y, by its name: they all make the same."""
    named = [(one.func.name, one) for one in found if one.func]
    return [(name, Job(one, {"x": x}, {"y": wanted})) for name, one in named]


def named_jobs(
    cases: Iterable[Case], cores: Sequence[str], words: Sequence[str]
) -> list[tuple[str, Job]]:
    """Two of each kernel that serves a case on one of the cores, with its name, of
    those whose name has one of the words; numpy says what each must make.
    """
    found: dict[str, tuple[str, Job]] = {}
    for count, one in enumerate(cases):
        expected = one.expected()
        for core in cores:
            for offer in candidates(one.node, one.graph, TARGETS[core]):
                assert offer.func is not None
                name = offer.func.name
                if any(word in name for word in words):
                    job = Job(offer, one.arrays, {"y": expected})
                    found.setdefault(f"{name}{count % 2}", (name, job))
    return list(found.values())


def part_of(
    jobs: Sequence[tuple[str, Job]], part: int, parts: int
) -> list[tuple[str, Job]]:
    """Those of every so many kernels; jobs of one kernel together: compiled once."""
    names = set(sorted({name for name, _ in jobs})[part::parts])
    return [one for one in jobs if one[0] in names]


def must_be_equal(
    jobs: Sequence[tuple[str, Job]],
    run: Callable[[Sequence[Job]], list[dict[str, Array]]],
) -> None:
    for (name, job), made in zip(jobs, run([j for _, j in jobs]), strict=True):
        np.testing.assert_array_equal(made["y"], job.outputs["y"], name)


def _job_bytes(job: Job, kernel: int) -> list[bytes]:
    def ints(*values: int) -> bytes:
        return np.asarray(values, np.int32).tobytes()

    args = job.candidate.args
    head = ints(kernel, len(job.buffers), len(job.candidate.outputs), len(args), *args)
    parts = [head]
    for buffer in job.buffers:
        parts += [ints(len(buffer)), buffer]
    parts.append(ints(len(job.calls), len(job.calls[0])))
    parts.append(np.asarray(job.calls, np.int32).tobytes())
    return parts

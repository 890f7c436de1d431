"""Slices of every kernel writer, computed in the wrong order and each with noise in its
scratch, give the bytes of the whole: no slice counts on what another one left."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from pybuild.cores.core_plan import sliced_candidate
from pybuild.dtype import Array, DType
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.forms.test_every_writer import Layer, _layers
from tests.kernels.kernel_bench import GUARD, Job, _functions, _guarded, engines_of

CORES = ("cortex-m0", "cortex-m33", "rv32imc")
KINDS = (DType.INT8, DType.UINT8, DType.INT16, DType.FLOAT32)
Bytes = list[bytes]


@cache
def _some() -> tuple[Layer, ...]:
    """One of twenty layers."""
    return _layers()[::20]


def _arrays(layer: Layer, candidate: Candidate) -> dict[str, Array] | None:
    """Any values; None: of a type whose values decide what is read."""
    graph, chance = layer[1], np.random.default_rng(9)
    found: dict[str, Array] = {}
    for access in candidate.inputs:
        tensor = graph.tensor(access.tensor)
        if tensor.dtype not in KINDS:
            return None
        if tensor.dtype is DType.FLOAT32:
            found[tensor.name] = chance.normal(size=tensor.shape).astype(np.float32)
            continue
        ends = int(tensor.dtype.low), int(tensor.dtype.high) + 1
        values = chance.integers(*ends, tensor.shape)
        found[tensor.name] = values.astype(tensor.dtype.numpy)
    return found


def _pairs(
    core: str, layers: tuple[Layer, ...]
) -> Iterator[tuple[Candidate, Candidate, Mapping[str, Array], Mapping[str, Array]]]:
    """Kernels, the same in slices, their inputs, and the shapes of their outputs."""
    seen = set()
    for layer in layers:
        for offer in candidates(*layer, TARGETS[core], "balanced"):
            form = offer.func and (offer.func, offer.args)
            plain = replace(offer, finish=None, over=None)
            if offer.finish is not None or not form or form in seen:
                continue
            seen.add(form)
            made = sliced_candidate(plain, TARGETS[core], 3)
            arrays = _arrays(layer, offer)
            if made.slices and arrays is not None:
                outputs = {
                    a.tensor: np.zeros(
                        layer[1].tensor(a.tensor).shape,
                        layer[1].tensor(a.tensor).dtype.numpy,
                    )
                    for a in offer.outputs
                }
                yield plain, made, arrays, outputs


def _computed(kernel: Any, job: Job, turns: list[tuple[int, ...]]) -> Bytes:
    """The outputs after all calls, each with these arguments in turn."""
    buffers = [_guarded(data) for data in job.buffers]
    starts = [ctypes.addressof(b) + GUARD for b in buffers]
    noise = np.random.default_rng(3)
    for call in job.calls:
        pointers = [starts[b] + at for b, at in call]
        for args in turns:
            if job.candidate.scratch:
                size = job.candidate.scratch
                ctypes.memmove(pointers[-1], noise.bytes(size), size)
            held = (ctypes.c_int32 * (len(args) + 1))(*args)
            kernel((ctypes.c_void_p * len(pointers))(*pointers), held)
    for buffer in buffers:
        assert buffer.raw[:GUARD] == buffer.raw[-GUARD:] == b"\xcc" * GUARD
    return [b.raw[GUARD:-GUARD] for b in buffers[: len(job.candidate.outputs)]]


def _must_be_equal(core: str, layers: tuple[Layer, ...], least: int) -> None:
    jobs: list[tuple[Job, list[tuple[int, ...]]]] = []
    for plain, made, arrays, outputs in _pairs(core, layers):
        jobs.append((Job(plain, arrays, outputs), [plain.args]))
        turns = [*made.slices][::-1]
        jobs.append((Job(made, arrays, outputs), turns))
        for position in made.in_place:
            jobs.append((Job(made, arrays, outputs, position), turns))
    assert len(jobs) >= 2 * least
    funcs, which = _functions([job for job, _ in jobs])
    engines = engines_of(funcs)
    wanted: Bytes = []
    for (job, turns), number in zip(jobs, which, strict=True):
        func = funcs[number]
        address = engines[func].get_function_address(func.name)
        kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)
        found = _computed(kernel, job, turns)
        if not job.candidate.slices:
            wanted = found
            continue
        where = f"{func.name} {job.candidate.args} in place: {job.in_place}"
        assert found == wanted, where


@pytest.mark.parametrize("core", CORES)
def test_one_of_twenty_forms(core: str) -> None:
    _must_be_equal(core, _some(), 5)


@pytest.mark.sweep
@pytest.mark.parametrize("core", CORES)
def test_all_forms(core: str) -> None:
    _must_be_equal(core, _layers(), 100)

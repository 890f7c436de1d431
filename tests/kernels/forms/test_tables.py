"""Tables of bytes in every form, of counts with and without a rest, also in place: as
numpy's, through LLVM and as C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Quant
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, case, tensor

COUNTS = (1, 7, 8, 15, 16, 17, 40, 48, 63)
CORES = {"generic": {""}, "cortex-m4": {"", "_by8"}, "cortex-m55": {"", "_mve"}}


def cases() -> Iterator[Case]:
    """Every byte, signed and unsigned, to each type of byte."""
    chance = np.random.default_rng(11)
    given = (DType.INT8, DType.UINT8)
    for count in COUNTS:
        for x in given:
            for y in given:
                read = tensor((count,), x, 0.05, 3)
                yield case("quantize", (read,), tensor((), y, 0.03, 7), rounding="even")
        table = chance.integers(-128, 128, 256).astype(np.int8)
        quant = Quant((0.1,), (1,))
        read = ((count,), DType.INT8, quant)
        wanted = ((count,), DType.INT8, quant)
        yield case("lookup", (read, ((256,), DType.INT8, None)), wanted, {1: table})


def test_by_llvm_and_c(tmp_path: Path) -> None:
    jobs, forms = [], {core: set[str]() for core in CORES}
    for core, found in forms.items():
        for one in cases():
            for offer in candidates(one.node, one.graph, TARGETS[core]):
                assert offer.func is not None and offer.in_place == (0,)
                name = offer.func.name.removeprefix("lookup_s8")
                found.add(name.removesuffix("_rest"))
                for place in (None, 0):
                    made = {"y": one.expected()}
                    jobs.append(Job(offer, one.arrays, made, place))
    assert forms == CORES
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)

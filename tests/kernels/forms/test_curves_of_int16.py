"""logistic and tanh of int16 on half a curve: every element of int16 is LiteRT's, by
each core's kernel, whatever the scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.ir.graph import Quant
from pybuild.ir.loop import INT16
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, case, tensor

CORES = ("cortex-m0", "cortex-m4", "cortex-m55")
# of two to the power of something, far and near; of anything, far and near
SCALES = (2.0**-12, 2.0**-11, 2.0**-9, 0.000337, 0.0000391, 3e-7)
OPS = ("logistic", "tanh")
COUNTS = (1 << 16, 4093, 3, 1)


def _case(op: str, scale: float, count: int = 1 << 16) -> Case:
    out = (), INT16, Quant((2.0**-15,), (0,))
    one = case(op, (tensor((count,), INT16, scale),), out)
    x = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
    return replace(one, arrays={"x0": x if count > len(x) // 2 else x[-count:]})


def _jobs(counts: tuple[int, ...]) -> Iterator[Job]:
    for op in OPS:
        for count in counts:
            for scale in SCALES if count == counts[0] else SCALES[:1]:
                one = _case(op, scale, count)
                want = {"y": one.expected()}
                for core in CORES:
                    for offer in candidates(one.node, one.graph, TARGETS[core]):
                        yield Job(offer, one.arrays, want)
                        if count < 1 << 16:
                            yield Job(offer, one.arrays, want, 0)


@pytest.mark.parametrize("way", ["llvm", "c"])
def test_every_value(way: str, tmp_path: Path) -> None:
    jobs = list(_jobs(COUNTS))
    names = " ".join({job.candidate.func.name for job in jobs if job.candidate.func})
    for word in ("dsp4", "mve8", "mve4_rest", "shifted", "far", "dsp4_rest"):
        assert word in names, word
    results = run_llvm(jobs) if way == "llvm" else run_c(jobs, tmp_path)
    for job, result in zip(jobs, results, strict=True):
        name = job.candidate.func.name if job.candidate.func else ""
        np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize(("core", "most"), [("cortex-m4", 21), ("cortex-m55", 8)])
def test_few_instructions_an_element(core: str, most: float) -> None:
    """By estimate, of a scale that is no power of two."""
    for op in OPS:
        one = _case(op, SCALES[3], 4096)
        offers = candidates(one.node, one.graph, TARGETS[core])
        best = min(price(o, TARGETS[core]).instructions for o in offers)
        assert best <= most * 4096

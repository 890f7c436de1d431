"""Products of two computed tensors in each layout of the second: as numpy's, through
LLVM and as C. A float sum adds in one order, in whichever block it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from pybuild.ir.loop import FLOAT32, INT8, INT16
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, computed_product

SIZES = ((5, 17, 7), (4, 8, 4), (1, 5, 3), (6, 4, 1), (2, 31, 2), (8, 3, 6), (1, 3, 1))
# of each type: cores whose kernels differ, layouts (others have tests of columns)
KINDS = {
    FLOAT32: (("generic", "cortex-m0"), (True, False), SIZES),
    INT8: (("generic", "cortex-m4", "cortex-m55"), (True,), SIZES[:2]),
    INT16: (("cortex-m0", "cortex-m4", "cortex-m55"), (True,), SIZES[:2]),
}


def _in_order(one: Case) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Sums of float32, a product after the other."""
    a, b = one.arrays["x0"], one.arrays["x1"]
    if one.node.attrs.get("transpose_b"):
        b = b.swapaxes(-1, -2)
    total = np.zeros((*a.shape[:-1], b.shape[-1]), np.float32)
    for at in range(a.shape[-1]):
        total = total + a[..., at, None] * b[..., at, None, :]
    return total


def _cases() -> Iterator[tuple[Case, tuple[str, ...]]]:
    for dtype, (cores, layouts, sizes) in KINDS.items():
        for transposed, size in product(layouts, sizes):
            yield computed_product(dtype, size, 2, transposed=transposed), cores


def test_by_llvm_and_c(tmp_path: Path) -> None:
    jobs, blocks = [], set[str]()
    for one, cores in _cases():
        float_ = one.arrays["x0"].dtype == np.float32
        want = _in_order(one) if float_ else one.expected()
        np.testing.assert_allclose(want, one.expected(), rtol=1e-4, atol=1e-5)
        for core in cores:
            for offer in candidates(one.node, one.graph, TARGETS[core], "speed"):
                assert offer.func is not None
                transposed = "_transposed" in offer.func.name
                assert transposed == bool(one.node.attrs.get("transpose_b"))
                if float_:
                    blocks.add(offer.func.name.split("_")[2])
                jobs.append(Job(offer, one.arrays, {"y": want}))
    assert {"4x4", "1x3", "2x2", "4x1"} <= blocks
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)

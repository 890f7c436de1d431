"""resize_bilinear of float32: on vectors every bit is that of numpy, by LLVM, as C
under sanitizers and on a board.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import program_of, run_program
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.boards.devices import device
from tests.frontends.doors.layers import files
from tests.kernels.kernel_bench import Job, must_be_equal, run_c, run_llvm
from tests.kernels.kernel_cases import FLOAT32, case, tensor
from tests.toolchains import require

# x, rows and columns of y, half-pixel centers, corners aligned
CASES = (
    ((1, 5, 7, 16), (10, 14), True, False),
    ((2, 3, 4, 6), (7, 5), False, True),
    ((1, 4, 6, 4), (2, 3), False, False),
    ((1, 3, 3, 9), (6, 9), True, False),
)


@cache
def _jobs() -> list[tuple[str, Job]]:
    found = []
    for shape, sizes, half, corners in CASES:
        one = case(
            "resize_bilinear", (tensor(shape, FLOAT32),), tensor((), FLOAT32),
            sizes=sizes, half=half, corners=corners,
        )  # fmt: skip
        offers = candidates(one.node, one.graph, TARGETS["cortex-m55"])
        assert len(offers) == 2
        for offer in offers:
            assert offer.func is not None
            found.append(
                (offer.func.name, Job(offer, one.arrays, {"y": one.expected()}))
            )
    names = {name for name, _ in found}
    assert {"resize_bilinear_f32_mve", "resize_bilinear_f32_mve_rest"} < names
    return found


def test_by_llvm() -> None:
    must_be_equal(_jobs(), run_llvm)


@pytest.mark.slow
def test_by_c_with_sanitizers(tmp_path: Path) -> None:
    must_be_equal(_jobs(), lambda jobs: run_c(jobs, tmp_path))


def test_on_a_board() -> None:
    require("arm-none-eabi-gcc")
    model, on = pybuild.load(files("bilinear", False)["tflite"]), device("mps3-an547")
    library = model.build(name="net", target="cortex-m55")
    kernels = [step.candidate.func for step in library.plan.steps]
    assert any(k and k.name == "resize_bilinear_f32_mve" for k in kernels)
    chance, x = np.random.default_rng(2), model.graph.inputs[0]
    shape = model.graph.tensor(x).shape
    given = [{x: chance.normal(0, 2, shape).astype(np.float32)}]
    (found,) = run_program(on, program_of(on, library), given)
    for name, want in model.build().host("llvm").run(**given[0]).items():
        np.testing.assert_allclose(found[name], want, 1e-5, 1e-6)

"""add and sub by two multiplications: every pair of values, in 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.kernels.epilogues.affine_add import affine_add
from pybuild.ops.eltwise import add, add_parameters
from tests.kernels.kernel_cases import case, tensor

SCALES = ((0.05, 0.05, 0.07), (0.03, 0.05, 0.08), (0.07, 0.002, 0.05), (1.0, 1.0, 1.0))
# where values of the inputs meet in the middle of two outputs
TIED = ((1.0, 1.0, 2.0), (1.0, 0.5, 1.0), (1.0, 0.25, 2.0), (1.0, 2.0**-4, 1.0),
        (0.7, 0.31, 0.7))  # fmt: skip


@pytest.mark.parametrize("rule", ["double", "single", "away", "even"])
@pytest.mark.parametrize("op", ["add", "sub"])
def test_every_pair(op: str, rule: str) -> None:
    found = 0
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    for index, (left, right, out) in enumerate((*SCALES, *TIED)):
        inputs = (tensor(a.shape, scale=left, zero=3), tensor(b.shape, scale=right))
        clamp = ((None, None), (0.0, 2.0))[index % 2]
        made = case(op, inputs, tensor((), scale=out, zero=7), rounding=rule,
                    clamp=clamp)  # fmt: skip
        params = add_parameters(made.node, made.graph)
        form = affine_add(params)
        if form is None:
            continue
        found += 1
        total = a * form.a_factor + b * form.b_factor + form.offset
        if form.base is not None:
            total += (1 << form.shift - 1) - 1 + (total >> form.shift & 1)
        assert np.abs(total).max() < 1 << 31
        y = np.clip((total >> form.shift) + (form.base or 0), params.low, params.high)
        values = [a.astype(np.int8), b.astype(np.int8)]
        (want,) = add(made.node, made.graph, values)
        np.testing.assert_array_equal(y, want)
    # 0.7, 0.31: multipliers that are rounded one by one decide where ties go
    assert found >= len(SCALES) + len(TIED) - 2

"""add and sub by two multiplications: every pair of values, in 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.kernels.affine_add import affine_add
from pybuild.ops.eltwise import add, add_parameters
from tests.unit.kernel_cases import case, tensor

SCALES = ((0.05, 0.05, 0.07), (0.03, 0.05, 0.08), (0.07, 0.002, 0.05), (1.0, 1.0, 1.0))


@pytest.mark.parametrize("rule", ["double", "single", "away", "even"])
@pytest.mark.parametrize("op", ["add", "sub"])
def test_every_pair(op: str, rule: str) -> None:
    found = 0
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    for index, (left, right, out) in enumerate(SCALES):
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
        assert np.abs(total).max() < 1 << 31
        y = np.clip(total >> form.shift, params.low, params.high)
        values = [a.astype(np.int8), b.astype(np.int8)]
        (want,) = add(made.node, made.graph, values)
        np.testing.assert_array_equal(y, want)
    assert found >= 2

"""Outputs that are where the user binds them are whole, whatever rows do."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.graph_builder import GraphBuilder
from tests.graphs.rows import model_of
from tests.plan.test_rows import inputs_of


@pytest.mark.parametrize("options", [{}, {"push": ["x"]}, {"input": "consumable"}])
def test_a_lazy_output_is_no_ring(options: dict[str, object]) -> None:
    """All rows were written to the memory of the first."""
    net = GraphBuilder("lazy")
    x = net.input("x", (1, 11, 2, 4), "float32")
    w = np.random.default_rng(0).normal(0, 0.3, (3, 3, 1, 4)).astype(np.float32)
    y = net.op("conv2d", x, net.constant("w", w))
    net.output(net.op("pad", y, pads=((0, 0), (1, 0), (0, 0), (2, 0))), "y")
    model = model_of(net.build())
    values = inputs_of(model.graph)
    (wanted,) = model.build(plan="whole").host()(**values).values()
    made = model.build(lazy=["y"], **options)
    assert "y" not in made.plan.rings
    found, host = np.zeros_like(wanted), made.host()
    host.bind_output("y", found)
    host.run(**values)
    np.testing.assert_array_equal(found, wanted)

"""Numbers that crt's tables cannot hold were cut short, and results were wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.emit.tables.limits import must_fit
from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.plan.schedule.lock_step import can_join
from tests.graphs.networks import classifier
from tests.graphs.rows import model_of
from tests.plan.test_rows import inputs_of, must_equal, outputs_of


def joined(count: int) -> Graph:
    net = GraphBuilder("joined")
    pieces = [net.input(f"x{i}", (1, 2, 2, 1)) for i in range(count)]
    net.output(net.op("concat", *pieces, axis=3))
    return net.build()


def padded(rows: int, height: int = 2) -> Graph:
    net = GraphBuilder("padded")
    x = net.input("x", (1, height, 2, 1))
    w = net.constant("w", np.ones((1, 2, 1, 1), np.float32))
    net.output(net.op("conv2d", x, w, pads=(rows, 0, 0, 0)))
    return net.build()


def strided() -> Graph:
    net = GraphBuilder("strided")
    x = net.input("x", (1, 3, 1, 1))
    w = net.constant("w", np.ones((1, 1, 1, 1), np.float32))
    net.output(net.op("conv2d", x, w, strides=(65536, 1)))
    return net.build()


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            joined(256),
            "joined: node 'concat' (concat): 256 inputs do not fit the step table, "
            "at most 255. Hint: join some of them in a layer before",
        ),
        (
            padded(32768),
            "padded: node 'conv2d' (conv2d): 32768 rows of padding do not fit the step "
            "table, at most 32767. Hint: split the input, or swap its height and width",
        ),
        (
            strided(),
            "strided: node 'conv2d' (conv2d): 65536 rows or images do not fit the step "
            "table, at most 65535. Hint: split the input, or swap its height and width",
        ),
    ],
)
def test_a_layer_that_does_not_fit(graph: Graph, message: str) -> None:
    with pytest.raises(BuildError) as raised:
        model_of(graph).build()
    assert str(raised.value) == message


def test_as_many_inputs_as_fit() -> None:
    graph = joined(255)
    given = inputs_of(graph)
    wanted = np.concatenate([given[name] for name in graph.inputs], axis=3)
    must_equal(outputs_of(model_of(graph).build()), [wanted])


def test_a_model_that_does_not_fit() -> None:
    tables = classifier("net").model().build().tables
    must_fit(tables)
    for changes, message in (
        ({"steps": tables.steps * 32768}, "steps do not fit the tables, at most 32767"),
        ({"regions": tables.regions * 256}, "256 regions or devices do not fit"),
        (
            {"operands": (replace(tables.operands[0], at=1 << 32),)},
            "net: 4294967296 bytes of memory do not fit the tables, at most 4294967295."
            " Hint: split the model",
        ),
    ):
        with pytest.raises(BuildError, match=message):
            must_fit(replace(tables, **changes))


def test_who_reads_more_rows_at_once_than_a_link_counts_goes_alone() -> None:
    func = model_of(padded(1)).build().tables.kernels[0][0]

    def of_rows(rows: int) -> Candidate:
        access = RowAccess("x", rows, 1, window=rows, stride=0)
        return Candidate(func, (), (RowAccess("y", 1, 1),), (access,))

    assert can_join(of_rows(32767)) and not can_join(of_rows(32768))

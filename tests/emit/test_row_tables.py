"""How steps meet rows, in the tables: each way once; what is one row has none."""

from __future__ import annotations

import numpy as np

import pybuild
from pybuild.emit.tables.tables import SINGLE_ROW
from pybuild.library import Library
from pybuild.model import Model
from tests.graphs.networks import classifier


def images(count: int) -> Library:
    """Each image of one row: a layer for all images calls a kernel for each."""
    make = pybuild.GraphBuilder("images")
    x = make.input("x", (count, 1, 6, 4))
    w = np.random.default_rng(1).normal(0, 1, (4, 1, 3, 4)).astype(np.float32)
    make.output(make.op("conv2d", x, make.constant("w", w), pads=(0, 1, 0, 1)))
    return Model("images.test", make.build(), "litert", "0" * 64).build()


def test_each_way_is_there_once() -> None:
    tables = classifier("net", "int8").model().build(plan="whole").tables
    used = {operand.rows for operand in tables.operands}
    assert used == set(range(len(tables.rows))) and len({*tables.rows}) == len(used)
    assert len(used) > 2 and SINGLE_ROW in tables.rows


def test_a_row_of_several_images_is_found_in_each() -> None:
    for count in (1, 3):
        library = images(count)
        net = library.host()
        given = np.arange(count * 24, dtype=np.float32).reshape(count, 1, 6, 4)
        net.run(x=given)
        made = net.get_output(0)
        net.close()
        for image in range(count):
            one = images(1).host()
            one.run(x=given[image : image + 1])
            assert np.array_equal(made[image], one.get_output(0)[0])
            one.close()

"""A function of single values as 513 points, between which int16 kernels are linear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Tensor
from pybuild.ops.fixed_point.curves16 import points_of
from pybuild.ops.index import POINTS
from pybuild.ops.interpret import operator_of
from pybuild.quantisation.ranges import Floats
from pybuild.quantisation.regions import Region

# of an int8 output half a step
_OFF = 1 / 512


def points(graph: Graph, region: Region, x: Tensor, y: Tensor) -> Array:
    """int16[513]: what a region makes of each 128th value of x, in steps of y.

    x, y  the int16 tensors that it reads and makes
    """
    steps = _values(graph, region, x.scale) / y.scale
    return points_of(steps[::2], steps[1::2]).astype(np.int16)


def is_smooth(graph: Graph, region: Region, scale: float, reach: float) -> bool:
    """True if lines between the points are as near as int8 is.

    scale  of the int16 that it reads; reach: the greatest magnitude that it makes
    """
    made = _values(graph, region, scale)
    if not np.isfinite(made).all():
        return False
    here, middle = made[::2].clip(-reach, reach), made[1::2].clip(-reach, reach)
    off = np.abs((here[1:] + here[:-1]) / 2 - middle).max()
    return bool(off <= _OFF * reach)


def _values(graph: Graph, region: Region, scale: float) -> Floats:
    """At each 64th integer from the least on, up to one after the last."""
    places = np.arange(2 * POINTS - 1) * 64 - 32768
    shape = places.shape
    tensors = dict(graph.tensors)
    for name in (region.source, *(n.output for n in region.nodes)):
        tensors[name] = replace(tensors[name], shape=shape)
    small = replace(graph, tensors=tensors)
    values: dict[str, Array] = {region.source: (places * scale).astype(np.float32)}
    for node in region.nodes:
        reads = [values.get(n, graph.constants.get(n)) if n else None
                 for n in node.inputs]  # fmt: skip
        with np.errstate(all="ignore"):
            made = operator_of(node, small).reference(node, small, reads)[0]
        values[node.output] = np.broadcast_to(made.reshape(-1), shape)
    return values[region.output].astype(np.float64)

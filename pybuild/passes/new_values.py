"""Replaces constants by weights that are given beside a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem, all_known
from pybuild.ir.graph import Graph


def with_values(graph: Graph, values: Mapping[str, Array]) -> Graph:
    """The graph with these values of its constants, by their names.

    Errors  BuildError for a name that is none, or another shape or type
    """
    names = graph.meant(values, graph.constants)
    unknown = [name for name in names if name not in graph.constants]
    all_known(unknown, map(graph.shown, graph.constants), "weights")
    made, wrong = {}, []
    for name, value in zip(names, values.values(), strict=True):
        tensor, array = graph.tensor(name), np.asarray(value)
        if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
            want = f"{tensor.dtype.value}{list(tensor.shape)}"
            have = f"{array.dtype.name}{list(array.shape)}"
            wrong.append(Problem("weights", f"'{name}' is {want}, not {have}"))
        made[name] = np.array(array, tensor.dtype.numpy, order="C")
    if wrong:
        raise BuildError.of(wrong)
    return replace(graph, constants={**graph.constants, **made})

"""Inputs that a model takes in rows, on this machine."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.host.abi import check, ffi
from pybuild.host.named_tensors import Key, index_of
from pybuild.ir.graph import Tensor
from pybuild.kernels.base.candidate import TASK_INPUT


class Pushed:
    """The inputs of an instance that are pushed.

    model  `const struct crt_model *`
    rows   of each pushed input, by its number
    given  such inputs as a whole, until a run
    """

    def __init__(self, lib: Any, model: Any, graph: Any, pointers: Any) -> None:
        self._lib, self._graph, self._pointers = lib, graph, pointers
        steps = [model.steps[i] for i in range(model.step_count)]
        self.rows = {
            int(step.args[1]): int(model.rows[step.operands[0].rows].count)
            for step in steps
            if step.kernel == ffi().NULL and step.args[0] == TASK_INPUT
        }
        self.given: dict[int, Array] = {}

    def push(self, index: int, tensor: Tensor, value: Any) -> int:
        """Pushes rows [n, ...]; returns crt's status.

        Errors  ValueError for another type, or no whole rows
        """
        each = tensor.size // self.rows.get(index, 1)
        rows: Array = np.ascontiguousarray(value)
        if rows.dtype != tensor.dtype.numpy or rows.size % each:
            want, have = tensor.dtype.value, f"{rows.dtype.name}{list(rows.shape)}"
            raise ValueError(
                f"rows of '{tensor.name}' are {want}[n,{each}], not {have}"
            )
        data = ffi().cast("const void *", rows.ctypes.data)
        given = self._graph, self._pointers, index, data, rows.size // each
        return int(self._lib.crt_graph_push_rows(*given))

    def take(self, index: int, array: Array) -> bool:
        """True if an array given whole is to be pushed, by the next run."""
        if index in self.rows:
            self.given[index] = array.copy()
        return index in self.rows

    def wanted(self, index: int) -> int:
        """The rows needed before anything more can be computed."""
        return check(int(self._lib.crt_graph_rows_wanted(self._graph, index)))

    def go(self, count: int) -> int:
        """Pushes the arrays that were given whole, or ends a run whose rows were
        pushed; returns its error code."""
        if self.given.keys() != self.rows.keys():
            return int(self._lib.crt_graph_pushed(self._graph))
        given, self.given = self.given, {}
        inputs = ffi().new("const void *[]", count)
        for index, rows in given.items():
            inputs[index] = ffi().cast("const void *", rows.ctypes.data)
        call = self._graph, self._pointers, inputs
        return int(self._lib.crt_graph_push_inputs(*call))


class Pushing(abc.ABC):
    """The part of an instance that runs it: at once, or as rows come."""

    pushed: Pushed
    inputs: tuple[Tensor, ...]
    _lib: Any

    @property
    @abc.abstractmethod
    def _graph(self) -> Any: ...

    _pointers: Any

    @abc.abstractmethod
    def _check(self, code: int) -> None: ...

    def push_rows(self, key: Key, rows: Any) -> None:
        """Passes the next rows of an input; the last ones finish the run.

        Errors  CRT_ERR_ROWS, CRT_ERR_PUSHED; ValueError for another type or length
        """
        index = index_of(key, self.inputs, "input")
        self._check(self.pushed.push(index, self.inputs[index], rows))

    def rows_wanted(self, key: Key) -> int:
        """The rows of an input needed before anything more can be computed; 0: another
        input is next."""
        return self.pushed.wanted(index_of(key, self.inputs, "input"))

    def _go(self) -> int:
        if self.pushed.rows:
            return self.pushed.go(len(self.inputs))
        return int(self._lib.crt_graph_run(self._graph, self._pointers))

"""A built model on this machine: the planned arena and step table, run by crt.

numpy in, numpy out, through cffi; the interpreter lock is free while running.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.graph import Tensor
from pybuild.ops import OPERATORS
from pybuild.plan.plan import ARENA_ALIGN, Plan
from pybuild.run.abi import CrtError, check, ffi
from pybuild.run.weights import Weights

Key = str | int
# CRT_ERR_INPUT_MISSING, CRT_ERR_INPUT_CONSUMED, CRT_ERR_UNBOUND
_NAMED = (-8, -9, -14)


class Net:
    """One instance of a model: set, run, get.

    Owner   arena and bound arrays are kept alive by this object
    Thread  one thread at a time; run() releases the interpreter lock
    Errors  KeyError listing the known names; ValueError for a wrong shape or type;
            pybuild.run.abi.CrtError subclasses from crt
    """

    def __init__(self, plan: Plan, library: Path, model: int, keep: object) -> None:
        self.plan = plan
        self._keep = keep
        self._ffi = ffi()
        self._lib = self._ffi.dlopen(str(library))
        self._model = self._ffi.cast("const struct crt_model *", model)
        graph = plan.graph
        self.inputs = tuple(graph.tensor(n) for n in graph.inputs)
        self._outputs = tuple(graph.tensor(n) for n in graph.outputs)
        self.parameters = tuple(slot.tensor for slot in plan.slots.values())
        self._sources: list[Weights] = []
        self._bound: dict[str, Array] = {}
        self._new_instance()

    @classmethod
    def load(cls, plan: Plan, library: Path, name: str, keep: object) -> Net:
        """A model compiled, with crt, into a shared library."""
        symbols = ctypes.CDLL(str(library))
        address = ctypes.addressof(ctypes.c_char.in_dll(symbols, f"{name}_model"))
        return cls(plan, library, address, (symbols, keep))

    def _new_instance(self) -> None:
        new, model = self._ffi.new, self._model
        size = max(self.plan.arena_bytes, 1)
        self.arena = np.zeros(size + ARENA_ALIGN, np.uint8)
        shift = -self.arena.ctypes.data % ARENA_ALIGN
        self.arena = self.arena[shift : shift + size]
        self._region = new("struct crt_region *")
        self._region.ptr = self._ffi.cast("void *", self.arena.ctypes.data)
        self._region.bytes = size
        count = model.region_count + model.input_count + model.output_count
        count += 2 * model.parameter_count + (model.device_count > 1)
        self._base = new("void *[]", count)
        self._fresh = new("uint32_t[]", model.input_count // 32 + 1)
        self._pointers = new("void *[]", max(int(model.pointer_count), 1))
        self._graph = new("struct crt_graph *")
        check(
            self._lib.crt_graph_init(
                self._graph, model, self._base, self._fresh, self._region, 1
            )
        )

    def _index(self, key: Key, tensors: tuple[Tensor, ...], role: str) -> int:
        if isinstance(key, int):
            if not 0 <= key < len(tensors):
                raise KeyError(f"{role} {key}: there are {len(tensors)}")
            return key
        for index, tensor in enumerate(tensors):
            if tensor.name == key:
                return index
        known = ", ".join(repr(t.name) for t in tensors)
        raise KeyError(f"{role} '{key}' is not known; there is {known}")

    def _fitting(self, tensor: Tensor, value: Any) -> Array:
        array = np.asarray(value)
        if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
            want = f"{tensor.dtype.value}{list(tensor.shape)}"
            have = f"{array.dtype.name}{list(array.shape)}"
            raise ValueError(f"'{tensor.name}' is {want}, not {have}")
        return np.ascontiguousarray(array)

    def set_input(self, key: Key, value: Any) -> None:
        """Copies an array of the tensor's shape and type into the model."""
        index = self._index(key, self.inputs, "input")
        array = self._fitting(self.inputs[index], value)
        data = self._ffi.cast("const void *", array.ctypes.data)
        check(self._lib.crt_graph_set_input(self._graph, index, data, array.nbytes))

    def bind_input(self, key: Key, array: Array) -> None:
        """Lets runs read a contiguous array where it is, without a copy."""
        index = self._index(key, self.inputs, "input")
        self._fitting(self.inputs[index], array)
        if not array.flags.c_contiguous:
            raise ValueError(f"'{self.inputs[index].name}' must be contiguous")
        data = self._ffi.cast("const void *", array.ctypes.data)
        check(self._lib.crt_graph_bind_input(self._graph, index, data, array.nbytes))
        self._bound[f"input {index}"] = array

    def bind_output(self, key: Key, array: Array) -> None:
        """Lets runs write an output into a contiguous, writable array."""
        index = self._index(key, self._outputs, "output")
        self._fitting(self._outputs[index], array)
        if not (array.flags.c_contiguous and array.flags.writeable):
            name = self._outputs[index].name
            raise ValueError(f"'{name}' must be contiguous and writable")
        data = self._ffi.cast("void *", array.ctypes.data)
        check(self._lib.crt_graph_bind_output(self._graph, index, data, array.nbytes))
        self._bound[f"output {index}"] = array

    def run(self, **inputs: Any) -> None:
        """Sets the given inputs, then runs once."""
        for name, value in inputs.items():
            self.set_input(name, value)
        self._check(self._lib.crt_graph_run(self._graph, self._pointers))

    def load_params(self, weights: Weights) -> None:
        """Binds the parameters of an image where they lie; others stay."""
        check(self._lib.crt_graph_load_params(self._graph, weights.struct))
        self._sources.append(weights)

    def share_params(self, donor: Net, names: Iterable[str] | None = None) -> None:
        """Makes parameters, or those of these names, the donor's own.

        Owner   the image stays in use when the donor is gone
        Errors  KeyError for an unknown name, CRT_ERR_LAYOUT, CRT_ERR_CONTENT, ...
        """
        everything = [t.name for t in self.parameters]
        for name in everything if names is None else names:
            mine = self._index(name, self.parameters, "parameter")
            theirs = donor._index(name, donor.parameters, "parameter")
            check(
                self._lib.crt_graph_share_parameter(
                    self._graph, mine, donor._graph, theirs
                )
            )
        self._sources += donor._sources

    def release_params(self) -> None:
        """Unbinds all parameters."""
        check(self._lib.crt_graph_release_params(self._graph))
        self._sources.clear()

    def parameter_address(self, key: Key) -> int:
        """Where runs read a parameter; 0: it is not bound."""
        index = self._index(key, self.parameters, "parameter")
        there = self._lib.crt_graph_parameter(self._graph, index)
        return int(self._ffi.cast("uintptr_t", there))

    def setup(self) -> None:
        """Checks once that everything is bound.

        Errors  CRT_ERR_UNBOUND naming it
        """
        self._check(self._lib.crt_graph_setup(self._graph))

    def _check(self, code: int) -> None:
        """As check; the message names what is missing."""
        try:
            check(code)
        except CrtError as error:
            missing = self._lib.crt_graph_missing(self._graph)
            if error.code not in _NAMED or not missing:
                raise
            name = self._ffi.string(missing.name).decode()
            raise type(error)(f"{error}: '{name}'") from None

    def reset(self) -> None:
        """Forgets inputs and results."""
        check(self._lib.crt_graph_reset(self._graph))

    def get_output(self, key: Key) -> Array:
        """A copy of an output of the last run."""
        index = self._index(key, self._outputs, "output")
        tensor = self._outputs[index]
        array: Array = np.empty(tensor.shape, tensor.dtype.numpy)
        data = self._ffi.cast("void *", array.ctypes.data)
        check(self._lib.crt_graph_get_output(self._graph, index, data, array.nbytes))
        return array

    def outputs(self) -> dict[str, Array]:
        """Copies of all outputs by name."""
        return {t.name: self.get_output(i) for i, t in enumerate(self._outputs)}

    def __call__(self, **inputs: Any) -> dict[str, Array]:
        self.run(**inputs)
        return self.outputs()

    def run_recorded(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Runs once; every tensor of the plan, taken as its rows are written."""
        record = {
            index: np.zeros(self._tensor(step.node.output).bytes, np.uint8)
            for index, step in enumerate(self.plan.steps)
        }

        def hook(context: Any, step: int, row: int, count: int, rows: Any) -> int:
            size = self.plan.steps[step].candidate.outputs[0].row_bytes
            data = np.frombuffer(self._ffi.buffer(rows, count * size), np.uint8)
            record[step][row * size : (row + count) * size] = data
            return 0

        handle = self._ffi.callback("crt_hook", hook, error=1)
        check(self._lib.crt_graph_set_hook(self._graph, handle, self._ffi.NULL))
        try:
            self.run(**inputs)
        finally:
            self._lib.crt_graph_set_hook(self._graph, self._ffi.NULL, self._ffi.NULL)
        return self._tensors(record, inputs)

    def _tensor(self, name: str) -> Tensor:
        return self.plan.graph.tensor(name)

    def _tensors(
        self, record: Mapping[int, Array], inputs: Mapping[str, Any]
    ) -> dict[str, Array]:
        """What the steps wrote, and the views that no step had to write."""
        graph = self.plan.graph
        values: dict[str, Array] = {n: np.asarray(v) for n, v in inputs.items()}
        for index, step in enumerate(self.plan.steps):
            tensor = self._tensor(step.node.output)
            raw = record[index].view(tensor.dtype.numpy)
            values[tensor.name] = raw.reshape(tensor.shape)
        for node in graph.nodes:
            if node.output not in values:
                reads = [
                    graph.constants.get(n, values.get(n)) if n else None
                    for n in node.inputs
                ]
                made = OPERATORS[node.op].reference(node, graph, reads)
                values.update(zip(node.outputs, made, strict=True))
        return values

    def layer_seconds(self, runs: int, inputs: Mapping[str, Any]) -> list[list[float]]:
        """Seconds of each step, for each of `runs` runs."""
        clock = time.perf_counter
        rows = []
        for _ in range(runs):
            for name, value in inputs.items():
                self.set_input(name, value)
            row = []
            for stage in range(self._model.stage_count):
                start = clock()
                code = self._lib.crt_graph_run_stage(self._graph, self._pointers, stage)
                row.append(clock() - start)
                check(code)
            rows.append(row)
        return rows

    def close(self) -> None:
        """Gives the memory back; the object is of no use afterwards."""
        self._bound.clear()
        self._keep = None
        self._graph = self._base = self._region = None

"""A built model on this machine: the planned arena and step table, run by crt.

numpy in, numpy out, through cffi; the interpreter lock is free while running.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.emit.tables.tables import CONSUMED, CONVERTED, LAZY
from pybuild.host.abi import CrtError, check, errors, ffi
from pybuild.host.binding import Binding
from pybuild.host.compiled_model import Compiled
from pybuild.host.devices import Device, device_table
from pybuild.host.locks import as_it_is, both, one_at_a_time
from pybuild.host.named_tensors import Key, Named, fitting, index_of
from pybuild.host.ndarray import sent
from pybuild.host.parameter_image import Weights
from pybuild.host.row_input import Pushed, Pushing
from pybuild.host.state import Keeping
from pybuild.ir.graph import Quant, Tensor
from pybuild.params.image import DTYPES
from pybuild.plan.plan import Plan

# CRT_ERR_INPUT_MISSING, CRT_ERR_INPUT_CONSUMED, CRT_ERR_UNBOUND
_UNBOUND, _NO_OUTPUT = -14, -12
_NAMED = (-8, -9, _UNBOUND)
_CLOSED = "the instance is closed: close() was called"


@one_at_a_time
class Net(Named, Binding, Pushing, Keeping):
    """One instance of a model: set, run, get.

    plan    what was built, for recording; or a function of it
    devices  of a model for several; (): the CPU does the work of all
    lent    inputs and outputs that have memory by lend()
    Owner   memory and bound arrays are kept alive by this object
    lock    held by each call; `with net.lock:` for calls that belong together
    Thread  any, one after the other; run() is one call, and releases the interpreter's
            lock
    Errors  KeyError listing the known names; ValueError for a wrong shape or type;
            pybuild.host.abi.CrtError subclasses from crt
    """

    def __init__(
        self,
        plan: Plan | Callable[[], Plan],
        code: Compiled,
        devices: Sequence[Device] = (),
    ) -> None:
        self.lock = threading.RLock()
        self._plan = plan
        self._code: Compiled | None = code
        self._ffi = ffi()
        self._lib = code.crt
        self._tables = self._ffi.cast("const struct crt_model *", code.model)
        counts = self._model.input_count, self._model.output_count
        self.inputs = self._described(0, counts[0])
        self.results = self._described(counts[0], counts[1])
        self.parameters = self._described(sum(counts), self._model.parameter_count)
        self._sources: list[Weights] = []
        self._turn: Any = None
        self._bound: dict[int, Array] = {}
        self.lent: set[int] = set()
        self.devices = device_table(int(self._model.device_count), devices)
        self._new_instance()

    def another(self) -> Net:
        """A further instance of the same code, with no parameter bound."""
        if self._code is None:
            raise ValueError(_CLOSED)
        return Net(self._plan, self._code)

    @property
    def _graph(self) -> Any:
        """`struct crt_graph *`.

        Errors  ValueError after close()
        """
        if self._handle is None:
            raise ValueError(_CLOSED)
        return self._handle

    @as_it_is
    def must_be_open(self) -> None:
        """Raises ValueError after close()."""
        assert self._graph

    @property
    def _model(self) -> Any:
        """`const struct crt_model *`, in compiled code.

        Errors  ValueError after close(): the code may be gone
        """
        if self._code is None:
            raise ValueError(_CLOSED)
        return self._tables

    @property
    def plan(self) -> Plan:
        if not isinstance(self._plan, Plan):
            self._plan = self._plan()
        return self._plan

    @property
    def arena(self) -> Array:
        """The memory that the plan lays out."""
        return self.memory[0]

    @property
    def instance_bytes(self) -> int:
        """The bytes of everything else that an instance on this machine needs."""
        sizes = map(self._ffi.sizeof, (self._base, self._fresh, self._pointers))
        return int(self._ffi.sizeof("struct crt_graph") + sum(sizes))

    def _described(self, first: int, count: int) -> tuple[Tensor, ...]:
        """Tensors as the tables have them."""
        found = []
        for slot in range(first, first + count):
            there = self._model.tensors[slot]
            name = self._name(slot)
            shape = tuple(there.dims[0 : there.rank]) if there.rank else ()
            quant = Quant((there.scale,), (there.zero_point,)) if there.scale else None
            found.append(Tensor(name, shape, DTYPES[there.dtype], quant))
        return tuple(found)

    def _name(self, slot: int) -> str:
        """The name of an input, output or parameter; from the plan if the model has no
        names."""
        there = self._model.tensors[slot].name
        if there:
            return str(self._ffi.string(there).decode())
        graph = self.plan.graph
        slots = (s.name for s in self.plan.slots.values())
        return (*graph.inputs, *graph.outputs, *slots)[slot]

    def _new_instance(self) -> None:
        new, model = self._ffi.new, self._model
        count = model.region_count + model.input_count + model.output_count
        count += 2 * model.parameter_count + (model.device_count > 1)
        self._base = new("void *[]", count)
        self._fresh = new("uint32_t[]", model.input_count // 32 + 1)
        self._pointers = new("void *[]", max(int(model.pointer_count), 1))
        self._handle = new("struct crt_graph *")
        self.pushed = Pushed(self._lib, model, self._graph, self._pointers)
        self._table = new("struct crt_device[]", [d.struct for d in self.devices])
        sizes = zip(self.region_bytes, self.region_devices, strict=True)
        self.use_memory([self.devices[d].allocate(size) for size, d in sizes])

    @property
    def region_bytes(self) -> list[int]:
        """The bytes that each region of memory must hold."""
        return list(self._model.region_bytes[0 : self._model.region_count])

    @property
    def region_devices(self) -> list[int]:
        """The device of each region of memory."""
        count = self._model.region_count
        there = self._model.region_devices
        return list(there[0:count]) if there else [0] * count

    def use_memory(self, memory: Sequence[Array], turn: Any = None) -> None:
        """Moves the instance to other memory; inputs, results and bindings are
        forgotten.

        memory  bytes of each region, aligned (see aligned()) and large enough
        turn    `struct crt_turn *` of instances that use this memory in turn
        """
        regions = self._ffi.new("struct crt_region[]", len(memory))
        for region, piece in zip(regions, memory, strict=True):
            region.ptr = self._ffi.cast("void *", piece.ctypes.data)
            region.bytes = piece.nbytes
        weights = len(self.inputs) + len(self.results) + len(memory)
        kept = list(self._base[weights : weights + 2 * len(self.parameters)])
        if self._turn is not None:
            check(self._lib.crt_graph_share_storage(self._graph, self._ffi.NULL))
        given = (self._graph, self._model, self._base, self._fresh, regions)
        check(self._lib.crt_graph_init(*given, len(memory)))
        count = len(self.devices)
        check(self._lib.crt_graph_set_devices(self._graph, self._table, count))
        for index, pointer in enumerate(kept, weights):
            self._base[index] = pointer
        if turn is not None:
            check(self._lib.crt_graph_share_storage(self._graph, turn))
        self.memory, self._turn = tuple(memory), turn
        self._bound.clear()

    def set_input(self, key: Key, value: Any) -> None:
        """Copies an array of the tensor's shape and type into the model."""
        index = index_of(key, self.inputs, "input")
        array = fitting(self.inputs[index], value)
        if self.pushed.take(index, array):
            return
        if index in self.lent:
            return np.copyto(self._bound[index], array)
        inside = any(np.may_share_memory(array, m) for m in self.memory)
        array = array.copy() if inside or not array.flags.aligned else array
        given = self._start(array), array.nbytes
        check(self._lib.crt_graph_set_input(self._graph, index, *given))
        self._bound.pop(index, None)

    def borrow_input(self, key: Key) -> Array:
        """The memory of an input, to be filled; counts as given. Of one on a device a
        copy; copyfrom() of it sets it."""
        index = index_of(key, self.inputs, "input")
        if self._number(index):
            there = self._copied_out(index, self.inputs[index])
            return sent(there, lambda array: self.set_input(index, array))
        if not self._lib.crt_graph_input(self._graph, index):
            kind, what = errors()[_UNBOUND], f"'{self.inputs[index].name}'"
            what += "; set_input converts it" * bool(self.flags(index) & CONVERTED)
            raise kind(f"{kind.__name__}: {kind.__doc__}: {what}")
        return self._view(index, self.inputs[index])

    def borrow_output(self, key: Key) -> Array:
        """The memory of an output of the last run; the next writes over it. Of one on
        a device a copy.
        """
        taken = self._turn is not None and self._turn.owner != self._graph
        index = index_of(key, self.results, "output")
        if taken or not self._graph.valid:
            check(_NO_OUTPUT)
        if self._number(len(self.inputs) + index):
            return self.get_output(index)
        return self._view(len(self.inputs) + index, self.results[index])

    @property
    def takes_turns(self) -> bool:
        """True if other instances use the same memory."""
        return self._turn is not None

    def flags(self, slot: int) -> int:
        """CRT_TENSOR_... of an input or, after those, an output."""
        return int(self._model.tensors[slot].flags)

    @property
    def used_up(self) -> tuple[str, ...]:
        """Inputs whose own memory a run overwrites."""
        used = (n for n in range(len(self.inputs)) if self.flags(n) & CONSUMED)
        return tuple(self.inputs[n].name for n in used)

    def written(self, step: int, output: int, tensor: str) -> Array:
        """The bytes that a step writes to an output that is held whole."""
        where = self._model.steps[step].operands[output]
        start = self._ffi.cast("char *", self._graph.base[where.buffer]) + where.at
        size = self.plan.graph.tensor(tensor).bytes
        return np.frombuffer(self._ffi.buffer(start, size), np.uint8)

    @as_it_is
    def go(self) -> None:
        with self.lock:
            self._check(self._go())

    def load_params(self, weights: Weights) -> None:
        """Binds the parameters of an image where they lie; others stay."""
        check(self._lib.crt_graph_load_params(self._graph, weights.struct))
        self._used((weights,))

    def _used(self, weights: Iterable[Weights]) -> None:
        """Keeps images that something is bound to."""
        held = {id(w): w for w in (*self._sources, *weights)}
        self._sources = [w for w in held.values() if w.users]

    @as_it_is
    def share_params(self, donor: Net, names: Iterable[str] | None = None) -> None:
        """Makes parameters, or those of these names, the donor's own.

        Owner   the image stays in use when the donor is gone
        Errors  KeyError for an unknown name, CRT_ERR_LAYOUT, ...
        """
        everything = [t.name for t in self.parameters]
        for name in everything if names is None else names:
            mine = index_of(name, self.parameters, "parameter")
            theirs = index_of(name, donor.parameters, "parameter")
            self.share_parameter(mine, donor, theirs)

    @as_it_is
    def share_parameter(self, mine: int, donor: Net, theirs: int) -> None:
        """Makes one parameter, by its number, that of the donor.

        Owner   as share_params
        Errors  CRT_ERR_LAYOUT, ...
        """
        with both(self.lock, donor.lock):
            given = self._graph, mine, donor._graph, theirs
            check(self._lib.crt_graph_share_parameter(*given))
            ends = len(self.inputs) + len(self.results)
            there = len(donor.inputs) + len(donor.results) + theirs
            self._keep_bound(ends + mine, donor._bound.get(there))
            self._used(donor._sources)

    def release_params(self) -> None:
        """Unbinds all parameters."""
        check(self._lib.crt_graph_release_params(self._graph))
        self._sources.clear()

    def parameter_address(self, key: Key) -> int:
        """The address at which runs read a parameter; 0: it is not bound."""
        index = index_of(key, self.parameters, "parameter")
        there = self._lib.crt_graph_parameter(self._graph, index)
        return int(self._ffi.cast("uintptr_t", there))

    def setup(self) -> None:
        """Checks once that everything is bound.

        Errors  CRT_ERR_UNBOUND naming it
        """
        self._check(self._lib.crt_graph_setup(self._graph))

    def _check(self, code: int) -> None:
        """Does the same as check; the message names what is missing."""
        try:
            check(code)
        except CrtError as error:
            missing = self._lib.crt_graph_missing(self._graph)
            if error.code not in _NAMED or not missing:
                raise
            slot = missing - self._model.tensors
            if error.code == _UNBOUND and slot in self.pushed.rows:
                # which never has memory: what has none, but could have, is after it
                ends = range(len(self.inputs) + len(self.results))
                lazy = (
                    n
                    for n in ends
                    if self.flags(n) & LAZY and n not in self.pushed.rows
                )
                slot = next((n for n in lazy if n not in self._bound), slot)
            name = self._name(slot)
            raise type(error)(f"{error}: '{name}'") from None

    def get_output(self, key: Key) -> Array:
        """A copy of an output of the last run."""
        index = index_of(key, self.results, "output")
        tensor = self.results[index]
        array: Array = np.empty(tensor.shape, tensor.dtype.numpy)
        data = self._start(array)
        check(self._lib.crt_graph_get_output(self._graph, index, data, array.nbytes))
        return array

    def _start(self, array: Array) -> Any:
        """The address of a contiguous array, as C takes it; called twice for every
        run."""
        if array.dtype.isbuiltin == 1:
            return self._ffi.from_buffer(array)
        return self._ffi.cast("void *", array.ctypes.data)

    @contextlib.contextmanager
    def hooked(self, hook: Callable[[Any, int, int, int, Any], int]) -> Iterator[None]:
        """Calls hook(context, step, first row, rows, address) for what steps write."""
        handle = self._ffi.callback("crt_hook", hook, error=1)
        check(self._lib.crt_graph_set_hook(self._graph, handle, self._ffi.NULL))
        try:
            yield
        finally:
            self._lib.crt_graph_set_hook(self._graph, self._ffi.NULL, self._ffi.NULL)

    @property
    def stages(self) -> int:
        """The number of stages of a run, that is of calls of run_stage()."""
        return int(self._model.stage_count)

    @property
    def stage_steps(self) -> list[range]:
        """The steps of each stage."""
        if not self._model.stages:  # each step is one
            return [range(step, step + 1) for step in range(self.stages)]
        stages = self._model.stages[0 : self._model.stage_count]
        return [range(stage.first, stage.first + stage.count) for stage in stages]

    def run_stage(self, stage: int) -> None:
        """Runs one stage; raises CRT_ERR_STAGE unless 0, 1, ... in turn."""
        self._check(self._lib.crt_graph_run_stage(self._graph, self._pointers, stage))

    def run_step(self, step: int) -> None:
        """Computes one step on what is in memory; for timing.

        Errors  CRT_ERR_TASK: it is not a kernel
        """
        check(self._lib.crt_step_run(self._model, step, self._base, self._pointers))

    def idle(self) -> None:
        """Calls C without any work, to measure the cost of a call."""
        null = self._ffi.NULL
        self._lib.crt_graph_set_hook(null, null, null)

    def close(self) -> None:
        """Releases memory and parameters; the object cannot be used afterwards."""
        if self._handle is not None:
            self.release_params()
        self._bound.clear()
        self._code = None
        self._handle = self._base = None
        self.memory = ()

"""The places where an instance on this machine reads inputs and parameters and writes
outputs: at home, in the user's arrays, in the memory of devices.
"""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.host.abi import errors, ffi
from pybuild.host.devices import Device, read
from pybuild.host.locks import as_it_is
from pybuild.host.named_tensors import Key, in_place, index_of
from pybuild.ir.graph import Tensor


class Binding(abc.ABC):
    """The part of an instance that knows addresses; `_graph` is crt's.

    devices  by their numbers, the CPU first
    memory   of each region
    """

    _lib: Any
    _model: Any
    _bound: dict[int, Array]
    inputs: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    parameters: tuple[Tensor, ...]
    devices: tuple[Device, ...]
    memory: tuple[Array, ...]

    @property
    @abc.abstractmethod
    def _graph(self) -> Any: ...

    @property
    @abc.abstractmethod
    def region_devices(self) -> list[int]: ...

    @abc.abstractmethod
    def _name(self, slot: int) -> str: ...

    def bind_input(self, key: Key, array: Array | None) -> None:
        """Lets runs read a contiguous array in place; None: back home.

        Errors  ValueError for an input on a device, which cannot read it there
        """
        self._bind_input(index_of(key, self.inputs, "input"), array, None)

    def read_at(self, key: Key, place: Array, whose: Device | None) -> None:
        """Does the same as bind_input, with memory from place_of() of an instance;
        nothing if it is bound so already.
        """
        index = index_of(key, self.inputs, "input")
        bound = self._bound.get(index)
        if bound is None or bound.ctypes.data != place.ctypes.data:
            self._bind_input(index, place, whose)

    def _bind_input(
        self, index: int, array: Array | None, whose: Device | None
    ) -> None:
        self._must_be_near(index, self.inputs[index], array, whose)
        place = self._place(self.inputs[index], array, False)
        self._named(self._lib.crt_graph_bind_input(self._graph, index, *place), index)
        self._keep_bound(index, array)

    def is_bound(self, key: Key) -> bool:
        """True if runs read an input from the user's array."""
        return index_of(key, self.inputs, "input") in self._bound

    def is_given(self, key: Key) -> bool:
        """True if an input has a value, whatever becomes of it in a run."""
        index, graph = index_of(key, self.inputs, "input"), self._graph
        if index in self._bound or (graph.turn and graph.turn.owner != graph):
            return index in self._bound
        return bool(graph.fresh[index // 32] >> index % 32 & 1)

    def bind_output(self, key: Key, array: Array | None) -> None:
        """Lets runs write an output into a contiguous, writable array."""
        index = index_of(key, self.results, "output")
        slot = len(self.inputs) + index
        self._must_be_near(slot, self.results[index], array, None)
        place = self._place(self.results[index], array, True)
        self._named(self._lib.crt_graph_bind_output(self._graph, index, *place), slot)
        self._keep_bound(slot, array)

    def bind_parameter(self, key: Key, array: Array | None) -> None:
        """Lets runs read a parameter where it is, arranged as its layout says."""
        index = index_of(key, self.parameters, "parameter")
        place = self._place(self.parameters[index], array, False)
        slot = len(self.inputs) + len(self.results) + index
        code = self._lib.crt_graph_bind_parameter(self._graph, index, *place)
        self._named(code, slot)
        self._keep_bound(slot, array)

    def _place(self, tensor: Tensor, array: Array | None, written: bool) -> Any:
        """Address and bytes of an array that fits a tensor."""
        if array is None:
            return ffi().NULL, 0
        in_place(tensor, array, written)
        return ffi().cast("void *", array.ctypes.data), array.nbytes

    def _must_be_near(
        self, slot: int, tensor: Tensor, array: Array | None, whose: Device | None
    ) -> None:
        if array is not None and whose is not self.device_of(slot):
            what = f"'{tensor.name}' is in the memory of device {self._number(slot)}"
            hint = "set_input and get_output copy it"
            raise ValueError(f"{what}, the array is not: {hint}")

    def _keep_bound(self, slot: int, array: Array | None) -> None:
        self._bound.pop(slot, None)
        if array is not None:
            self._bound[slot] = array

    def _named(self, code: int, slot: int) -> None:
        """Does the same as check; the message names the tensor and the alignment that
        it needs."""
        if code < 0:
            there = self._model.tensors[slot]
            kind = errors()[code]
            what = f"{kind.__name__}: {kind.__doc__}: '{self._name(slot)}'"
            raise kind(f"{what}, a multiple of {there.align} bytes")

    @as_it_is  # of another thread's instance, while this one's lock is held
    def place_of(self, key: Key, output: bool) -> tuple[Array, Device | None]:
        """The memory from which an input is read, or to which an output is written, and
        its device, as read_at() takes it.

        Errors  ValueError after close()
        """
        assert self._graph
        tensors, first = (self.results, len(self.inputs)), (self.inputs, 0)
        among, shift = tensors if output else first
        index = index_of(key, among, "output" if output else "input")
        slot = shift + index
        return self._view(slot, among[index]), self.device_of(slot)

    def _number(self, slot: int) -> int:
        """The number of the device that a tensor is on; 0: the CPU."""
        return self.region_devices[int(self._model.tensors[slot].region)]

    @staticmethod
    def is_here(device: Device) -> bool:
        """True if it is the CPU, under whatever number."""
        return not device.struct[0]

    def device_of(self, slot: int) -> Device | None:
        """The device in whose memory a tensor can only be copied; None: it is in this
        machine's, also where the CPU does a device's work.
        """
        device = self.devices[self._number(slot)]
        return device if device.struct[0] else None

    def _view(self, slot: int, tensor: Tensor) -> Array:
        if slot in self._bound:
            return self._bound[slot]
        there = self._model.tensors[slot]
        piece: Array = self.memory[there.region][there.at : there.at + there.bytes]
        return piece.view(tensor.dtype.numpy).reshape(tensor.shape)

    def _copied_out(self, slot: int, tensor: Tensor) -> Array:
        """A copy from a device's memory."""
        piece = self._view(slot, tensor).reshape(-1).view(np.uint8)
        raw = read(self.devices[self._number(slot)], piece)
        return raw.view(tensor.dtype.numpy).reshape(tensor.shape)

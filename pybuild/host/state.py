"""The state that an instance on this machine keeps from run to run."""

from __future__ import annotations

import abc
from typing import Any

from pybuild.dtype import Array
from pybuild.host.abi import check, ffi
from pybuild.host.samples import Sampling
from pybuild.plan.plan import Plan


class Keeping(Sampling):
    """The part of an instance that knows its state; `_graph` is crt's."""

    _lib: Any

    @property
    @abc.abstractmethod
    def _graph(self) -> Any: ...

    memory: tuple[Array, ...]

    @property
    @abc.abstractmethod
    def plan(self) -> Plan: ...

    def kept(self) -> dict[str, Array]:
        """Copies of the tensors that are kept from run to run."""
        found, graph = {}, self.plan.graph
        for piece in self.plan.kept:
            if piece.name in graph.tensors:
                data = self.memory[piece.region][piece.at : piece.at + piece.bytes]
                tensor = graph.tensor(piece.name)
                value = data.copy().view(tensor.dtype.numpy)
                found[piece.name] = value.reshape(tensor.shape)
        return found

    def reset(self) -> None:
        """Forgets inputs and results, and all state."""
        self._waiting = None
        check(self._lib.crt_graph_reset(self._graph))

    def save_state(self) -> bytes:
        """The state that is kept from run to run, for restore_state().

        Errors  CRT_ERR_STATE: the model keeps nothing
        """
        size = check(self._lib.crt_state_bytes(self._graph))
        data = ffi().new("uint8_t[]", size)
        check(self._lib.crt_state_save(self._graph, data, size))
        return bytes(ffi().buffer(data))

    def restore_state(self, data: bytes) -> None:
        """Goes on from what was saved, by this or another instance of the build.

        Errors  CRT_ERR_STATE: damaged, or saved by another build; CRT_ERR_SIZE
        """
        check(self._lib.crt_state_restore(self._graph, data, len(data)))
        self._waiting = None

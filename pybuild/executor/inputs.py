"""The inputs of one instance: set, read in place, shared, or taken from another
instance. Knows no parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.executor.instance import Instance, local, must_be_together
from pybuild.host.abi import UnknownName, failure
from pybuild.host.named_tensors import Key
from pybuild.host.ndarray import converted
from pybuild.host.parameter_image import aligned
from pybuild.ir.graph import Tensor
from pybuild.rpc.net import RemoteNet

_UNBOUND, _DTYPE, _SHAPE = -14, -16, -17


class Inputs:
    """loaded  inputs that parameter files or other instances have given"""

    def __init__(self, net: Instance) -> None:
        self.net = net
        self.tensors = {tensor.name: tensor for tensor in net.inputs}
        self.loaded: set[str] = set()
        # inputs that are read where another instance has an output or input
        self._followed: dict[str, tuple[Inputs, Key]] = {}

    def give(self, values: Mapping[str, Any]) -> None:
        """Copies values into inputs; none if one of them does not fit.

        Errors  ValueError for another shape or type
        """
        for name, array in self.must_fit(values).items():
            self.net.set_input(name, array)
            self._followed.pop(name, None)

    def must_fit(self, values: Mapping[str, Any]) -> dict[str, Array]:
        """The values in the inputs' types.

        Errors  ValueError for another shape or type
        """
        return {n: converted(self.tensors[n], value) for n, value in values.items()}

    def bind(self, name: str, array: Array | None) -> None:
        self.net.bind_input(name, array)
        self._followed.pop(name, None)

    def memory(self, name: str) -> Array:
        """The memory of an input, to be filled: the input then counts as given."""
        self.refresh()
        return self.net.borrow_input(name)

    def again(self) -> Callable[[], None]:
        """A function that gives the present inputs again, after a run has used them up:
        for repeated runs on the same inputs.
        """
        net = self.net
        used = {n for n in net.used_up if net.is_given(n) and not net.is_bound(n)}
        values = {name: np.array(net.borrow_input(name)) for name in used}

        def give() -> None:
            for name, value in values.items():
                if not net.is_given(name):
                    net.set_input(name, value)

        return give

    def forget(self) -> None:
        """Forgets all inputs and bindings, as the instance does."""
        self._followed.clear()
        self.loaded.clear()

    # ---- where another instance has a tensor ----------------------------------

    def follow(self, name: str, other: Inputs, key: Key) -> None:
        """Reads an input from the memory of an output, or else an input, of another
        instance or this one, even after it moves.

        Errors  ValueError for memory that this instance cannot read
        """
        must_be_together(self.net, other.net)
        if isinstance(self.net, RemoteNet):
            assert isinstance(other.net, RemoteNet)
            self.net.read_where(name, other.net, key)
            return
        before = self._followed.get(name)
        self._followed[name] = (other, key)
        try:
            self._move(name)
        except Exception:
            del self._followed[name]
            if before is not None:
                self._followed[name] = before
            raise

    def refresh(self) -> None:
        """Binds inputs again whose sources have moved."""
        for name in self._followed:
            self._move(name)

    def _move(self, name: str) -> None:
        other, key = self._followed[name]
        source = local(other.net)
        if source.takes_turns:
            raise ValueError("a module in shared storage has no memory to share")
        outputs = {tensor.name for tensor in source.results}
        is_output = not isinstance(key, str) or key in outputs
        place, whose = source.place_of(key, is_output)
        local(self.net).read_at(name, place, whose)

    # ---- sharing --------------------------------------------------------------

    def share(self, donor: Inputs, names: Iterable[str]) -> None:
        """Makes inputs what the donor's are now: of both it is one array, until one of
        them is given another. What is on devices, or boards, is copied.

        Errors  UnknownName; CRT_ERR_UNBOUND, CRT_ERR_DTYPE, CRT_ERR_SHAPE
        """
        wanted = list(names)
        for name in wanted:
            self._must_fit(donor, name)
        for name in wanted:
            self.loaded.add(name)
            if donor is not self:
                self._take(donor, name)

    def _must_fit(self, donor: Inputs, name: str) -> None:
        if name not in donor.tensors:
            known = ", ".join(f"'{n}'" for n in donor.tensors)
            raise UnknownName(f"input '{name}' is not known there; there is {known}")
        mine, theirs = self.tensors[name], donor.tensors[name]
        must_be_same(mine, theirs)
        if not donor.net.is_given(name):
            raise failure(_UNBOUND, f"'{name}' of the other module")

    def _take(self, donor: Inputs, name: str) -> None:
        here, there = self.net, donor.net
        if isinstance(here, RemoteNet) or isinstance(there, RemoteNet):
            self.give({name: there.borrow_input(name)})
            return
        place, whose = there.place_of(name, False)
        if whose is not None or here.place_of(name, False)[1] is not None:
            self.give({name: there.borrow_input(name)})
            return
        if not there.is_bound(name):
            place = _frozen(place)
            donor.bind(name, place)
        self.bind(name, place)


def must_be_same(mine: Tensor, theirs: Tensor) -> None:
    """Checks that both tensors have the same type and shape.

    Errors  CRT_ERR_DTYPE, CRT_ERR_SHAPE
    """
    if mine.dtype is not theirs.dtype:
        what = f"'{mine.name}' is {mine.dtype.value}, there {theirs.dtype.value}"
        raise failure(_DTYPE, what)
    if mine.shape != theirs.shape:
        what = f"'{mine.name}' is {list(mine.shape)}, there {list(theirs.shape)}"
        raise failure(_SHAPE, what)


def _frozen(values: Array) -> Array:
    """A read-only copy."""
    made = aligned(values.nbytes).view(values.dtype).reshape(values.shape)
    np.copyto(made, values)
    made.flags.writeable = False
    return made

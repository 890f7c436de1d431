"""The weights of one instance: given in the user's form, bound in the kernels' form.

Giving is cheap; they are packed on the host before the next run. Knows no layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from pybuild.dtype import Array
from pybuild.executor.archive_write import only
from pybuild.executor.inputs import must_be_same
from pybuild.executor.instance import Instance, local, share_parameter
from pybuild.host.abi import UnknownName, failure
from pybuild.host.compiled_model import SlotFacts
from pybuild.host.named_tensors import in_place
from pybuild.host.ndarray import converted
from pybuild.host.parameter_image import Weights
from pybuild.host.source import Source
from pybuild.ir.graph import Tensor
from pybuild.params.image_read import is_image, read_image
from pybuild.params.image_write import write_image
from pybuild.records import dataclass

_UNBOUND, _LAYOUT = -14, -26
# stands for values that only the kernels know
_PACKED = np.zeros(0, np.uint8)


@dataclass(frozen=True)
class Shared:
    """Parameters to be shared, and the numbers of their slots here and there."""

    names: frozenset[str]
    slots: tuple[tuple[int, int], ...]


class Parameters:
    """Owner   packed images are kept while the instance is bound to them"""

    def __init__(self, source: Source, net: Instance) -> None:
        self.tensors = source.parameters
        self._source, self._net = source, net
        # None: the value that the model came with
        self._given: dict[str, Array | None] = {}
        self.waiting: set[str] = set()
        # arrays of the user's that are packed anew when they have changed
        self._watched: dict[str, Array] = {}
        fixed = [slot.entry for slot in source.slots if not slot.sources]
        if fixed:  # constants that are packed, as they are
            net.load_params(Weights(only(fixed, source.image())))

    def reset(self) -> None:
        """Sets all parameters to their values in the model file, in the image that such
        instances share."""
        if self._source.slots:
            self._net.load_params(self._source.weights)
        self._given = dict.fromkeys(self.tensors)
        self._watched.clear()
        self.waiting.clear()

    def give(self, values: Mapping[str, object]) -> None:
        """Copies values; they are packed by bind().

        Errors  UnknownName; ValueError for another shape or type; then none is set
        """
        self._net.must_be_open()
        made = {n: converted(self._tensor(n), v).copy() for n, v in values.items()}
        for name in made:
            self._watched.pop(name, None)
        self._given |= made
        self.waiting |= made.keys()

    def value(self, name: str) -> Array:
        """The value of a parameter in the form that users have.

        Errors  UnknownName; LookupError if it was never given
        """
        tensor = self._tensor(name)
        if name not in self._given:
            raise LookupError(f"parameter '{tensor.name}' has no value yet")
        value = self._given[name]
        if value is _PACKED:
            what = f"parameter '{name}' was loaded packed: its own values are not known"
            raise LookupError(what)
        return self._source.value(name) if value is None else value

    def bind(self) -> None:
        """Packs what was given, or has changed in the user's arrays, since the last
        time.

        Errors  BuildError for values that could overflow an accumulator
        """
        for name, array in self._watched.items():
            self._net.must_be_open()
            if array.tobytes() != self.value(name).tobytes():
                self._given[name] = array.copy()
                self.waiting.add(name)
        if not self.waiting:
            return
        ready = [
            slot
            for slot in self._source.slots
            if self.waiting & set(slot.sources)
            and self._given.keys() >= {*slot.sources}
        ]
        if ready:
            parts = {name for slot in ready for name in slot.sources}
            values = {n: self.value(n) for n in parts if self._given[n] is not None}
            image = self._source.image(values)
            self._net.load_params(Weights(only([s.entry for s in ready], image)))
        done = self._given.keys() >= {*self.tensors}
        self.waiting = set() if done else self.waiting & self._open()

    def _open(self) -> set[str]:
        """The parameters that were given, but are part of a slot with missing parts."""
        return {
            name
            for slot in self._source.slots
            for name in slot.sources
            if not self._given.keys() >= {*slot.sources}
        }

    def bind_in_place(self, name: str, array: Array | None) -> None:
        """Lets runs read a parameter where it lies, until it is given again; None: it
        is not bound any more. One that kernels read in another arrangement is packed
        before a run wherever the array has changed.

        Errors  UnknownName; ValueError for another shape, type or order
        """
        tensor = self._tensor(name)
        slots = [slot for slot in self._source.slots if name in slot.sources]
        if array is None:
            for slot in slots:
                self._net.bind_parameter(slot.name, None)
            self._forget(name)
        elif [(s.layout, s.sources) for s in slots] == [(0, (name,))]:
            self._net.bind_parameter(slots[0].name, array)
            self._forget(name)
            self._given[name] = array
        else:
            local(self._net)
            in_place(tensor, array)
            self.give({name: array})
            self._watched[name] = array

    def _forget(self, name: str) -> None:
        self._given.pop(name, None)
        self._watched.pop(name, None)
        self.waiting.discard(name)

    def load_image(self, data: bytes) -> tuple[str, ...]:
        """Binds an image that is packed for this model where it is; () if it is none.

        Errors  CRT_ERR_... of damaged images
        """
        mine = {slot.entry: slot for slot in self._source.slots}
        if not is_image(data):
            return ()
        found = read_image(data, "parameters")
        entries = [e for e in found.entries if e.name in mine]
        if not entries or any(e.layout != mine[e.name].layout for e in entries):
            return ()
        if any(e.codec for e in entries):
            data = write_image(found.parameters())
        self._net.load_params(Weights(data))
        names = {n for e in entries for n in mine[e.name].sources}
        plain = {
            mine[e.name].sources[0]: e.name
            for e in entries
            if not e.layout and len(mine[e.name].sources) == 1
        }
        for name in names:
            self._watched.pop(name, None)
        self._given |= {
            n: found.value(plain[n]) if n in plain else _PACKED for n in names
        }
        self.waiting -= names
        return tuple(sorted(names))

    def matched(self, donor: Parameters, names: Iterable[str]) -> Shared:
        """The work that share() of parameters of these names will do; so far only
        waiting packing is done.

        Errors  UnknownName; ValueError for one that is packed together with others;
                CRT_ERR_UNBOUND, CRT_ERR_DTYPE, CRT_ERR_SHAPE, CRT_ERR_LAYOUT
        """
        wanted = {self._tensor(name).name for name in names}
        donor.bind()
        for name in sorted(wanted):
            must_be_same(self.tensors[name], donor._tensor(name))
            if name not in donor._given:
                raise failure(_UNBOUND, f"'{name}' of the other module")
        pairs = []
        for mine, slot in enumerate(self._source.slots):
            if not wanted & {*slot.sources}:
                continue
            beside = set(slot.sources) - wanted
            if beside:
                what = f"'{slot.name}' is made of {', '.join(sorted(beside))} too"
                raise ValueError(f"{what}: share all of them")
            pairs.append((mine, donor._number(slot)))
        return Shared(frozenset(wanted), tuple(pairs))

    def _number(self, want: SlotFacts) -> int:
        """The number of a slot that is made of the same parameters and arranged alike.

        Errors  CRT_ERR_LAYOUT
        """
        alike = [
            number
            for number, slot in enumerate(self._source.slots)
            if (slot.sources, slot.layout) == (want.sources, want.layout)
        ]
        if not alike:
            what = f"'{want.name}', of {', '.join(want.sources)}"
            raise failure(_LAYOUT, what)
        slots = self._source.slots
        return next((n for n in alike if slots[n].name == want.name), alike[0])

    def share(self, donor: Parameters, shared: Shared) -> None:
        """Makes parameters the donor's own; nothing is copied.

        shared  of matched(), with nothing done since
        """
        for mine, theirs in shared.slots:
            share_parameter(self._net, mine, donor._net, theirs)
        for name in shared.names:
            self._watched.pop(name, None)
            value = donor._given[name]
            self._given[name] = donor._source.value(name) if value is None else value
        self.waiting -= shared.names

    def _tensor(self, name: str) -> Tensor:
        if name not in self.tensors:
            known = ", ".join(f"'{n}'" for n in self.tensors) or "none"
            raise UnknownName(f"parameter '{name}' is not known; there is {known}")
        return self.tensors[name]

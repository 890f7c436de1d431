"""Memory for lazy inputs and outputs that the caller does not provide."""

from __future__ import annotations

from pybuild.emit.tables.tables import LAZY
from pybuild.host.devices import aligned
from pybuild.host.native import Net


def bind_lazy(net: Net) -> Net:
    """The instance, with every lazy tensor bound; set_input copies to what it has."""
    binds = [(net.bind_input, t) for t in net.inputs]
    binds += [(net.bind_output, t) for t in net.results]
    for slot, (bind, tensor) in enumerate(binds):
        if net.flags(slot) & LAZY and slot not in net.pushed.rows:
            memory = aligned(tensor.bytes)[: tensor.bytes]
            index = slot if slot < len(net.inputs) else slot - len(net.inputs)
            bind(index, memory.view(tensor.dtype.numpy).reshape(tensor.shape))
            net.lent.add(slot)
    return net

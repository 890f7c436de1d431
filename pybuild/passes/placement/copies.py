"""Copies between devices, as few as there can be: one of each tensor for each device
that reads it. Between two devices that are not the CPU they go through its memory.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.passes.edit import Edit, used


def with_copies(graph: Graph) -> Graph:
    """Adds copies, so that every node reads tensors of its own device, and outputs are
    where they belong."""
    return _Copier(graph).run()


class _Copier:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.edit = Edit(graph)
        self.at = graph.locations()
        self.crossings = graph.crossings()
        # (tensor, device) -> the tensor there that is the same
        self.made: dict[tuple[str, int], str] = {}
        self.readers: dict[str, list[int]] = {}
        for node in graph.nodes:
            start, end = self.crossings.get(node.output, (1, 1))
            reader = node.device if start == end else 0
            for name in node.inputs if start and end else ():
                self.readers.setdefault(name, []).append(reader)

    def run(self) -> Graph:
        for node in self.graph.nodes:
            if node.output in self.crossings and self._is_home(node.output, node):
                self._direct(node)
            else:
                self._computed(node)
        return used(self.edit.done())

    def _direct(self, node: Node) -> None:
        """A copy that the graph has itself."""
        name = node.inputs[0]
        start, end = self.crossings[node.output]
        source = self.local(name, 0) if start and end else name
        self.edit.nodes.append(replace(node, inputs=(source,)))
        self.made.setdefault((name, end), node.output)
        self._spread(node.output)

    def _computed(self, node: Node) -> None:
        inputs = tuple(self.local(name, node.device) for name in node.inputs)
        moved = {
            name: self._renamed(name, node.device)
            for name in node.outputs
            if not self._is_home(name, node)
        }
        outputs = tuple(moved.get(name, name) for name in node.outputs)
        self.edit.nodes.append(replace(node, inputs=inputs, outputs=outputs))
        for name, inner in moved.items():
            self.made[name, node.device] = inner
            home = self.graph.homes.get(name, 0)
            source = self.local(name, 0) if node.device and home else inner
            self._copy(source, name, home)
            self.made[name, home] = name
        for name in node.outputs:
            self._spread(name)

    def _is_home(self, name: str, node: Node) -> bool:
        """True if an output of the node may stay on its device."""
        home = self.graph.homes.get(name, 0)
        return name not in self.graph.outputs or home == node.device

    def _renamed(self, name: str, device: int) -> str:
        """A tensor like another, in the memory of a device."""
        made = self.edit.fresh(f"{name} (device {device})")
        self.edit.tensors[made] = replace(self.edit.tensors[name], name=made)
        return made

    def _spread(self, name: str) -> None:
        """Copies as soon as there is something to copy: devices work meanwhile."""
        for device in self.readers.get(name, ()):
            self.local(name, device)

    def local(self, name: str, device: int) -> str:
        """The tensor in the memory of a device, copied there at most once."""
        if not name or name in self.graph.constants:
            return name
        known = self.made.get((name, device))
        if known is not None:
            return known
        if self.at[name] == device:
            return name
        if self.at[name] and device:
            source = self.local(name, 0)
        else:
            source = self.made.get((name, self.at[name]), name)
        made = self._renamed(name, device)
        self._copy(source, made, device)
        self.made[name, device] = made
        return made

    def _copy(self, source: str, made: str, device: int) -> None:
        label = f"{source} to device {device}"
        self.edit.nodes.append(Node("copy", label, (source,), (made,), {}, device))

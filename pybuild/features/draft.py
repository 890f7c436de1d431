"""A graph of features while it is being made: nodes and tensors, named by what makes
them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Attr, Graph, Node, Quant, State, Tensor, verify
from pybuild.ops import OPERATORS

# of the noise that is subtracted, as TensorFlow Lite Micro's micro_speech has it
NOISE_BITS = 10
_NOISE: dict[str, Attr] = {
    "smoothing": (409, 983), "one_minus_smoothing": (15975, 15401),
    "min_signal_remaining": 819, "smoothing_bits": NOISE_BITS, "bits": 14,
    "clamping": False,
}  # fmt: skip


class Draft:
    """Nodes and tensors, named by what makes them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.state: dict[str, State] = {}
        self.inputs: list[str] = []

    def input(self, name: str, shape: tuple[int, ...]) -> Tensor:
        self.inputs.append(name)
        return self._add(Tensor(name, shape, DType.INT16))

    def constant(self, name: str, value: Array) -> Tensor:
        self.constants[name] = value
        return self._add(Tensor(name, value.shape, DType.of(value)))

    def op(
        self, op: str, reads: Sequence[Tensor], quant: Quant | None = None,
        **attrs: Attr,
    ) -> Tensor:  # fmt: skip
        return self.ops(op, reads, quant, **attrs)[0]

    def ops(
        self, op: str, reads: Sequence[Tensor], quant: Quant | None = None,
        **attrs: Attr,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Adds a node and returns all its outputs."""
        name, count = op, 1
        while name in self.tensors:
            count += 1
            name = f"{op}_{count}"
        node = Node(op, name, tuple(x.name for x in reads), (name,), attrs)
        types = OPERATORS[op].infer(node, self.graph(checked=False))
        names = [name, *(f"{name}_{i}" for i in range(1, len(types)))]
        made = [
            self._add(Tensor(n, shape, dtype, quant))
            for n, (shape, dtype) in zip(names, types, strict=True)
        ]
        self.nodes.append(Node(op, name, node.inputs, tuple(names), attrs))
        return tuple(made)

    def shaped(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The same elements in another shape."""
        made = self._add(Tensor(f"{x.name} row", shape, x.dtype, x.quant))
        self.nodes.append(Node("reshape", made.name, (x.name,), (made.name,)))
        return made

    def framed(self, x: Tensor, window: int, name: str = "before") -> Tensor:
        """The window that ends with x: its rest is kept from the runs before."""
        held = window - x.size
        if not held:
            return x
        zeros = np.zeros(held, x.dtype.numpy)
        before = self._add(Tensor(name, zeros.shape, x.dtype))
        joined = self.op("concat", [before, x], axis=0)
        rest = self.op(
            "slice", [joined], begin=(x.size,), end=(window,), strides=(1,)
        )  # fmt: skip
        self.state[before.name] = State(rest.name, zeros)
        return joined

    def quiet(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x without its noise, and the noise, which is kept."""
        zeros = np.zeros(x.shape, np.uint32)
        before = self._add(Tensor("noise", zeros.shape, DType.UINT32))
        y, after = self.ops("spectral_subtraction", [x, before], **_NOISE)
        self.state[before.name] = State(after.name, zeros)
        return y, after

    def output(
        self, x: Tensor, quant: Quant, dtype: DType = DType.INT8,
        rounding: str = "double",
    ) -> None:  # fmt: skip
        made = self._add(Tensor("features", x.shape, dtype, quant))
        attrs: dict[str, Attr] = {"rounding": rounding, "fixed": True}
        self.nodes.append(Node("quantize", "features", (x.name,), (made.name,), attrs))

    def graph(self, checked: bool = True) -> Graph:
        graph = Graph(
            self.name, self.name, tuple(self.nodes), dict(self.tensors),
            tuple(self.inputs), ("features",) if checked else (),
            dict(self.constants), state=dict(self.state),
            sampled="samples" if checked else "",
        )  # fmt: skip
        if checked:
            verify(graph)
        return graph

    def _add(self, tensor: Tensor) -> Tensor:
        self.tensors[tensor.name] = tensor
        return tensor

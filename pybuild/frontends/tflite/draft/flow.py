"""Operators written as a few general nodes, whose values are computed at once if known.
Must not know any operator of TensorFlow Lite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.tflite.draft.builder import MOST_BYTES, Call
from pybuild.frontends.tflite.draft.known import value_of
from pybuild.ir.graph import Attr, Node, Tensor
from pybuild.ops.fixed_point.quant import quantize_multiplier, quantized_clamp
from pybuild.ops.shape import backwards

# what they make has the scale of their first input
_MOVE = ("concat", "copy", "gather", "pad", "reshape", "scatter", "slice", "transpose")


class Flow:
    """Builds the nodes that one operator of the file becomes; methods take and return
    tensors."""

    def __init__(self, call: Call) -> None:
        self.call, self.builder = call, call.builder

    # ---- what is there --------------------------------------------------------

    def arg(self, position: int) -> Tensor:
        return self.call.tensor(position)

    def args(self) -> list[Tensor]:
        count = len(self.call.flat.inputs)
        if not count:
            raise self.call.error("has no inputs")
        return [self.call.tensor(i) for i in range(count)]

    def known(self, x: Tensor) -> Array | None:
        return self.builder.constants.get(x.name)

    def wanted(self, index: int = 0) -> Tensor:
        """Return the output with this index as the file declares it."""
        flat = self.builder.model.tensors[self.call.flat.outputs[index]]
        shape = tuple(max(1, dim) for dim in flat.shape)
        return self.call.output(shape, index)

    def axis_of(self, number: int, x: Tensor) -> int:
        """Return a non-negative axis of x; a scalar has none."""
        if not x.shape:
            raise self.call.error(f"axis {number} of a tensor of 0 axes")
        return self.axis(number, len(x.shape))

    def axis(self, number: int, rank: int) -> int:
        if not -rank <= number < max(rank, 1):
            raise self.call.error(f"axis {number} of a tensor of {rank} axes")
        return number % max(rank, 1)

    # ---- nodes ----------------------------------------------------------------

    def node(
        self,
        op: str,
        inputs: Sequence[Tensor],
        attrs: dict[str, Attr] | None = None,
        *,
        shape: tuple[int, ...] | None = None,
        like: Tensor | None = None,
    ) -> Tensor:
        """Add one node, or compute its value if that is known now.

        like  gives the type (if inference takes it from the output) and the scale
        """
        builder = self.builder
        name = builder.fresh(self.call.label)
        first = like or inputs[0]
        quant = None if like is None else like.quant
        if op in _MOVE or (attrs or {}).get("fn") == "copy":
            quant = inputs[0].quant if like is None else quant
        builder.tensors[name] = Tensor(name, shape or (), first.dtype, quant)
        node = Node(op, name, tuple(x.name for x in inputs), (name,), attrs or {})
        made, dtype = self.call.inferred(node)
        tensor = Tensor(name, made if shape is None else shape, dtype, quant)
        if tensor.bytes >= MOST_BYTES:
            del builder.tensors[name]
            raise self.call.error(f"a tensor would have {tensor.bytes} bytes")
        builder.tensors[name] = tensor
        value = value_of(node, builder.graph)
        if value is None:
            builder.nodes.append(node)
        else:
            builder.constants[name] = value
        return tensor

    def give(self, x: Tensor, index: int = 0) -> None:
        """Make a tensor the output with this index; it keeps its type and gets the
        file's scale."""
        builder, output = self.builder, self.call.flat.outputs[index]
        made = self.call.output(x.shape, index)
        if x.quant is not None and x.quant != made.quant:
            x = self.plain(x)
        if made.dtype is not x.dtype:
            what = f"'{made.name}' is {made.dtype.value}, it must be {x.dtype.value}"
            raise self.call.error(what)
        value = self.known(x)
        if value is not None:
            builder.known[output] = builder.add(made, value)
            return
        last = builder.nodes[-1] if builder.nodes else None
        if last is not None and last.output == x.name and self._own(x):
            # the node that was made last makes the output itself
            label = self.call.label if index == 0 else made.name
            node = Node(last.op, label, last.inputs, (made.name,), last.attrs)
            builder.nodes[-1] = node
            del builder.tensors[x.name]
        else:
            node = Node("copy", made.name, (x.name,), (made.name,))
            builder.nodes.append(node)
        builder.tensors[made.name] = made
        builder.known[output] = made

    def _own(self, x: Tensor) -> bool:
        """Return True if no output of an operator is this tensor yet."""
        return all(x is not known for known in self.builder.known.values())

    # ---- the nodes by name ----------------------------------------------------

    def const(self, value: Any, like: Tensor | DType | None = None) -> Tensor:
        """Add a known value; `like`: a type, or the tensor whose type it gets."""
        kind = like.dtype if isinstance(like, Tensor) else like
        array = np.asarray(value, None if kind is None else kind.numpy)
        name = self.builder.fresh(f"{self.call.label}_constant")
        return self.builder.add(Tensor(name, array.shape, DType.of(array)), array)

    def plain(self, x: Tensor) -> Tensor:
        """Return the same integers without a scale."""
        if x.quant is None:
            return x
        value = self.known(x)
        if value is not None:
            return self.const(value)
        bare = Tensor(x.name, x.shape, x.dtype)
        return self.node("copy", [x], like=bare)

    def map(self, fn: str, *inputs: Tensor, **attrs: Attr) -> Tensor:
        return self.node("map", inputs, {"fn": fn, **attrs})

    def either(self, a: Tensor, b: Tensor, option: str) -> Tensor:
        """Return a, or b under the `--rounding` of that name."""
        return self.map("where", self.const(True), a, b, either=option)

    def cast(self, x: Tensor, to: DType) -> Tensor:
        return x if x.dtype is to else self.map("cast", x, to=to.value)

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return self.map("add", a, b)

    def sub(self, a: Tensor, b: Tensor) -> Tensor:
        return self.map("subtract", a, b)

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        return self.map("multiply", a, b)

    def plus(self, x: Tensor, number: float) -> Tensor:
        return x if number == 0 else self.add(x, self.const(number, x))

    def held(self, x: Tensor, low: float | None, high: float | None) -> Tensor:
        """Clamp to bounds; None: no bound."""
        if low is not None:
            x = self.map("maximum", x, self.const(low, x))
        return x if high is None else self.map("minimum", x, self.const(high, x))

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        wanted = tuple(int(d) for d in shape)
        if wanted == x.shape:
            return x
        return self.node("reshape", [x], shape=wanted)

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        order = tuple(int(p) for p in perm)
        if order == tuple(range(len(order))):
            return x
        return self.node("transpose", [x], {"perm": order})

    def expand(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        wanted = tuple(int(d) for d in shape)
        return x if x.shape == wanted else self.map("copy", x, shape=wanted)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        if len(parts) == 1:
            return parts[0]
        return self.node("concat", parts, {"axis": axis})

    def slice(self, x: Tensor, begin: Sequence[int], end: Sequence[int]) -> Tensor:
        """Slice with bounds normalised as the operator `slice` needs them."""
        ones = (1,) * len(x.shape)
        attrs = {"begin": tuple(begin), "end": tuple(end), "strides": ones}
        return self.node("slice", [x], attrs)

    def part(self, x: Tensor, axis: int, begin: int, end: int) -> Tensor:
        """Slice begin:end along one axis."""
        if (begin, end) == (0, x.shape[axis]):
            return x
        first, last = [0] * len(x.shape), list(x.shape)
        first[axis], last[axis] = begin, end
        return self.slice(x, first, last)

    def flip(self, x: Tensor, axis: int) -> Tensor:
        if x.shape[axis] == 1:
            return x
        return self.node("slice", [x], backwards(x.shape, (axis,)))

    def pad(
        self, x: Tensor, pads: Sequence[tuple[int, int]], value: float = 0
    ) -> Tensor:
        given = tuple((int(a), int(b)) for a, b in pads)
        if not any(a or b for a, b in given):
            return x
        return self.node("pad", [x], {"pads": given, "value": value})

    def gather(self, x: Tensor, indices: Tensor, axis: int) -> Tensor:
        return self.node("gather", [x, indices], {"axis": axis})

    def taken(self, x: Tensor, indices: Any, axis: int) -> Tensor:
        """Gather at known indices, given in their shape."""
        return self.gather(x, self.const(np.asarray(indices, np.int32)), axis)

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        return self.node("matmul", [a, b])

    def lookup(self, x: Tensor, table: Array) -> Tensor:
        """Look up each byte in a table whose first entry is for the lowest value."""
        return self.node("lookup", [x, self.const(table)])

    def reduce(
        self, fn: str, x: Tensor, axes: Sequence[int], keep: bool = True
    ) -> Tensor:
        """Over any axes."""
        shape = x.shape
        found = sorted({self.axis_of(a, x) for a in axes})
        kept = [i for i in range(len(shape)) if i not in found]
        final = [1 if i in found else d for i, d in enumerate(shape)]
        if found:
            x = self.transpose(x, (*kept, *found))
            outer = [shape[i] for i in kept]
            x = self.reshape(x, (*outer, math.prod(shape[i] for i in found)))
            x = self.node("reduce", [x], {"fn": fn, "axis": len(outer)})
        return self.reshape(x, final if keep else [shape[i] for i in kept])

    def requantized(self, x: Tensor, scale: float, once: bool = False) -> Tensor:
        """Return round(x * scale) of int32, with LiteRT's two roundings.

        once  with one rounding where LiteRT has one but TFLM two
        """
        multiplier, shift = quantize_multiplier(scale)
        if shift < -30:  # nothing is left
            multiplier, shift = 0, 0
        numbers = (self.const(n, DType.INT32) for n in (multiplier, shift))
        if once:
            return self.map("requantize_once", x, *numbers, rounding="away")
        return self.map("requantize", x, *numbers)

    def centred(self, x: Tensor) -> Tensor:
        """Return x as int32 without its zero point."""
        zero = 0 if x.quant is None else x.zero_point
        return self.plus(self.cast(self.plain(x), DType.INT32), -zero)

    def quantised(self, x: Tensor, y: Tensor, clamp: Any = (None, None)) -> Tensor:
        """Add y's zero point to an int32, and clamp to y's type."""
        low, high = quantized_clamp(clamp, y)
        return self.cast(self.held(self.plus(x, y.zero_point), low, high), y.dtype)

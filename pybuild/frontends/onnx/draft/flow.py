"""Operators written as a few general nodes, in the types of the file. Results of small
known values are computed at once, so that chains of shape arithmetic vanish. Must not
know any ONNX operator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybuild.dtype import HALVES, Array, DType
from pybuild.frontends.onnx.draft import unsigned
from pybuild.frontends.onnx.draft.draft import MOST_BYTES, Draft
from pybuild.frontends.onnx.reader.op import Op
from pybuild.ir.graph import Attr, Node, Tensor
from pybuild.ops import OPERATORS
from pybuild.ops.shape import MOVING, backwards

# larger values are left to the passes
MOST_FOLDED = 1 << 12
Axes = Sequence[int]


class Flow:
    """Builds the nodes that one ONNX node becomes; every method returns the name of a
    tensor.

    wide  whether operations that join float16 elements give float32
    """

    wide = False

    def __init__(self, draft: Draft, op: Op) -> None:
        self.draft, self.op = draft, op

    # ---- what is there --------------------------------------------------------

    def has(self, index: int) -> bool:
        return bool(self.op.input(index))

    def arg(self, index: int) -> str:
        """Return an input, in the type that the file gives it.

        Errors  BuildError if it is absent
        """
        name = self.op.input(index)
        if not name:
            raise self.op.invalid(f"input {index} is missing")
        return self.plain(name)

    def args(self) -> list[str]:
        return [self.plain(name) for name in self.op.inputs if name]

    def plain(self, name: str) -> str:
        """Return the file's own tensor for a name: the unsigned one instead of its
        signed twin."""
        draft = self.draft
        outer = next((o for o, inner in draft.inner.items() if inner == name), "")
        if outer:
            return outer
        if name in draft.values or name not in draft.unsigned:
            return name
        if name not in draft.outer:
            made = draft.fresh(f"{name}.{unsigned.kind_of(draft, name)}")
            unsigned.emit_unsigned(draft, name, made)
            draft.outer[name] = made
        return draft.outer[name]

    def known(self, name: str) -> Array | None:
        return self.draft.values.get(name)

    def value(self, index: int, what: str) -> Array:
        """Return the value of an input, which must be known.

        Errors  BuildError that names the model inputs on which it depends
        """
        return self.draft.needed(self.op, self.op.input(index), what)

    def ints(self, index: int, what: str) -> tuple[int, ...] | None:
        """Return the integers of a known input or of an attribute; None if it is
        absent."""
        if self.has(index):
            return tuple(int(v) for v in self.value(index, what).reshape(-1))
        return self.op.integers(what, ()) if what in self.op.attrs else None

    def shape(self, name: str) -> tuple[int, ...]:
        return self.draft.shape(name)

    def rank(self, name: str) -> int:
        return len(self.shape(name))

    def dtype(self, name: str) -> DType:
        value = self.known(name)
        if value is not None:
            return self.draft.type_of(name, value)
        return self.draft.tensor(name).dtype

    def axis(self, number: int, rank: int) -> int:
        if not -rank <= number < max(rank, 1):
            raise self.op.invalid(f"axis {number} of a tensor of {rank} axes")
        return number % max(rank, 1)

    # ---- nodes ----------------------------------------------------------------

    def emit(
        self,
        kind: str,
        inputs: Sequence[str],
        attrs: Mapping[str, Attr] | None = None,
        *,
        shape: tuple[int, ...] | None = None,
    ) -> str:
        """Adds one node to the graph, or computes its value if that is known now. For
        weights it does both: passes fold the node.

        Of weights both: passes fold the node.
        """
        draft = self.draft
        moves = kind in MOVING and draft.is_weight(inputs[0])
        text = f"{inputs[0]}.moved" if moves else f"{self.op.output}.{kind}"
        name = draft.fresh(text)
        values = [self.known(n) for n in inputs]
        node = Node(kind, name, tuple(inputs), (name,), dict(attrs or {}))
        small = all(v is not None and v.size <= MOST_FOLDED for v in values)
        if small:
            made = self._computed(node, values, shape)
            if made is not None:
                draft.known_as(name, made, node)
                return name
        reads = tuple(draft.raw(n) if n else "" for n in inputs)
        node = Node(kind, name, reads, (name,), dict(attrs or {}))
        first = draft.tensor(reads[0])
        draft.tensors[name] = Tensor(name, shape or (), first.dtype)
        try:
            made_shape, dtype = OPERATORS[kind].infer(node, draft.view)[0]
        except Exception:
            del draft.tensors[name]
            raise
        tensor = Tensor(name, made_shape if shape is None else shape, dtype)
        if tensor.bytes > MOST_BYTES:
            raise self.op.invalid(f"a tensor would have {tensor.bytes} bytes")
        draft.tensors[name] = tensor
        draft.nodes.append(node)
        return name

    def _computed(
        self, node: Node, values: Sequence[Array | None], shape: Any
    ) -> Array | None:
        """Return the value of a node with known inputs, or None if it is large."""
        graph = self.draft.scratch(node, values, shape)
        made_shape, dtype = OPERATORS[node.op].infer(node, graph)[0]
        full = made_shape if shape is None else shape
        if math.prod(full) > MOST_FOLDED:
            return None
        graph = self.draft.scratch(node, values, full, dtype)
        return OPERATORS[node.op].reference(node, graph, values)[0]

    def give(self, name: str, index: int = 0) -> None:
        """Make a tensor, or a list of tensors, the output with this index."""
        draft, outputs = self.draft, self.op.outputs
        if index >= len(outputs) or not outputs[index]:
            return
        output = outputs[index]
        if draft.passed(name, output):
            return
        value = self.known(name)
        if value is not None:
            node = Node("reshape", output, (name,), (output,))
            draft.known_as(output, value, node)
            return
        draft.emit("copy", output, [name], output)

    # ---- the nodes by name ----------------------------------------------------

    def const(self, value: Any, like: str | DType | None = None) -> str:
        """Add a known value; `like`: a type, or the tensor whose type it gets."""
        dtype = self.dtype(like) if isinstance(like, str) else like
        array = np.asarray(value, None if dtype is None else dtype.numpy)
        name = self.draft.fresh(f"{self.op.output}.constant")
        self.draft.budget.put(self.draft.values, name, array)
        return name

    def map(self, fn: str, *inputs: str, **attrs: Attr) -> str:
        return self.emit("map", inputs, {"fn": fn, **attrs})

    def cast(self, x: str, to: DType) -> str:
        return x if self.dtype(x) is to else self.map("cast", x, to=to.value)

    def add(self, a: str, b: str) -> str:
        return self.map("add", a, b)

    def sub(self, a: str, b: str) -> str:
        return self.map("subtract", a, b)

    def mul(self, a: str, b: str) -> str:
        return self.map("multiply", a, b)

    def div(self, a: str, b: str) -> str:
        return self.map("divide", a, b)

    def scaled(self, x: str, factor: float) -> str:
        return x if factor == 1 else self.mul(x, self.const(factor, x))

    def plus(self, x: str, number: float) -> str:
        return x if number == 0 else self.add(x, self.const(number, x))

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        wanted = tuple(int(d) for d in shape)
        if wanted == self.shape(x):
            return x
        return self.emit("reshape", [x], shape=wanted)

    def transpose(self, x: str, perm: Axes) -> str:
        order = tuple(int(p) for p in perm)
        if order == tuple(range(len(order))):
            return x
        return self.emit("transpose", [x], {"perm": order})

    def expand(self, x: str, shape: Sequence[int]) -> str:
        wanted = tuple(int(d) for d in shape)
        if self.shape(x) == wanted:
            return x
        return self.map("copy", x, shape=wanted)

    def concat(self, parts: Sequence[str], axis: int) -> str:
        full = [p for p in parts if self.shape(p)[axis]] or list(parts[:1])
        if len(full) == 1:
            return full[0]
        return self.emit("concat", full, {"axis": axis})

    def slice(self, x: str, axis: int, begin: int, end: int, step: int = 1) -> str:
        """Slice one axis; begin, end and step mean the same as in Python."""
        shape = self.shape(x)
        cut = [(0, d, 1) for d in shape]
        cut[axis] = slice(begin, end, step).indices(shape[axis])
        if not len(range(*cut[axis])):
            empty = tuple(0 if n == axis else d for n, d in enumerate(shape))
            return self.const(np.zeros(empty), x)
        if all(c == (0, d, 1) for c, d in zip(cut, shape, strict=True)):
            return x
        names = ("begin", "end", "strides")
        attrs = {n: tuple(c[i] for c in cut) for i, n in enumerate(names)}
        return self.emit("slice", [x], attrs)

    def flip(self, x: str, axis: int) -> str:
        shape = self.shape(x)
        if shape[axis] == 1:
            return x
        return self.emit("slice", [x], backwards(shape, (axis,)))

    def pad(self, x: str, pads: Sequence[tuple[int, int]], value: float = 0.0) -> str:
        given = tuple((int(a), int(b)) for a, b in pads)
        if not any(a or b for a, b in given):
            return x
        return self.emit("pad", [x], {"pads": given, "value": value})

    def gather(self, x: str, indices: str, axis: int) -> str:
        return self.emit("gather", [x, indices], {"axis": axis})

    def taken(self, x: str, indices: Any, axis: int) -> str:
        """Gather at known indices, given in their shape."""
        return self.gather(x, self.const(np.asarray(indices, np.int32)), axis)

    def matmul(self, a: str, b: str) -> str:
        return self.emit("matmul", [a, b])

    def reduce(self, fn: str, x: str, axes: Axes, keep: bool = True) -> str:
        """Over any axes; "mean" too."""
        shape = self.shape(x)
        found = sorted({self.axis(a, len(shape)) for a in axes})
        kept = [i for i in range(len(shape)) if i not in found]
        made_shape = [1 if i in found else d for i, d in enumerate(shape)]
        count = math.prod(shape[i] for i in found)
        if found:
            whole = found == list(range(found[0], found[-1] + 1))
            if whole:
                outer = [shape[i] for i in range(found[0])]
                inner = [shape[i] for i in range(found[-1] + 1, len(shape))]
                flat = self.reshape(x, (*outer, count, *inner))
                axis = len(outer)
            else:
                flat = self.transpose(x, (*kept, *found))
                flat = self.reshape(flat, (*(shape[i] for i in kept), count))
                axis = len(kept)
            name = "sum" if fn == "mean" else fn
            attrs: dict[str, Attr] = {"fn": name, "axis": axis}
            if self.wide and self.dtype(flat) in HALVES:
                attrs["wide"] = True
            x = self.emit("reduce", [flat], attrs)
            if fn == "mean":
                x = self.div(x, self.const(count, x))
        final = made_shape if keep else [shape[i] for i in kept]
        return self.reshape(x, final)

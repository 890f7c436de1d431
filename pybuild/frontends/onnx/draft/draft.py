"""A graph during import, by ONNX names. A uint8 tensor of the file is int8 here, its
zero point 128 lower; only inputs and outputs are uint8. Must not know any ONNX
operator.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem
from pybuild.frontends.onnx.reader.op import Boundary, Op
from pybuild.ir.graph import Attr, Bound, Graph, Node, Quant, Tensor
from pybuild.ops import OPERATORS
from pybuild.ops.shape import MOVING
from pybuild.params.budget import Budget
from pybuild.text.short_names import brief

# more than this is a broken file, not a model for a microcontroller
MOST_BYTES = 1 << 31
# element types of weights
_WEIGHTS = ("float16", "float32", "float64", "int8")
# types that a tensor may have without a scale
_PLAIN = ("float32", "float64", "int32", "int64", "bool")


# unsigned type of the file -> the signed type that holds its quantised values here
SIGNED = {"uint8": DType.INT8, "uint16": DType.INT16}


class Draft:
    """Tensors, constants and nodes, all by their names in the file.

    budget    the rest of the resources that the file may use
    values    values known at build time; constants as soon as an operator reads them
    quants    scales that the file gives only where a tensor is read
    derived   known values -> the node that computes them from weights of the file
    sources   dequantised constant -> the integer constant behind it
    unsigned  int8 and int16 tensors that are uint8 and uint16 in the file
    lists     lists of tensors -> their elements; nothing: optional values that are
              absent
    scope     names in the subgraph being imported -> their names here
    turns     number of subgraphs imported so far, for unique names
    inner     unsigned input -> its signed twin; outer: signed tensor -> its twin
    dynamic   output of DynamicQuantizeLinear -> its input, and its zero point
    told      inferred types of tensors, for stand-ins
    wanted    inputs whose values would make an unknown value known
    bounds    maximum sizes of data-dependent results; None: the largest possible
    boundless  names for which a bound may be given
    ragged    tensors that may hold fewer elements than they have room for
    """

    def __init__(self, source: str, reserved: Collection[str]) -> None:
        self.source = source
        self.reserved = set(reserved)
        self.values: dict[str, Array] = {}
        self.budget = Budget(source, 0)
        self.quants: dict[str, Quant] = {}
        self.derived: dict[str, Node] = {}
        self.sources: dict[str, str] = {}
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.nodes: list[Node] = []
        self.unsigned = set[str]()
        self.inner, self.outer = dict[str, str](), dict[str, str]()
        self.dynamic: dict[str, tuple[str, str]] = {}
        self.wanted: set[str] = set()
        self.lists, self.nothing = dict[str, tuple[str, ...]](), set[str]()
        self.bounds: Mapping[str, int] | None = {}
        self.boundless: set[str] = set()
        self.ragged: dict[str, Bound] = {}
        self.scope: dict[str, str] = {}
        self.turns = 0
        self.makers: dict[str, tuple[str, ...]] = {}
        self.inputs = frozenset[str]()
        self.problems: list[Problem] = []
        self.told: Mapping[str, Boundary] = {}
        self._arranged: dict[tuple[object, ...], str] = {}
        self._numbered: dict[str, int] = {}  # text -> a number below which all have one
        self.origins: dict[str, str] = {}
        self.view = Graph(
            "", source, (), self.tensors, (), (), self.constants, origins=self.origins
        )

    def fresh(self, text: str) -> str:
        """Return a name like `text` that is not in use."""
        name, count = text, self._numbered.get(text, 1)
        while name in self.tensors or name in self.reserved or name in self.values:
            count += 1
            name = f"{text}.{count}"
        self._numbered[text] = max(count - 1, 1)
        return name

    def known(self, name: str) -> Array | None:
        """Return the value of a tensor, or None if it is not known at build time."""
        return self.values.get(name)

    def has(self, name: str) -> bool:
        return name in self.tensors or name in self.values or self.no_tensor(name)

    def no_tensor(self, name: str) -> bool:
        """Return True for a list of tensors, or for an absent optional value."""
        return name in self.lists or name in self.nothing

    def passed(self, name: str, output: str) -> bool:
        """Alias a list or an absent optional; return False for a tensor."""
        if name in self.lists:
            self.lists[output] = self.lists[name]
        elif name in self.nothing:
            self.nothing.add(output)
        return self.no_tensor(name)

    def tensor(self, name: str) -> Tensor:
        """Return a tensor. A known value first becomes a constant, or the nodes that
        compute it from weights, which users can then still replace.

        Errors  BuildError for an unsupported element type
        """
        if name not in self.tensors:
            if name in self.derived:
                self._derive(name)
            else:
                self._store(name, self.values[name], self.quants.get(name))
        return self.tensors[name]

    def _derive(self, name: str) -> None:
        """Add the nodes that compute a known value from weights; passes fold them."""
        left = [name]
        while left:
            node = self.derived[left[-1]]
            first = [
                n for n in node.inputs if n in self.derived and n not in self.tensors
            ]
            left += first
            if first or left.pop() in self.tensors:
                continue
            reads = tuple(self.raw(n) for n in node.inputs)
            value, made = self.values[node.output], node.output
            quant = self.tensors[reads[0]].quant if node.op in MOVING else None
            kind = self.type_of(made, value)
            self.tensors[made] = Tensor(made, value.shape, kind, quant)
            self.nodes.append(replace(node, inputs=reads))

    def is_weight(self, name: str) -> bool:
        """Return True for weights of the file, or a value computed from such."""
        value = self.values.get(name)
        kind = "" if value is None else value.dtype.name
        return name in self.derived or (name in self.reserved and kind in _WEIGHTS)

    def known_as(self, name: str, value: Array, node: Node) -> None:
        """Record a known value, and the node that makes it if that reads weights."""
        self.budget.put(self.values, name, value)
        of_weights = any(self.is_weight(n) for n in node.inputs)
        if of_weights and value.size and value.dtype != np.uint8:  # int8 here
            self.derived[name] = node

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor or of a known value."""
        value = self.values.get(name)
        return value.shape if value is not None else self.tensors[name].shape

    def constant(self, text: str, value: Array, quant: Quant | None = None) -> str:
        """Add a constant and return its name, which is like `text`."""
        name = self.fresh(text)
        self._store(name, value, quant)
        return name

    def integers(self, name: str, value: Array, quant: Quant) -> str:
        """Add a quantised constant of the file; under its own name if possible."""
        if name not in self.tensors:
            self._store(name, value, quant)
        same = name in self.constants and self.tensors[name].quant == quant
        return name if same else self.constant(f"{name}.integers", value, quant)

    def raw(self, name: str) -> str:
        """Return a tensor in the file's type, which may be an unsigned constant."""
        value = self.values.get(name)
        if value is None or value.dtype not in (np.uint8, np.uint16):
            self.tensor(name)
            return name
        made = f"{name}.raw"
        if made not in self.tensors:
            self.tensors[made] = Tensor(made, value.shape, DType.of(value))
            self.constants[made] = np.ascontiguousarray(value).reshape(value.shape)
        return made

    def type_of(self, name: str, value: Array) -> DType:
        """Return the element type of a tensor, or raise BuildError."""
        try:
            return DType.of(value)
        except ValueError:
            what = f"'{name}' is {value.dtype.name}, which is not supported"
            raise BuildError("", what, "export the model in float32 or int8") from None

    def note_origins(self, op: Op, before: int) -> None:
        """Record, for messages, the file's name for the nodes added since number
        `before`. Nodes from a subgraph already have theirs."""
        for node in self.nodes[before:]:
            for name in (node.name, *node.outputs):
                self.origins.setdefault(name, f"'{brief(op.name)}' ({op.kind})")

    def stand_in(self, names: Sequence[str]) -> None:
        """Add tensors in place of outputs that a problem kept from being computed, so
        that their readers are examined; none if quantised, as the scale is unknown."""
        for name in names if self.problems else ():
            told = self.told.get(name)
            if self.has(name) or told is None or told.dtype not in _PLAIN:
                continue
            self.tensors[name] = Tensor(name, told.shape, DType(told.dtype))

    def scratch(
        self,
        node: Node,
        values: Sequence[Array | None],
        shape: tuple[int, ...] | None,
        dtype: DType = DType.FLOAT32,
    ) -> Graph:
        """Return a graph of one node with known inputs."""
        tensors = {
            name: Tensor(name, value.shape, self.type_of(name, value))
            for name, value in zip(node.inputs, values, strict=True)
            if value is not None
        }
        tensors[node.output] = Tensor(node.output, tuple(shape or ()), dtype)
        return Graph("", self.source, (node,), tensors, (), ())

    def needed(self, op: Op, name: str, what: str) -> Array:
        """Return a value that must be known at build time.

        Errors  BuildError that names the model inputs on which it depends
        """
        value = self.known(name) if name else None
        if value is not None:
            return value
        roots = self.roots(name)
        self.wanted |= roots
        hint = "give a fixed shape at export, or simplify with onnxsim"
        if roots:
            hint = f"--input-value {sorted(roots)[0]}=..., or a fixed shape at export"
        raise op.invalid(f"its {what} is computed by the model", hint)

    def roots(self, name: str) -> set[str]:
        """Return the model's inputs from which a tensor is computed."""
        seen, left = set(), [name]
        while left:
            one = left.pop()
            if one not in seen and one not in self.values:
                seen.add(one)
                left += self.makers.get(one, ())
        return seen & self.inputs

    def _store(self, name: str, value: Array, quant: Quant | None) -> None:
        try:
            dtype = DType.of(value)
        except ValueError:
            what = f"'{name}' is {value.dtype.name}, which is not supported"
            raise BuildError("", what, "export the model in float32 or int8") from None
        signed = SIGNED.get(dtype.value)
        if signed is not None and (dtype is DType.UINT8 or quant is not None):
            value = (value.astype(np.int32) + signed.low).astype(signed.numpy)
            dtype = signed
        self.tensors[name] = Tensor(name, value.shape, dtype, quant)
        self.constants[name] = np.ascontiguousarray(value).reshape(value.shape)

    def emit(
        self,
        op: str,
        name: str,
        inputs: Sequence[str],
        output: str,
        attrs: Mapping[str, Attr] | None = None,
        *,
        shape: tuple[int, ...] = (),
        dtype: DType = DType.FLOAT32,
        quant: Quant | None = None,
    ) -> str:
        """Add a node; its operator infers the output's type.

        shape, dtype, quant   the output's, for operators that do not infer them
        Errors  BuildError if the operator rejects the node
        """
        self.budget.take_nodes()
        for read in inputs:
            if read:
                self.tensor(read)
        if output in self.tensors or output in self.values:
            raise BuildError("", f"the tensor '{output}' is defined again")
        node = Node(op, name, tuple(inputs), (output,), dict(attrs or {}))
        self.tensors[output] = Tensor(output, shape, dtype, quant)
        try:
            made_shape, made = OPERATORS[op].infer(node, self.view)[0]
        except Exception:
            del self.tensors[output]
            self._numbered.clear()
            raise
        if quant is None and not made.is_float:
            quant = self.tensors[inputs[0]].quant
        tensor = Tensor(output, made_shape, made, quant)
        self.tensors[output] = tensor
        if tensor.bytes > MOST_BYTES:
            raise BuildError("", f"'{output}' would have {tensor.bytes} bytes")
        self.nodes.append(node)
        return output

    def arranged(
        self,
        op: Op,
        name: str,
        perm: tuple[int, ...],
        shape: tuple[int, ...],
        what: str,
    ) -> str:
        """Return weights with their axes moved and then reshaped; scales follow.

        The file's own stay the constant, for users to know and replace.

        Errors  BuildError if they are not known at build time
        """
        whole = self.sources.get(name, name)
        constant = whole in self.constants or whole in self.values
        if not constant and whole not in self._arranged.values():
            hint = "only constant weights are supported; fold them at export"
            raise op.invalid(f"its {what} '{name}' is computed by the model", hint)
        if len(perm) != len(self.shape(whole)):
            raise op.invalid(f"its {what} has shape {list(self.shape(whole))}")
        quant = self.tensor(whole).quant
        if quant is not None and quant.axis is not None:
            have = [self.shape(whole)[axis] for axis in perm]
            axis = axis_after(have, perm.index(quant.axis), shape)
            if axis is None:
                what = f"its {what} '{name}' has scales along an axis that is divided"
                raise op.invalid(what, "a scale per output channel, or one for all")
            quant = replace(quant, axis=axis)
        moved = self._moved(whole, perm, shape, quant)
        if moved == whole:
            return name
        return self.as_read(name, moved, "moved")

    def as_read(self, name: str, made: str, how: str) -> str:
        """Return the name to read in place of `name`, a constant or the dequantize of
        one, once the constant is `made`."""
        if name not in self.sources:
            return made
        output = self.fresh(f"{name}.{how}")
        self.emit("dequantize", output, [made], output, {"simulated": True})
        self.sources[output] = made
        return output

    def _moved(
        self,
        name: str,
        perm: tuple[int, ...],
        shape: tuple[int, ...],
        quant: Quant | None,
    ) -> str:
        """Return a constant with its axes moved, by nodes that are folded later;
        cached."""
        key = (name, perm, shape)
        if key not in self._arranged:
            made = name
            moved = tuple(self.shape(name)[axis] for axis in perm)
            if perm != tuple(range(len(perm))):
                last = f"{name}.moved" if moved == shape else f"{name}.transposed"
                made = self.fresh(last)
                kept, whole = {"perm": perm}, self.tensor(name).quant
                if whole is not None and whole.axis is not None:
                    whole = replace(whole, axis=perm.index(whole.axis))
                self.emit("transpose", made, [name], made, kept, quant=whole)
            if moved != shape:
                last = self.fresh(f"{name}.moved")
                self.emit("reshape", last, [made], last, shape=shape, quant=quant)
                made = last
            self._arranged[key] = made
        return self._arranged[key]

    def renamed(self, old: str, new: str) -> None:
        """Rename a tensor in all nodes."""
        self.tensors[new] = replace(self.tensors.pop(old), name=new)

        def names(found: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(new if name == old else name for name in found)

        self.nodes = [
            replace(n, inputs=names(n.inputs), outputs=names(n.outputs))
            for n in self.nodes
        ]


def axis_after(have: Sequence[int], axis: int, shape: Sequence[int]) -> int | None:
    """Return the axis after a reshape: the one of the same size with as many elements
    before it; None if there is none."""
    before = math.prod(have[:axis])
    for place, size in enumerate(shape):
        if size == have[axis] and math.prod(shape[:place]) == before:
            return place
    return None

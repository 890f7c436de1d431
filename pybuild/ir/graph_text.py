"""Graphs as text: text(graph) writes it, parse(text) reads it back."""

from __future__ import annotations

import ast
import base64
import json
import keyword
import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Bound, Graph, Node, Quant, State, Tensor, Window
from pybuild.records import dataclass

# constants of more elements are written as bytes
_LISTED = 64
_PLAIN = re.compile(r"[A-Za-z_][\w./:-]*")
_NAME = r'(?:[A-Za-z_][\w./:-]*|"(?:[^"\\]|\\.)*")'
_TENSOR = re.compile(rf"({_NAME}): (\w+)\[([\d,]*)\](?: q(\([^)]*\)))?")


def text(graph: Graph) -> str:
    """Every fact of a graph but what its nodes are called in the file.

        graph digits from digits.tflite
        input image: int8[1,64] q(0.5, -128)
        const w: int8[2,64] q([0.25, 0.125], [0, 0], 0) = bytes("...")
        y: int8[1,2] q(0.5, 3) = dense(image, w, None, rounding='away')
        output y

    A name that is not a plain word stands in quotation marks.
    """
    lines = [f"graph {_name(graph.name)} from {_name(graph.source)}"]
    lines += [f"input {_tensor(graph, name)}" for name in graph.inputs]
    for name, state in graph.state.items():
        initial = _values(state.initial)
        lines.append(f"state {_tensor(graph, name)} <- {_name(state.next)} = {initial}")
    for name, value in graph.constants.items():
        known = graph.parameters.get(name)
        word = "const" if known is None else f"param {_name(known)} is"
        lines.append(f"{word} {_tensor(graph, name)} = {_values(value)}")
    lines += [_node(graph, node) for node in graph.nodes]
    lines += [f"output {_name(name)}" for name in graph.outputs]
    lines += _facts(graph)
    return "\n".join(lines) + "\n"


def _facts(graph: Graph) -> Iterator[str]:
    for name in graph.lazy:
        yield f"lazy {_name(name)}"
    for word, numbers in (("storage", graph.storage), ("home", graph.homes)):
        for name, number in numbers.items():
            yield f"{word} {_name(name)} {number}"
    for name, window in graph.windows.items():
        yield f"window {_name(name)} {window.axis} {window.rows}"
    for name, bound in graph.bounded.items():
        yield f"bound {_name(name)} {bound.axis} {_name(bound.count)}"
    if graph.sampled:
        yield f"sampled {_name(graph.sampled)}"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def _tensor(graph: Graph, name: str) -> str:
    tensor = graph.tensor(name)
    dims = ",".join(map(str, tensor.shape))
    quant = tensor.quant
    said = ""
    if quant is not None:
        scale = quant.scale[0] if len(quant.scale) == 1 else list(quant.scale)
        zero = quant.zero_point[0] if len(quant.zero_point) == 1 else None
        parts = [repr(scale), repr(list(quant.zero_point) if zero is None else zero)]
        parts += [] if quant.axis is None else [str(quant.axis)]
        said = f" q({', '.join(parts)})"
    return f"{_name(name)}: {tensor.dtype.value}[{dims}]{said}"


def _values(array: Array) -> str:
    if array.size and not array.tobytes().strip(b"\0"):
        return "zeros"
    if array.size <= _LISTED and array.dtype.name != "bfloat16":
        return json.dumps(array.ravel().tolist())
    return f'bytes("{base64.b85encode(array.tobytes()).decode()}")'


def _node(graph: Graph, node: Node) -> str:
    made = "; ".join(_tensor(graph, name) for name in node.outputs)
    words = [_operand(name) for name in node.inputs]
    words += [f"{key}={node.attrs[key]!r}" for key in sorted(node.attrs)]
    if node.device:
        words.append(f"_device={node.device}")
    if node.name != node.output:
        words.append(f"_name={node.name!r}")
    return f"{made} = {node.op}({', '.join(words)})"


def _operand(name: str) -> str:
    """A Python name where it can be one; nothing, where an input is absent: None."""
    if not name:
        return "None"
    return name if name.isidentifier() and not keyword.iskeyword(name) else repr(name)


def parse(source: str) -> Graph:
    """The graph of a text: parse(text(graph)) == graph.

    Errors  ValueError naming the line
    """
    draft = _Draft()
    for number, line in enumerate(source.splitlines(), 1):
        try:
            if line.strip() and not line.startswith("#"):
                draft.read(line.strip())
        except (ValueError, KeyError, IndexError, SyntaxError, TypeError) as error:
            raise ValueError(f"line {number}: {error}") from None
    return draft.graph()


def _unquoted(word: str) -> str:
    made: str = json.loads(word) if word.startswith('"') else word
    return made


@dataclass
class _Draft:
    """The graph that the lines so far describe."""

    names: tuple[str, str] = ("", "")
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    lazy: list[str] = field(default_factory=list)
    numbers: dict[str, dict[str, int]] = field(
        default_factory=lambda: {"storage": {}, "home": {}}
    )
    state: dict[str, State] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    bounded: dict[str, Bound] = field(default_factory=dict)
    sampled: str = ""

    def read(self, line: str) -> None:
        """One line that is neither empty nor a remark."""
        word, _, rest = line.partition(" ")
        match word:
            case "graph":
                found = re.fullmatch(rf"({_NAME}) from ({_NAME})", rest)
                if found is None:
                    raise ValueError("graph NAME from FILE")
                self.names = _unquoted(found[1]), _unquoted(found[2])
            case "input":
                self.inputs.append(self._tensor(rest)[0].name)
            case "output" | "lazy":
                named = self.outputs if word == "output" else self.lazy
                named.append(_unquoted(rest))
            case "sampled":
                self.sampled = _unquoted(rest)
            case "const" | "param" | "state":
                self._known(word, rest)
            case "storage" | "home":
                name, _, number = rest.rpartition(" ")
                self.numbers[word][_unquoted(name)] = int(number)
            case "window" | "bound":
                self._rows(word, rest)
            case _:
                self._node(line)

    def _rows(self, word: str, rest: str) -> None:
        found = re.fullmatch(rf"({_NAME}) (\d+) (.*)", rest)
        if found is None:
            raise ValueError(f"{word} NAME AXIS ...")
        name, axis = _unquoted(found[1]), int(found[2])
        if word == "window":
            self.windows[name] = Window(axis, int(found[3]))
        else:
            self.bounded[name] = Bound(axis, _unquoted(found[3]))

    def _tensor(self, line: str) -> tuple[Tensor, str]:
        """The tensor that a line begins with, and the rest of the line."""
        found = _TENSOR.match(line)
        if found is None:
            raise ValueError(f"'{line[:40]}' is not NAME: TYPE[SHAPE]")
        shape = tuple(int(n) for n in found[3].split(",") if n)
        quant = None
        if found[4] is not None:
            scale, zero, *axis = ast.literal_eval(found[4])
            each = [tuple(v) if isinstance(v, list) else (v,) for v in (scale, zero)]
            quant = Quant(each[0], each[1], axis[0] if axis else None)
        made = Tensor(_unquoted(found[1]), shape, DType(found[2]), quant)
        self.tensors[made.name] = made
        return made, line[found.end() :]

    def _known(self, word: str, line: str) -> None:
        """A constant, a parameter or a state."""
        if word == "param":
            found = re.match(rf"({_NAME}) is ", line)
            if found is None:
                raise ValueError("param NAME is NAME: TYPE[SHAPE] = VALUES")
            line = line[found.end() :]
        tensor, rest = self._tensor(line)
        told, _, values = rest.rpartition(" = ")
        array = _array(tensor, values)
        if word == "state":
            following = _unquoted(told.removeprefix(" <- "))
            self.state[tensor.name] = State(following, array)
            return
        self.constants[tensor.name] = array
        if word == "param" and found is not None:
            self.parameters[tensor.name] = _unquoted(found[1])

    def _node(self, line: str) -> None:
        outputs, rest = [], line
        while True:
            tensor, rest = self._tensor(rest)
            outputs.append(tensor.name)
            if not rest.startswith("; "):
                break
            rest = rest[2:]
        call = ast.parse(rest.removeprefix(" = "), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("OUTPUT = OPERATOR(INPUT, ..., ATTRIBUTE=VALUE, ...)")
        inputs = tuple(
            arg.id if isinstance(arg, ast.Name) else ast.literal_eval(arg) or ""
            for arg in call.args
        )
        attrs = {k.arg or "": _literal(k.value) for k in call.keywords}
        name, device = attrs.pop("_name", outputs[0]), attrs.pop("_device", 0)
        made = Node(call.func.id, name, inputs, tuple(outputs), attrs, device)
        self.nodes.append(made)

    def graph(self) -> Graph:
        return Graph(
            *self.names, tuple(self.nodes), self.tensors, tuple(self.inputs),
            tuple(self.outputs), self.constants, self.parameters, tuple(self.lazy),
            self.numbers["storage"], self.numbers["home"], self.state, self.windows,
            self.bounded, self.sampled,
        )  # fmt: skip


def _literal(node: ast.expr) -> Any:
    """A literal; inf and nan are names, as repr() writes them."""
    if isinstance(node, ast.Name | ast.UnaryOp):
        text_of = ast.unparse(node)
        if text_of.lstrip("-") in ("inf", "nan"):
            return float(text_of)
    if isinstance(node, ast.Tuple):
        return tuple(_literal(item) for item in node.elts)
    return ast.literal_eval(node)


def _array(tensor: Tensor, values: str) -> Array:
    dtype = tensor.dtype.numpy
    if values == "zeros":
        return np.zeros(tensor.shape, dtype)
    packed = re.fullmatch(r'bytes\("(.*)"\)', values)
    if packed is None:
        return np.array(json.loads(values), dtype).reshape(tensor.shape)
    raw = base64.b85decode(packed[1])
    return np.frombuffer(raw, dtype).reshape(tensor.shape)

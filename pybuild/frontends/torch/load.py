"""The front end of torch.export's programs: each ATen operator becomes ONNX nodes,
which the ONNX front end turns into a graph. Only a program in memory needs torch.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pybuild.errors import BuildError, Problem
from pybuild.frontends.onnx.load import load as load_onnx
from pybuild.frontends.onnx.reader.op import TORCH
from pybuild.frontends.torch.operators.elements import ELEMENTS
from pybuild.frontends.torch.operators.in_place import (
    IN_PLACE,
    changed_in_place,
    is_in_place,
    written,
)
from pybuild.frontends.torch.operators.layers import LAYERS
from pybuild.frontends.torch.operators.moves import MOVES
from pybuild.frontends.torch.operators.pools import POOLS
from pybuild.frontends.torch.operators.products import PRODUCTS
from pybuild.frontends.torch.operators.quantised import QUANTISED
from pybuild.frontends.torch.operators.recurrent import RECURRENT
from pybuild.frontends.torch.operators.writer import KINDS, Handler, Writer
from pybuild.frontends.torch.reader.archive import read
from pybuild.frontends.torch.reader.program import Call, Program
from pybuild.ir.graph import Graph, State

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET = 21
_ATEN = {
    **ELEMENTS, **IN_PLACE, **LAYERS, **MOVES, **POOLS, **PRODUCTS, **RECURRENT
}  # fmt: skip
_OTHERWISE = "exported.run_decompositions() before torch.export.save may write it out"
# whose results are complex numbers
_COMPLEX = (
    "aten.stft", "aten.istft", "aten.fft_", "aten._fft_", "aten.real", "aten.imag",
    "aten.view_as_complex", "aten.view_as_real",
)  # fmt: skip
_TRANSFORMS = (
    "torch.onnx.export(..., dynamo=True) writes transforms that compile; or take "
    "pybuild.features"
)
_BAD = (TypeError, ValueError, KeyError, IndexError, AttributeError, StopIteration)


def load(source: str, data: bytes, input_dims: Mapping[str, int]) -> Graph:
    """Return the graph of a .pt2 file; buffers that a run changes become state.

    input_dims  values of open dimensions, by torch's names (s77)
    Errors      BuildError with every finding
    """
    program = read(source, data, input_dims)
    model, mutated = converted(program)
    graph = load_onnx(source, model.SerializeToString(), {})
    if not mutated:
        return graph
    state = {name: State(end, program.weights[name]) for name, end in mutated.items()}
    ends = {one.next for one in state.values()} - set(program.outputs)
    inputs = tuple(name for name in graph.inputs if name not in state)
    outputs = tuple(name for name in graph.outputs if name not in ends)
    return replace(graph, inputs=inputs, outputs=outputs, state=state)


def of_torch(exported: Any) -> bytes:
    """Return the .pt2 file of an ExportedProgram in memory.

    Errors  BuildError if torch cannot write it
    """
    import torch

    file = io.BytesIO()
    try:  # nothing is done in place then
        torch.export.save(exported.run_decompositions({}), file)
    except Exception as error:  # torch has classes of its own
        what = f"torch cannot save it: {' '.join(str(error).split())[:200]}"
        raise BuildError("ExportedProgram", what) from None
    return file.getvalue()


def converted(program: Program) -> tuple[ModelProto, dict[str, str]]:
    """Return the program as an ONNX message, and the buffers that a run changes: each
    is an input, and its value after a run is an output.

    Errors  BuildError with every operator that cannot be converted
    """
    w, problems = Writer(program), list[Problem]()
    changed = changed_in_place(program)
    w.mutated = {name: name for name in sorted(changed & program.weights.keys())}
    w.mutated |= program.mutated
    for name in w.mutated:
        w.constants.pop(name, None)
    for call in program.calls:
        try:
            _write(w, call)
        except BuildError as error:
            problems += error.problems
        except _BAD:
            what = "the operator is not supported with these arguments"
            problems.append(Problem(call.where, what, _OTHERWISE))
    if problems:
        raise BuildError.of(problems)
    return _message(program, w), w.mutated


def _write(w: Writer, call: Call) -> None:
    if not any(call.outputs):
        return
    name = ".".join(call.target.split(".")[:2])
    plain = name.removesuffix("_")  # in place
    names = (name, plain, plain.removesuffix("_copy"))  # the last: no view
    handler = next((OPERATORS[n] for n in names if n in OPERATORS), None)
    if handler is None:
        if call.target.startswith("_operator."):
            return  # of sizes, which are numbers
        hint = _TRANSFORMS if plain.startswith(_COMPLEX) else _OTHERWISE
        raise call.invalid(f"the operator {name} is not supported", hint)
    w.begin(call)
    handler(w, call)
    if is_in_place(call):
        written(w, call)


def copy_into(w: Writer, call: Call) -> None:
    """Emit copy_ of a whole tensor."""
    x, source = call.tensor("self"), call.tensor("src")
    value = w.as_kind(source, w.kind(x))
    if w.shape(source) != w.shape(x):
        value = w.op("Expand", value, w.ints(w.shape(x)))
    w.give("Identity", value)


OPERATORS: dict[str, Handler] = {
    **{f"aten.{name}": handler for name, handler in _ATEN.items()}, **QUANTISED,
    "aten.copy_": copy_into,
}  # fmt: skip


def _rename(w: Writer, old: str, new: str) -> None:
    for node in w.nodes:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                if name == old:
                    names[i] = new


def _message(program: Program, w: Writer) -> ModelProto:
    from onnx import helper, numpy_helper

    for name, end in w.mutated.items():
        if end == name:  # written in place: an output of its own
            w.mutated[name] = w.name(name)
    outputs = dict.fromkeys((*program.outputs, *w.mutated.values()))
    made = {name for node in w.nodes for name in node.output}
    for name in outputs:  # an output that is an input, or another one, unchanged
        if w.name(name) != name or name not in made:
            source = w.name(name)
            if name in made:  # what it was before something was written into it
                _rename(w, name, f"{name}/before")
            w.nodes.append(helper.make_node("Identity", [source], [name], name=name))
    read = {name for node in w.nodes for name in node.input}
    constants = {n: v for n, v in w.constants.items() if n in read}

    def value(name: str) -> Any:
        kind = KINDS.get(w.kinds[name])
        if kind is None:
            what = f"'{name}' is {w.kinds[name]}, which is not supported"
            raise BuildError(program.source, what, "export the model in float32")
        return helper.make_tensor_value_info(name, kind, w.shapes[name])

    graph = helper.make_graph(
        w.nodes, "program",
        [value(name) for name in (*program.inputs, *w.mutated)],
        [value(name) for name in outputs],
        [numpy_helper.from_array(v, n) for n, v in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(TORCH, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)

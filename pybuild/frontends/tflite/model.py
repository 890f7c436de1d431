"""Turns a .tflite file into a graph: the table of operators, and the walk over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePath

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem
from pybuild.frontends.tflite.draft.builder import Builder, Call
from pybuild.frontends.tflite.operators import detection, layers, shapes, windows
from pybuild.frontends.tflite.operators.control import composite, if_, while_
from pybuild.frontends.tflite.operators.elements import ELEMENTS
from pybuild.frontends.tflite.operators.moves import MOVES
from pybuild.frontends.tflite.operators.products import PRODUCTS
from pybuild.frontends.tflite.operators.recurrent import RECURRENT
from pybuild.frontends.tflite.operators.reductions import REDUCTIONS
from pybuild.frontends.tflite.operators.signal import PAIRS, SIGNAL
from pybuild.frontends.tflite.operators.variables import SILENT, VARIABLES, state_of
from pybuild.frontends.tflite.reader.fixed import with_values
from pybuild.frontends.tflite.reader.flat import FlatModel, FlatOperator, read
from pybuild.ir.graph import Graph, Tensor, rest_of, verify
from pybuild.params.budget import Budget, TooMuch


def _walk(builder: Builder) -> None:
    for index, flat in enumerate(builder.model.operators):
        _translate(builder, flat, index)


OPERATORS: dict[str, Callable[[Call], None]] = {
    "AVERAGE_POOL_2D": windows.average_pool2d,
    "CONCATENATION": shapes.concatenation,
    "CONV_2D": layers.conv2d,
    "DEPTHWISE_CONV_2D": layers.depthwise_conv2d,
    "DENSIFY": layers.densify,
    "DEQUANTIZE": layers.dequantize,
    "EXPAND_DIMS": shapes.expand_dims,
    "IF": lambda call: if_(call, _walk),
    "L2_POOL_2D": windows.l2_pool2d,
    "LEAKY_RELU": layers.leaky_relu,
    "LOGISTIC": layers.logistic,
    "MAX_POOL_2D": layers.max_pool2d,
    "PAD": shapes.pad,
    "PADV2": shapes.pad,
    "RELU": layers.relu,
    "RELU6": layers.relu6,
    "RELU_N1_TO_1": layers.relu_n1_to_1,
    "RESHAPE": shapes.reshape,
    "SLICE": shapes.slice_,
    "SOFTMAX": layers.softmax,
    "SQUEEZE": shapes.squeeze,
    "STABLEHLO_COMPOSITE": lambda call: composite(call, _walk),
    "STRIDED_SLICE": shapes.strided_slice,
    "TANH": layers.tanh,
    "TRANSPOSE": shapes.transpose,
    detection.NAME: detection.detection,
    "WHILE": lambda call: while_(call, _walk),
    **VARIABLES,
    **ELEMENTS,
    **MOVES,
    **PRODUCTS,
    **RECURRENT,
    **REDUCTIONS,
    **SIGNAL,
}
_SUPPORTED = "convert without it; docs/operators.md lists those that are"
# have several outputs
MANY = (
    detection.NAME, *PAIRS, "IF", "SPLIT", "SPLIT_V", "STABLEHLO_COMPOSITE", "UNPACK",
    "WHILE",
)  # fmt: skip


def load(
    path: str,
    data: bytes,
    input_dims: Mapping[str, int],
    max_turns: int = 0,
    input_values: Mapping[str, Array] | None = None,
    signature: str = "",
    hybrid: str = "litert",
) -> Graph:
    """Return the graph of a .tflite model as written: nothing folded, nothing fused.

    path        for messages; its stem names the model
    input_dims  sizes of open dimensions: "NAME" the first one of input NAME,
                "NAME.1" the one at axis 1. An open first dimension (the batch)
                is what the file says, 1, unless given.
    max_turns   limit for each WHILE whose condition is computed; 0: those are rejected
    input_values  values of inputs that become constants, by name
    signature   the one to read, if the file has several
    hybrid      "litert": layers of int8 weights make their float32 input int8 as it
                comes; "float": they compute with real numbers
    Errors      BuildError with every finding
    """
    model, fixed = with_values(read(path, data, signature), input_values or {})
    builder = Builder(path, PurePath(path).stem, model)
    builder.max_turns, builder.budget = max_turns, Budget(path, len(data))
    builder.hybrid = hybrid
    inputs = _inputs(builder, dict(input_dims))
    _walk(builder)
    outputs = _outputs(builder)
    try:
        state = state_of(builder)
    except BuildError as error:
        builder.problems += error.problems
    graph = replace(
        builder.graph,
        nodes=tuple(builder.nodes),
        tensors=dict(builder.tensors),
        inputs=inputs,
        outputs=outputs,
        constants=dict(builder.constants),
        origins=builder.origins,
        fixed=fixed,
        signatures=_signatures(model),
    )
    if builder.problems:
        found = BuildError.of(_each_once(builder.problems))
        found.rest = rest_of(graph)
        raise found
    graph = replace(graph, state=state)
    verify(graph)
    return graph


def _signatures(model: FlatModel) -> tuple[str, ...]:
    """Return the names of the file's signatures, beginning with the one that is
    read."""
    found = sorted(model.signatures.items(), key=lambda one: one[1] != model.number)
    return tuple(name for name, _ in found)


def _each_once(problems: list[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))


def _inputs(builder: Builder, dims: dict[str, int]) -> tuple[str, ...]:
    """Add the model's inputs; return their names."""
    model, made = builder.model, []
    if not model.inputs or not model.outputs:
        what = f"has {len(model.inputs)} inputs and {len(model.outputs)} outputs"
        builder.problems.append(Problem(builder.source, what))
    for index in model.inputs:
        if not _exists(builder, index) or index in builder.known:
            what = f"lists input {index}, which is not a tensor or listed before"
            builder.problems.append(Problem(builder.source, what))
            continue
        try:
            shape = _input_shape(builder, index, dims)
            builder.computed(index, shape)
            tensor = builder.typed(index, shape, True)
            if builder.is_constant(index):
                raise BuildError(builder.source, f"input '{tensor.name}' is a constant")
        except BuildError as error:
            builder.problems += error.problems
            tensor = _placeholder(builder, index)
        builder.known[index] = outside = builder.add(tensor)
        if builder.has_twin(index) and tensor.quant is not None:
            inside = builder.typed(index, tensor.shape)
            builder.known[index] = builder.shifted(outside, inside)
        made.append(tensor.name)
    for key in sorted(dims):
        names = ", ".join(f"'{n}'" for n in made)
        what = f"'{key}' is not an open dimension of an input ({names})"
        builder.problems.append(Problem("--input-dim", what))
    return tuple(made)


def _input_shape(builder: Builder, index: int, dims: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of an input with open dimensions filled in from `dims`, which
    loses the entries used."""
    flat, name = builder.model.tensors[index], builder.names[index]
    signature = flat.signature or flat.shape
    if len(signature) != len(flat.shape):
        raise BuildError(builder.source, f"input '{name}' has two ranks")
    opened = [axis for axis, dim in enumerate(signature) if dim < 0]
    shape = list(flat.shape)
    for axis in opened:
        keys = [f"{name}.{axis}"] + ([name] if axis == opened[0] else [])
        key = next((k for k in keys if k in dims), None)
        if key is not None:
            size = dims.pop(key)
            builder.redimensioned |= size != shape[axis]
            shape[axis] = size
        elif axis > 0 or shape[axis] < 1:
            what = f"dimension {axis} of input '{name}' {list(signature)} is open"
            raise BuildError(builder.source, what, f"--input-dim {keys[-1]}=n")
    return tuple(shape)


def _exists(builder: Builder, index: int) -> bool:
    return 0 <= index < len(builder.model.tensors)


def _placeholder(builder: Builder, index: int) -> Tensor:
    """Return a stand-in for a tensor with a problem, so that the rest is still
    examined."""
    flat = builder.model.tensors[index]
    shape = tuple(min(max(1, dim), 1 << 10) for dim in flat.shape[:6])
    try:
        return builder.typed(index, shape)
    except BuildError:
        return Tensor(builder.names[index], shape, DType.FLOAT32)


def _translate(builder: Builder, flat: FlatOperator, index: int) -> None:
    """Translate one operator; its problems are added to the builder's."""
    places = (*flat.outputs, *(i for i in flat.inputs if i != -1))
    silent = flat.code in SILENT
    if bool(flat.outputs) == silent or not all(_exists(builder, i) for i in places):
        where = f"{builder.source}: operator {index} ({flat.code})"
        what = f"refers to tensors {list(places)} of {len(builder.model.tensors)}"
        builder.problems.append(Problem(where, what, "the file is damaged"))
        return
    label = f"operator {index}" if silent else builder.names[flat.outputs[0]]
    call, before = Call(builder, flat, label), len(builder.nodes)
    builder.budget.take_nodes()
    try:
        _call(call)
    except TooMuch:
        raise
    except BuildError as error:
        builder.problems += [_placed(call, p) for p in error.problems]
        for output in flat.outputs:
            if output not in builder.known:
                builder.known[output] = builder.add(_placeholder(builder, output))
    for node in builder.nodes[before:]:  # of a subgraph's, what is in it said so
        for name in (node.name, *node.outputs):
            builder.origins.setdefault(name, call.origin)


def _call(call: Call) -> None:
    translate = OPERATORS.get(call.flat.code)
    if call.flat.code == "CUSTOM ethos-u":
        what = "is a network that vela has compiled for an Ethos-U; nothing is left"
        raise call.error(f"{what} to read", "give the .tflite file that vela was given")
    if translate is None:
        raise call.error("this operator is not supported", _SUPPORTED)
    if len(call.flat.outputs) != 1 and call.flat.code not in (*MANY, *SILENT):
        raise call.error(f"has {len(call.flat.outputs)} outputs, not 1")
    for output in call.flat.outputs:
        if output in call.builder.known or call.builder.is_constant(output):
            name = call.builder.names[output]
            raise call.error(f"writes '{name}', which has a value already")
    try:
        translate(call)
    except IndexError as error:  # of shapes and operands: no whole file has so few
        what = "lacks an axis or an operand that it needs"
        raise call.error(what, "the file is damaged") from error


def _placed(call: Call, problem: Problem) -> Problem:
    """Return the problem of a tensor, together with the operator that uses it."""
    if problem.where == call.builder.source:
        return Problem(call.where, problem.what, problem.hint)
    return problem


def _outputs(builder: Builder) -> tuple[str, ...]:
    """Return the model's outputs; a constant may be one."""
    made = []
    for index in builder.model.outputs:
        if not _exists(builder, index):
            what = f"lists output {index}, which is not a tensor"
            builder.problems.append(Problem(builder.source, what))
        elif index in builder.known:
            tensor = builder.known[index]
            if index in builder.inner and index not in builder.model.inputs:
                outside = builder.typed(index, tensor.shape, True)
                tensor = builder.shifted(tensor, outside)
            made.append(tensor.name)
        else:
            what = f"output '{builder.names[index]}' is never computed"
            builder.problems.append(Problem(builder.source, what))
    if len(set(made)) != len(made):
        builder.problems.append(Problem(builder.source, "lists an output twice"))
    return tuple(made)

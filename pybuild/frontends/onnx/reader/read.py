"""Reads bytes into a checked OnnxModel, through the package `onnx`, which is imported
only when needed. All errors of foreign files are raised here, as BuildError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem
from pybuild.frontends.onnx.reader.asked import take_nodes
from pybuild.frontends.onnx.reader.beside import Beside
from pybuild.frontends.onnx.reader.bodies import has_foreign, written_out
from pybuild.frontends.onnx.reader.fixed import (
    dtype_name,
    fix_dims,
    fix_values,
    is_constant_input,
)
from pybuild.frontends.onnx.reader.halves import widen
from pybuild.frontends.onnx.reader.infer import boundary, first_line, infer
from pybuild.frontends.onnx.reader.labels import numbered
from pybuild.frontends.onnx.reader.lift import array_of, lifted
from pybuild.frontends.onnx.reader.op import OnnxModel, Op
from pybuild.frontends.onnx.reader.order import sort_nodes
from pybuild.text.short_names import brief

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, TensorProto

OLDEST_OPSET = 7
# older files are converted to this one; newer ones are read as they are
COMMON_OPSET = 13
# later ones may change what an operator computes
NEWEST_OPSET = 28

_PLAIN_TYPES = "export with float, integer or bool inputs and outputs"
# what an input or output is that is not a tensor, and what to do
_FORMS = {
    "optional_type": ("an optional value", "export the model with it, or without"),
    "sequence_type": ("a list of tensors", "give each of them an {role} of its own"),
}
TYPES = frozenset(kind.value for kind in DType)


def read(
    source: str,
    data: bytes,
    input_dims: Mapping[str, int],
    known: Collection[tuple[str, str]],
    input_values: Mapping[str, Array] | None = None,
    beside: Beside | None = None,
) -> OnnxModel:
    """Return the model in `data`, with its problems as far as it can be read.

    input_values  values of inputs that become constants
    beside  gives access to further files with the model's tensors
    known   the (domain, operator) pairs that can be imported
    Errors  BuildError with every finding if the file cannot be read at all
    """
    model = _parse(source, data)
    _text_only(source, model)
    sort_nodes(model.graph)
    _raise(_external(source, model, beside or Beside()))
    model, constants = lifted(model)
    model = _checked(source, model, known)
    numbered(model)
    values = fix_values(model, input_values or {}, constants)
    dims, opened = fix_dims(source, model, input_dims)
    types = _boundary_types(source, model)
    problems = values + dims + types
    whole = written_out(model, known)
    told, misfit = infer(source, model)
    misfit = () if types else misfit
    constants, told = widen(whole, constants, told)
    plain = _plain(source, whole, constants)
    return replace(plain, problems=problems, opened=opened, misfit=misfit, told=told)


def _raise(problems: list[Problem]) -> None:
    if problems:
        raise BuildError.of(problems)


def _parse(source: str, data: bytes) -> ModelProto:
    import onnx

    try:
        model: ModelProto = onnx.load_model_from_string(data)
    except Exception as error:  # whatever protobuf throws
        hint = "give a .onnx file, whole and unchanged"
        raise BuildError(source, "is not a valid ONNX file", hint) from error
    if not model.HasField("graph") or not model.opset_import:
        hint = "give a .onnx file, whole and unchanged"
        raise BuildError(source, "is not a valid ONNX file: it has no graph", hint)
    newest = max(one.version for one in model.opset_import)
    if newest >= 1 << 31:
        hint = "give a .onnx file, whole and unchanged"
        raise BuildError(source, f"there is no operator set {newest}", hint)
    version = _opset(model, "")
    if version > NEWEST_OPSET:
        what = f"has opset {version}, the newest supported one is {NEWEST_OPSET}"
        hint = f"export it with opset_version={NEWEST_OPSET}, or a newer pybuild"
        raise BuildError(source, what, hint)
    if not model.graph.node:
        raise BuildError(source, "the model has no operators", "there is nothing to do")
    if not model.graph.output:
        raise BuildError(source, "the model has no outputs", "there is nothing to do")
    return model


def _text_only(source: str, model: ModelProto) -> None:
    """Reject names that are not UTF-8, which protobuf returns as bytes.

    Errors  BuildError
    """
    graph = model.graph
    values = (*graph.input, *graph.output, *graph.initializer, *graph.value_info)
    names = [value.name for value in values]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        names += [attribute.name for attribute in node.attribute]
    if not all(isinstance(name, str) for name in names):
        hint = "give a .onnx file, whole and unchanged"
        raise BuildError(source, "is not a valid ONNX file: a name is not text", hint)


def _tensors(message: Any) -> Iterator[TensorProto]:
    """Yield every tensor stored in a message: also in subgraphs, in functions, and in
    their default attributes."""
    if message.DESCRIPTOR.name == "TensorProto":
        yield message
        return
    for kind, value in message.ListFields():
        if kind.message_type is not None:
            for inner in value if kind.is_repeated else [value]:
                yield from _tensors(inner)


def _external(source: str, model: ModelProto, beside: Beside) -> list[Problem]:
    found = beside.fill(source, _tensors(model))
    if model.graph.sparse_initializer:
        found.append(Problem(source, "sparse weights are not supported"))
    return found


def _checked(
    source: str, model: ModelProto, known: Collection[tuple[str, str]]
) -> ModelProto:
    """Return the model checked, with functions inlined, in a common opset. A model with
    an operator unknown to us and to ONNX is returned as it is, so that the rest can be
    examined."""
    from onnx import checker, inliner

    if not _plain_functions(model):
        raise BuildError(source, "its functions call each other in a circle")
    take_nodes(source, model)
    try:
        checker.check_model(model)
        if model.functions:
            model = inliner.inline_local_functions(model)
    except Exception as error:  # whatever the C++ of onnx throws
        if not model.functions and has_foreign(model, known):
            return model
        what = f"is not a valid ONNX model: {first_line(error)}"
        raise BuildError(source, what, "check it with onnx.checker") from error
    return _converted(source, model)


def _plain_functions(model: ModelProto) -> bool:
    """Return True if no function calls itself, directly or indirectly."""
    functions = {(f.domain, f.name): f for f in model.functions}
    calls = {
        key: {(n.domain, n.op_type) for n in f.node} & functions.keys()
        for key, f in functions.items()
    }
    while True:
        leaves = {key for key, called in calls.items() if not called}
        if not leaves:
            return not calls
        calls = {k: called - leaves for k, called in calls.items() if k not in leaves}


def _converted(source: str, model: ModelProto) -> ModelProto:
    from onnx import version_converter

    version = _opset(model, "")
    if version >= COMMON_OPSET or not version:
        return model
    if version < OLDEST_OPSET:
        _slopes_of_channels(model)
    try:
        made = version_converter.convert_version(model, COMMON_OPSET)
        _as_it_was(made.graph, version)
        # the converter may drop the batch of an old Scan
        return made if _dims(made) == _dims(model) else model
    except Exception as error:  # whatever the C++ of onnx throws
        if version >= OLDEST_OPSET:
            return model
        what = f"opset {version} cannot be converted: {first_line(error)}"
        hint = f"export with opset {COMMON_OPSET} or later"
        raise BuildError(source, what, hint) from error


def _as_it_was(graph: GraphProto, version: int) -> None:
    """Add attributes that keep the behaviour of nodes of an older opset, as the version
    converter forgets them.

    Source  the operators' history; where it says nothing, ONNX Runtime
    """
    from onnx import helper

    resized = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "simple"}
    for node in graph.node:
        given: dict[str, Any] = {}
        if node.op_type == "Resize" and version < 11:
            given = resized
        if node.op_type == "Hardmax":
            given = {"flattened": 1}
        have = {attribute.name for attribute in node.attribute}
        for name in given.keys() - have:
            node.attribute.append(helper.make_attribute(name, given[name]))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _as_it_was(attribute.g, version)


def _slopes_of_channels(model: ModelProto) -> None:
    """Give per-channel slopes of old PRelu nodes the shape that newer opsets need,
    which the converter forgets."""
    from onnx import shape_inference

    graph = shape_inference.infer_shapes(model).graph
    ranks = {
        v.name: len(v.type.tensor_type.shape.dim)
        for v in (*graph.input, *graph.value_info, *graph.output)
    }
    slopes = {
        node.input[1]: ranks.get(node.input[0], 0)
        for node in model.graph.node
        if node.op_type == "PRelu" and len(node.input) == 2
    }
    for tensor in model.graph.initializer:
        if tensor.name in slopes and len(tensor.dims) == 1:
            tensor.dims.extend([1] * (slopes[tensor.name] - 2))
    for value in model.graph.input:
        shape = value.type.tensor_type.shape
        if value.name in slopes and len(shape.dim) == 1:
            for _ in range(slopes[value.name] - 2):
                shape.dim.add().dim_value = 1


def _dims(model: ModelProto) -> list[int]:
    return [len(v.type.tensor_type.shape.dim) for v in model.graph.input]


def _opset(model: ModelProto, domain: str) -> int:
    names = ("", "ai.onnx") if not domain else (domain,)
    return max((o.version for o in model.opset_import if o.domain in names), default=0)


def _where(source: str, node: Any) -> str:
    name = brief(node.name or next(iter(node.output), ""))
    return f"{source}: node '{name}' ({node.op_type})"


def _boundary_types(source: str, model: ModelProto) -> list[Problem]:
    problems = []
    constants = is_constant_input(model)
    for role, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            name = dtype_name(value)
            fine = name in TYPES or value.name in constants
            if not fine:
                form = str(value.type.WhichOneof("value") or "")
                kind = {"": "not a tensor", "object": "text"}.get(name, name)
                kind, hint = _FORMS.get(form, (kind, _PLAIN_TYPES))
                what = f"{role} '{value.name}' is {kind}, which is not supported"
                problems.append(Problem(source, what, hint.format(role=role)))
    return problems


def _plain(source: str, model: ModelProto, large: Mapping[str, Array]) -> OnnxModel:
    constants = dict(large)
    problems = []
    for tensor in model.graph.initializer:
        try:
            constants[tensor.name] = array_of(tensor)
        except (ValueError, TypeError, KeyError, OverflowError, MemoryError):
            what = f"the bytes of tensor '{tensor.name}' do not fit its shape"
            problems.append(Problem(source, what))
    ops = []
    for node in model.graph.node:
        try:
            opset = _opset(model, "" if node.domain == "ai.onnx" else node.domain)
            ops.append(node_of(source, node, opset))
        except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
            what = f"its attributes are not valid: {first_line(error)}"
            problems.append(Problem(_where(source, node), what))
    _raise(problems)
    inputs = tuple(boundary(v) for v in model.graph.input if v.name not in constants)
    outputs = tuple(boundary(v) for v in model.graph.output)
    return OnnxModel(source, model.graph.name, tuple(ops), inputs, outputs, constants)


def node_of(source: str, node: Any, opset: int) -> Op:
    """Return a node of any graph of the file as an Op."""
    return Op(
        kind=node.op_type,
        domain="" if node.domain == "ai.onnx" else node.domain,
        name=node.name or next(iter(node.output), ""),
        where=_where(source, node),
        inputs=tuple(node.input),
        outputs=tuple(node.output),
        attrs={a.name: _attribute(a) for a in node.attribute},
        opset=opset,
    )


def _attribute(attribute: AttributeProto) -> Any:
    from onnx import AttributeProto as Kinds
    from onnx import helper

    value = helper.get_attribute_value(attribute)
    match attribute.type:
        case Kinds.STRING:
            return value.decode("utf-8", "replace")
        case Kinds.STRINGS:
            return tuple(v.decode("utf-8", "replace") for v in value)
        case Kinds.TENSOR:
            return array_of(value)
        case Kinds.FLOATS | Kinds.INTS:
            return tuple(value)
    return value

"""Bytes to a checked OnnxModel, through the package `onnx`, imported when needed.

Everything that can go wrong in a foreign file goes wrong here, as BuildError.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.frontends.onnx.op import Boundary, OnnxModel, Op

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, ValueInfoProto

OLDEST_OPSET = 7
# older files are converted to this one; newer ones are read as they are
COMMON_OPSET = 13

_HINTS = {
    "ConvInteger": "quantise statically: int8 activations with fixed scales",
    "MatMulInteger": "quantise statically: int8 activations with fixed scales",
    "DynamicQuantizeLinear": "quantise statically: activations with fixed scales",
    "If": "export with constant conditions, or simplify with onnxsim",
    "Loop": "unroll it at export, or simplify with onnxsim",
    "Scan": "unroll it at export, or simplify with onnxsim",
}
_OTHERWISE = "simplify with onnxsim, or export without it; `crt inspect` lists all"


def read(
    source: str,
    data: bytes,
    input_dims: Mapping[str, int],
    known: Collection[tuple[str, str]],
) -> OnnxModel:
    """The model in `data`.

    known   (domain, operator) of all that can be imported
    Errors  BuildError with every finding
    """
    model = _parse(source, data)
    _text_only(source, model)
    _raise(_external(source, model))
    model = _checked(source, model, known)
    _raise(
        _fix_dims(source, model, input_dims)
        + _unknown(source, model, known)
        + _boundary_types(source, model)
    )
    _infer(source, model)
    return _plain(source, model)


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
    if not model.graph.node:
        raise BuildError(source, "the model has no operators", "there is nothing to do")
    if not model.graph.output:
        raise BuildError(source, "the model has no outputs", "there is nothing to do")
    return model


def _text_only(source: str, model: ModelProto) -> None:
    """A name that is not UTF-8 comes out of protobuf as bytes.

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
        raise BuildError(source, "is not a valid ONNX file: a name is no text", hint)


def _tensors(graph: GraphProto, depth: int = 0) -> Iterator[TensorProto]:
    """Every tensor stored anywhere in a graph."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            if depth < 20 and attribute.HasField("g"):
                yield from _tensors(attribute.g, depth + 1)


def _external(source: str, model: ModelProto) -> list[Problem]:
    names = [
        t.name for t in _tensors(model.graph) if t.data_location or t.external_data
    ]
    found = []
    if names:
        what = f"{len(names)} tensors are in other files ('{names[0]}', ...)"
        hint = "save with onnx.save(model, path, save_as_external_data=False)"
        found.append(Problem(source, what, hint))
    if model.graph.sparse_initializer:
        found.append(Problem(source, "sparse weights are not supported"))
    return found


def _checked(
    source: str, model: ModelProto, known: Collection[tuple[str, str]]
) -> ModelProto:
    """The same model, valid, without functions, in an opset that we know."""
    from onnx import checker, inliner

    if not _plain_functions(model):
        raise BuildError(source, "its functions call each other in a circle")
    try:
        checker.check_model(model)
        if model.functions:
            model = inliner.inline_local_functions(model)
    except Exception as error:  # whatever the C++ of onnx throws
        unknown = [] if model.functions else _unknown(source, model, known)
        if unknown:
            raise BuildError.of(unknown) from error
        what = f"is not a valid ONNX model: {_first_line(error)}"
        raise BuildError(source, what, "check it with onnx.checker") from error
    return _converted(source, model)


def _plain_functions(model: ModelProto) -> bool:
    """No function calls itself, directly or not."""
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
    try:
        return version_converter.convert_version(model, COMMON_OPSET)
    except Exception as error:  # whatever the C++ of onnx throws
        if version >= OLDEST_OPSET:
            return model
        what = f"opset {version} cannot be converted: {_first_line(error)}"
        hint = f"export with opset {COMMON_OPSET} or later"
        raise BuildError(source, what, hint) from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def _opset(model: ModelProto, domain: str) -> int:
    names = ("", "ai.onnx") if not domain else (domain,)
    return max((o.version for o in model.opset_import if o.domain in names), default=0)


def _infer(source: str, model: ModelProto) -> None:
    """Proves that shapes and types fit; what the file claims between is ignored."""
    from onnx import shape_inference

    del model.graph.value_info[:]
    try:
        shape_inference.infer_shapes(
            model, check_type=True, strict_mode=True, data_prop=True
        )
    except Exception as error:  # whatever the C++ of onnx throws
        hint = "check it with onnx.shape_inference"
        where, what = _blamed(source, str(error))
        raise BuildError(where, what, hint) from error


def _blamed(source: str, text: str) -> tuple[str, str]:
    """The node that shape inference names, and the last thing it says of it."""
    found = re.search(r"op_type:\s*(\w+), node name: ([^)]*)\)", text)
    lines = text.strip().splitlines() or ["no reason given"]
    line = next((part for part in lines if "[" in part), lines[0])
    reason = re.sub(r".*\[\w*Error\] |^Inference error\(s\): ", "", line).rstrip(". ")
    where = f"{source}: node '{found[2]}' ({found[1]})" if found else source
    return where, f"shapes or types do not fit: {reason}"


def _is_constant_input(model: ModelProto) -> set[str]:
    return {t.name for t in model.graph.initializer}


def _fix_dims(
    source: str, model: ModelProto, input_dims: Mapping[str, int]
) -> list[Problem]:
    """Puts the given numbers in; names what is left open.

    A dimension is given by its own name, or as INPUT.AXIS, or by the input's name
    where only one of its dimensions is open.
    """
    problems, used = [], set()
    constants = _is_constant_input(model)
    for value in model.graph.input:
        if value.name in constants:
            continue
        dims = value.type.tensor_type.shape.dim
        open_axes = [i for i, dim in enumerate(dims) if dim.dim_value < 1]
        for axis in open_axes:
            dim = dims[axis]
            keys = [dim.dim_param, f"{value.name}.{axis}"]
            keys += [value.name] if len(open_axes) == 1 else []
            key = next((k for k in keys if k and k in input_dims), None)
            if key is not None:
                used.add(key)
                _set_everywhere(model, dim.dim_param, input_dims[key])
                dim.dim_value = input_dims[key]
                continue
            if dim.HasField("dim_value"):
                what = f"dimension {axis} of input '{value.name}' is {dim.dim_value}"
                problems.append(Problem(source, what, "export it with at least 1"))
                continue
            name = dim.dim_param or f"{value.name}.{axis}"
            what = f"input '{value.name}' has a dynamic dimension '{name}'"
            problems.append(Problem(source, what, f"--input-dim {name}=1"))
    for key in sorted(set(input_dims) - used):
        what = f"no dynamic dimension is named '{key}'"
        problems.append(Problem("--input-dim", what))
    return problems


def _set_everywhere(model: ModelProto, name: str, value: int) -> None:
    if not name:
        return
    for tensor in (*model.graph.input, *model.graph.output):
        for dim in tensor.type.tensor_type.shape.dim:
            if dim.dim_param == name:
                dim.dim_value = value


def _unknown(
    source: str, model: ModelProto, known: Collection[tuple[str, str]]
) -> list[Problem]:
    problems = []
    for node in model.graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) not in known:
            kind = f"{domain}.{node.op_type}" if domain else node.op_type
            what = f"the operator {kind} is not supported"
            hint = _HINTS.get(node.op_type, _OTHERWISE)
            problems.append(Problem(_where(source, node), what, hint))
    return problems


def _where(source: str, node: Any) -> str:
    name = node.name or next(iter(node.output), "")
    return f"{source}: node '{name}' ({node.op_type})"


def _boundary_types(source: str, model: ModelProto) -> list[Problem]:
    problems = []
    constants = _is_constant_input(model)
    for role, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            name = _dtype_name(value)
            fine = name in ("float32", "int8", "uint8") or value.name in constants
            if not fine:
                what = f"{role} '{value.name}' is {name or 'not a tensor'}, which is "
                hint = "export with float32, int8 or uint8 inputs and outputs"
                problems.append(Problem(source, what + "not supported", hint))
    return problems


def _dtype_name(value: ValueInfoProto) -> str:
    from onnx import helper

    kind = value.type.tensor_type.elem_type
    try:
        return str(np.dtype(helper.tensor_dtype_to_np_dtype(kind)).name)
    except (KeyError, TypeError, ValueError):
        return ""


def _plain(source: str, model: ModelProto) -> OnnxModel:
    constants: dict[str, Array] = {}
    problems = []
    for tensor in model.graph.initializer:
        try:
            constants[tensor.name] = _array(tensor)
        except (ValueError, TypeError, KeyError, OverflowError, MemoryError):
            what = f"the bytes of tensor '{tensor.name}' do not fit its shape"
            problems.append(Problem(source, what))
    ops = []
    for node in model.graph.node:
        try:
            ops.append(_op(source, model, node))
        except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
            what = f"its attributes are not valid: {_first_line(error)}"
            problems.append(Problem(_where(source, node), what))
    _raise(problems)
    inputs = tuple(_boundary(v) for v in model.graph.input if v.name not in constants)
    outputs = tuple(_boundary(v) for v in model.graph.output)
    return OnnxModel(source, model.graph.name, tuple(ops), inputs, outputs, constants)


def _boundary(value: ValueInfoProto) -> Boundary:
    dims = value.type.tensor_type.shape.dim
    return Boundary(value.name, _dtype_name(value), tuple(d.dim_value for d in dims))


def _array(tensor: TensorProto) -> Array:
    from onnx import numpy_helper

    count = 1
    for dim in tensor.dims:
        count *= dim
    if count < 0 or count > 8 * tensor.ByteSize():
        raise ValueError("more elements than bytes")
    array: Array = numpy_helper.to_array(tensor)
    return array


def _op(source: str, model: ModelProto, node: Any) -> Op:
    return Op(
        kind=node.op_type,
        domain="" if node.domain == "ai.onnx" else node.domain,
        name=node.name or next(iter(node.output), ""),
        where=_where(source, node),
        inputs=tuple(node.input),
        outputs=tuple(node.output),
        attrs={a.name: _attribute(a) for a in node.attribute},
        opset=_opset(model, "" if node.domain == "ai.onnx" else node.domain),
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
            return _array(value)
        case Kinds.FLOATS | Kinds.INTS:
            return tuple(value)
    return value

"""Inlines operators that ONNX itself defines by others, through their function bodies.
Does not know which operators are supported: the caller passes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

Known = Collection[tuple[str, str]]
MOST_ROUNDS = 12
# what a layer norm's body is made of, as ONNX has it
_VARIANCE = ("Square", "MeanOfSquare", "SquareOfMean", "Var")


def written_out(model: ModelProto, known: Known) -> ModelProto:
    """Return the model with operators that are not `known` replaced by their bodies, as
    far as they have any."""
    from onnx import ModelProto

    for step in range(MOST_ROUNDS):
        unknown = [n for n in model.graph.node if _key(n) not in known]
        if not any(_has_body(model, node) for node in unknown):
            return model
        types = _types(model)
        copy = ModelProto()
        copy.CopyFrom(model)
        del copy.graph.node[:]
        for number, node in enumerate(model.graph.node):
            body = None if _key(node) in known else _body(model, node, types)
            if body is None:
                copy.graph.node.append(node)
            else:
                usual = _defaults(model, node)
                copy.graph.node.extend(_spliced(node, body, f"{step}.{number}", usual))
        if len(copy.graph.node) == len(model.graph.node):
            return model
        model = copy
    return model


def _key(node: NodeProto) -> tuple[str, str]:
    return ("" if node.domain == "ai.onnx" else node.domain, node.op_type)


def _version(model: ModelProto, domain: str) -> int:
    names = ("", "ai.onnx") if not domain else (domain,)
    return max((o.version for o in model.opset_import if o.domain in names), default=1)


def _schema(model: ModelProto, node: NodeProto) -> Any:
    from onnx import defs

    domain, kind = _key(node)
    try:
        return defs.get_schema(kind, _version(model, domain), domain)
    except defs.SchemaError:
        return None


def has_foreign(model: ModelProto, known: Known) -> bool:
    """True if an operator is neither known to us nor defined by ONNX."""
    return any(
        _key(node) not in known and _schema(model, node) is None
        for node in model.graph.node
    )


def _defaults(model: ModelProto, node: NodeProto) -> dict[str, Any]:
    """Return the default values of the operator's attributes."""
    given = _schema(model, node).attributes
    return {n: a.default_value for n, a in given.items() if a.default_value.name}


def _has_body(model: ModelProto, node: NodeProto) -> bool:
    schema = _schema(model, node)
    return schema is not None and bool(
        schema.has_function or schema.has_context_dependent_function
    )


def _types(model: ModelProto) -> Mapping[str, bytes]:
    """Return the serialised type of every tensor that ONNX can infer."""
    from onnx import helper, shape_inference

    try:
        told = shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # whatever the C++ of onnx throws; then less is known
        told = model
    graph = told.graph
    found = {
        value.name: value.type.SerializeToString()
        for value in (*graph.value_info, *graph.output, *graph.input)
    }
    for tensor in graph.initializer:
        kind = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        found[tensor.name] = kind.SerializeToString()
    return found


def _body(
    model: ModelProto, node: NodeProto, types: Mapping[str, bytes]
) -> FunctionProto | None:
    from onnx import FunctionProto

    schema = _schema(model, node)
    if schema is None:
        return None
    version = _version(model, _key(node)[0])
    data = b""
    try:
        if schema.has_context_dependent_function:
            versions = schema.context_dependent_function_opset_versions
            best = max((v for v in versions if v <= version), default=versions[0])
            given = [types.get(name, b"") for name in node.input]
            text = node.SerializeToString()
            data = schema.get_context_dependent_function_with_opset_version(
                best, text, given
            )
        elif schema.has_function:
            versions = schema.function_opset_versions
            best = max((v for v in versions if v <= version), default=versions[0])
            data = schema.get_function_with_opset_version(best)
    except Exception:  # whatever the C++ of onnx throws: no body for these types
        return None
    if not data:
        return None
    body = FunctionProto()
    body.ParseFromString(data)
    return _centred(body) if body.node else None


def _centred(body: FunctionProto) -> FunctionProto:
    """Rewrite a layer norm's variance as mean((x - mean)^2) instead of mean(x^2) -
    mean^2, which loses most bits of float32 if the mean is large."""
    made = {node.output[0]: node for node in body.node if node.output}
    if not {"Deviation", *_VARIANCE} <= made.keys():
        return body
    square, mean = made["Square"], made["MeanOfSquare"]
    square.input[:] = ["Deviation", "Deviation"]
    mean.output[:] = ["Var"]
    nodes = []
    for node in body.node:
        if node is square:
            nodes.append(made["Deviation"])
        if (
            node.output[0] not in ("SquareOfMean", "Deviation")
            and node is not made["Var"]
        ):
            nodes.append(node)
    kept = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del body.node[:]
    body.node.extend(kept)
    return body


def _spliced(
    node: NodeProto, body: FunctionProto, mark: str, usual: Mapping[str, Any]
) -> Iterator[NodeProto]:
    """Yield the body's nodes, connected to the node's own inputs and outputs."""
    names = {"": ""}
    for role, own in ((body.input, node.input), (body.output, node.output)):
        for index, name in enumerate(role):
            given = own[index] if index < len(own) else ""
            if given or role is body.input:
                names[name] = given
    attrs = {**usual, **{a.name: a for a in body.attribute_proto}}
    attrs |= {a.name: a for a in node.attribute}
    prefix = f"{node.name or next(filter(None, node.output), node.op_type)}.{mark}."
    for inner in body.node:
        yield _renamed(inner, names, prefix, attrs)


def _renamed(
    inner: NodeProto, names: dict[str, str], prefix: str, attrs: Mapping[str, Any]
) -> NodeProto:
    """Return a copy of a body's node; tensors that it makes get unique names, also in
    its subgraphs."""
    from onnx import NodeProto

    made = NodeProto()
    made.CopyFrom(inner)
    del made.input[:], made.output[:], made.attribute[:]
    made.input.extend(names.get(n, prefix + n) for n in inner.input)
    for name in inner.output:
        names.setdefault(name, prefix + name)
    made.output.extend(names[n] for n in inner.output)
    made.name = f"{prefix}{inner.name or inner.op_type}"
    for attribute in inner.attribute:
        if attribute.ref_attr_name:
            found = attrs.get(attribute.ref_attr_name)
            if found is None:
                continue
            made.attribute.add().CopyFrom(found)
            made.attribute[-1].name = attribute.name
            continue
        made.attribute.add().CopyFrom(attribute)
        if attribute.HasField("g"):
            _rename_graph(made.attribute[-1].g, dict(names), prefix, attrs)
    return made


def _rename_graph(
    graph: Any, names: dict[str, str], prefix: str, attrs: Mapping[str, Any]
) -> None:
    """Rename the tensors in a subgraph of a body; tensors defined inside get the
    prefix."""
    for value in (*graph.input, *graph.initializer):
        names[value.name] = prefix + value.name
        value.name = prefix + value.name
    nodes = [_renamed(n, names, prefix, attrs) for n in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for value in graph.output:
        value.name = names.get(value.name, prefix + value.name)

"""The ONNX frontend: one table of operators, and the way from a file to a Graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem, ValuesNeeded
from pybuild.frontends.onnx.classical.table import CLASSICAL
from pybuild.frontends.onnx.draft import empty, unsigned
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.fold import ONLY_FOLDED, fold
from pybuild.frontends.onnx.foreign import FOREIGN, OF_TORCH, hint_of
from pybuild.frontends.onnx.integers import general
from pybuild.frontends.onnx.operators import (
    activations,
    bounded,
    control,
    dense,
    detect,
    elements,
    eltwise,
    index,
    moves,
    products,
    quant,
    ragged,
    recurrent,
    resize,
    sampling,
    sequences,
    shape,
    signal,
    spatial,
    training,
    windows,
)
from pybuild.frontends.onnx.operators import reductions as joins
from pybuild.frontends.onnx.operators.elements import either, either_cast, either_scaled
from pybuild.frontends.onnx.reader.beside import Beside
from pybuild.frontends.onnx.reader.lift import array_of
from pybuild.frontends.onnx.reader.op import MICROSOFT, TORCH, OnnxModel, Op
from pybuild.frontends.onnx.reader.read import TYPES, node_of, read
from pybuild.ir.graph import Bound, Graph, Quant, Tensor, rest_of
from pybuild.params.budget import Budget, TooMuch

Handler = Callable[[Draft, Op], None]

_LAYERS: dict[str, Handler] = {
    "Add": either(eltwise.same, elements.plain("add")),
    "AveragePool": either(spatial.pool, windows.average_pool),
    "BatchNormalization": either(eltwise.batch_norm, joins.batch_norm),
    "Cast": either_cast(eltwise.cast, elements.cast),
    "Clip": either(eltwise.clip, elements.clip),
    "Concat": either(shape.concat, moves.concat),
    "Conv": either(spatial.conv, windows.conv),
    "ConvTranspose": either(spatial.conv_transpose, windows.conv_transpose),
    "DequantizeLinear": general.in_bytes(
        either_scaled(quant.dequantize_linear, general.dequantize)
    ),
    "Div": either(eltwise.div, elements.plain("divide")),
    "Dropout": either(shape.identity, elements.identity),
    "Flatten": shape.flatten,
    "Gemm": either(dense.gemm, products.gemm),
    "GlobalAveragePool": either(spatial.global_average, windows.global_pool),
    "GlobalMaxPool": either(spatial.global_max, windows.global_pool),
    "HardSigmoid": either(eltwise.hard, activations.hard),
    "HardSwish": either(eltwise.hard, activations.hard),
    "Identity": shape.identity,
    "LeakyRelu": either(eltwise.leaky_relu, activations.leaky_relu),
    "MatMul": products.MATMUL,
    "MaxPool": either(spatial.pool, windows.max_pool),
    "Mul": either(eltwise.same, elements.plain("multiply")),
    "Pad": either(shape.pad, moves.pad),
    "QLinearConv": either(quant.qlinear_conv, general.qlinear_conv),
    "QLinearMatMul": either(quant.qlinear_matmul, general.qlinear_matmul),
    "QuantizeLinear": either(quant.quantize_linear, general.quantize),
    "ReduceMean": either(eltwise.reduce_mean, joins.reduce),
    "Relu": either(eltwise.relu, elements.relu),
    "Reshape": shape.reshape,
    "Sigmoid": either(eltwise.same, activations.sigmoid),
    "Slice": either(shape.slice_, moves.slice_),
    "Softmax": either(eltwise.softmax, activations.softmax_like),
    "Split": either(shape.split, moves.split),
    "Squeeze": shape.squeeze,
    "Sub": either(eltwise.same, elements.plain("subtract")),
    "Tanh": either(eltwise.same, elements.plain("tanh")),
    "Transpose": shape.transpose,
    "Unsqueeze": shape.unsqueeze,
}


def _import_inside(draft: Draft, op: Op, nodes: Sequence[Any]) -> None:
    """Import a subgraph inside `op`; each of its outputs gets a unique name."""
    names = draft.scope
    for node in nodes:
        inner = node_of(draft.source, node, op.opset)
        inputs = tuple(names.get(name, name) for name in inner.inputs)
        outputs = []
        for name in inner.outputs:
            if name:
                names[name] = draft.fresh(f"{name}.{draft.turns}")
                draft.reserved.add(names[name])
            outputs.append(names.get(name, ""))
        draft.makers |= dict.fromkeys(outputs, inputs)
        found = len(draft.problems)
        _import(draft, replace(inner, inputs=inputs, outputs=tuple(outputs)))
        if len(draft.problems) > found:
            raise BuildError.of(draft.problems[found:])


def _imported(flow: Flow, graph: Any, given: Sequence[str]) -> list[str]:
    """Import the nodes of a subgraph, with these tensors as its inputs."""
    draft, op = flow.draft, flow.op
    draft.turns += 1
    draft.budget.take_nodes(1 + len(graph.node))
    outer = draft.scope
    names = outer | {v.name: n for v, n in zip(graph.input, given, strict=True)}
    for tensor in graph.initializer:
        names[tensor.name] = flow.const(array_of(tensor))
    draft.scope = names
    try:
        _import_inside(draft, op, graph.node)
    finally:
        draft.scope = outer
    results = [names.get(value.name, value.name) for value in graph.output]
    for name in results:
        if name in draft.ragged:
            what = f"a graph inside gives '{name}', which holds less than it has room"
            raise op.invalid(f"{what} for", "do that outside")
    return results


_STANDARD: dict[str, Handler] = {
    **_LAYERS, **activations.ACTIVATIONS, **elements.ELEMENTS, **joins.JOINS,
    **index.INDEX, **moves.MOVES,
    **products.PRODUCTS, **windows.WINDOWS, **general.INTEGER, **resize.RESIZE,
    **sampling.SAMPLING, **recurrent.RECURRENT, **sequences.SEQUENCES,
    **signal.SIGNAL, **bounded.BOUNDED, **detect.DETECT,
    **control.handlers(_imported),
}  # fmt: skip
OPERATORS: dict[tuple[str, str], Handler] = {
    **{("", kind): handler for kind, handler in _STANDARD.items()},
    **CLASSICAL,
    ("ai.onnx.ml", "ArrayFeatureExtractor"): index.array_feature,
    ("ai.onnx.ml", "Binarizer"): elements.binarize,
    **{
        ("ai.onnx.preview.training", kind): handler
        for kind, handler in training.TRAINING.items()
    },
    **{(MICROSOFT, kind): handler for kind, handler in FOREIGN.items()},
}

_OTHERWISE = "simplify with onnxsim, or export without it; `crt inspect` lists all"
_SHAPES = ("Shape", "Size")
# for dimensions left open, beside 1, when the rest of a model is examined
_OTHER_SIZE = 8

# what handlers raise on attributes and shapes that make no sense
_BAD = (
    ValueError, TypeError, KeyError, IndexError, ArithmeticError, AssertionError,
    MemoryError, RecursionError, StopIteration, AttributeError,
)  # fmt: skip


def load(
    path: str,
    data: bytes,
    input_dims: Mapping[str, int],
    input_values: Mapping[str, Array] | None = None,
    beside: Beside | None = None,
    bounds: Mapping[str, int] | None = None,
    roomy: bool = False,
) -> Graph:
    """Return the graph of an ONNX file.

    input_dims    values of dynamic dimensions, by name
    input_values  values of inputs that become constants, by name
    beside        gives access to further files with the model's tensors
    bounds        maximum sizes of data-dependent results, by name; roomy: use the
                  largest possible
    Errors        BuildError with every finding; ValuesNeeded if values of inputs could
                  help
    """
    values = input_values or {}
    room = None if roomy else dict(bounds or {})
    draft, model = _drafted(path, data, input_dims, values, beside, room)
    problems = draft.problems
    if model.opened:
        # with any size: what is wrong only with the one assumed is not said
        sizes = {**input_dims, **dict.fromkeys(model.opened, _OTHER_SIZE)}
        also, _ = _drafted(path, data, sizes, values, beside, room)
        places = {problem.where for problem in also.problems}
        problems = [problem for problem in problems if problem.where in places]
        problems = [*model.opened.values(), *problems]
    if problems:
        error = BuildError.of(problems)
        if draft.wanted:
            error = needed = ValuesNeeded.of(problems)
            needed.names = tuple(sorted(draft.wanted))
        error.rest = rest_of(replace(draft.view, nodes=tuple(draft.nodes)))
        raise error
    _finish_outputs(draft, model)
    bounded = _counts(draft, model)
    if draft.problems:
        raise BuildError.of(draft.problems)
    name = re.sub(r"\W", "_", PurePath(path).stem)
    return Graph(
        name=name,
        source=path,
        nodes=tuple(draft.nodes),
        tensors=_used(draft, model, bounded),
        inputs=tuple(i.name for i in model.inputs),
        outputs=(
            *(o.name for o in model.outputs),
            *(b.count for b in bounded.values()),
        ),
        constants=draft.constants,
        bounded=bounded,
        origins=draft.origins,
        fixed={name: model.constants[name] for name in values},
    )


def _drafted(
    path: str, data: bytes, dims: Mapping[str, int], values: Mapping[str, Array],
    beside: Beside | None, bounds: Mapping[str, int] | None,
) -> tuple[Draft, OnnxModel]:  # fmt: skip
    """Return a draft with all nodes that can be imported, and the problems of the
    others."""
    known = OPERATORS.keys() | {("", kind) for kind in ONLY_FOLDED}
    model = read(path, data, dims, known, values, beside)
    draft = Draft(path, _names(model))
    draft.problems += model.problems
    draft.told, draft.bounds = model.told, bounds
    draft.values.update(model.constants)
    given = sum(value.nbytes for value in model.constants.values())
    draft.budget = Budget(path, len(data) + given)
    draft.inputs = frozenset(value.name for value in model.inputs)
    draft.makers = {o: op.reads for op in model.ops for o in op.outputs}
    quant.declared_quants(draft, model.ops)
    for op in model.ops if _add_inputs(draft, model) else ():
        _import(draft, op)
    for name in sorted((bounds or {}).keys() - draft.boundless):
        hint = f"one of {', '.join(sorted(draft.boundless))}" if draft.boundless else ""
        what = f"no result '{name}' has a size that depends on data"
        draft.problems.append(Problem("--bound", what, hint))
    blamed = {problem.where for problem in draft.problems}
    draft.problems += [p for p in model.misfit if p.where not in blamed]
    return draft, model


def _names(model: OnnxModel) -> set[str]:
    boundary = (*model.inputs, *model.outputs)
    return {v.name for v in boundary} | {
        name for op in model.ops for name in (*op.inputs, *op.outputs)
    }


def _add_inputs(draft: Draft, model: OnnxModel) -> bool:
    """Add the input tensors, and a signed twin for each unsigned one that is quantised;
    return False if one is too large."""
    before = len(draft.problems)
    for value in model.inputs:
        if value.dtype not in TYPES:
            continue
        dtype = DType(value.dtype)
        found = draft.quants.get(value.name)
        tensor = Tensor(value.name, value.shape, dtype, found)
        if tensor.bytes > 1 << 31:
            what = f"input '{value.name}' has {tensor.bytes} bytes"
            draft.problems.append(Problem(draft.source, what))
        draft.tensors[value.name] = tensor
        if dtype is DType.UINT8:
            unsigned.emit_twin(draft, value.name, found or Quant((1.0,), (-128,)))
        elif dtype is DType.UINT16 and found is not None:
            unsigned.emit_twin(draft, value.name, found)
    return len(draft.problems) == before


def _import(draft: Draft, op: Op) -> None:
    """Import one node. Its problems are recorded, and its readers are still examined if
    possible."""
    op = replace(op, inputs=tuple(draft.inner.get(n, n) for n in op.inputs))
    handler = OPERATORS.get((op.domain, op.kind))
    if op.domain == TORCH:
        handler = OF_TORCH.get(op.kind)
    if handler is None and (op.domain or op.kind not in ONLY_FOLDED):
        kind = f"{op.domain}.{op.kind}" if op.domain else op.kind
        what = f"the operator {kind} is not supported"
        draft.problems.append(Problem(op.where, what, hint_of(op) or _OTHERWISE))
        draft.stand_in(op.outputs)
        return
    if any(name and not draft.has(name) for name in op.inputs):
        draft.stand_in(op.outputs)
        return
    before = len(draft.nodes)
    try:
        if refused := sequences.no_reader(draft, op):
            raise refused
        holds = ragged.passed_on(draft, op) if op.kind not in _SHAPES else None
        if op.kind in _SHAPES and op.input(0) in draft.ragged:
            ragged.shape_of(draft, op)
            return
        if fold(draft, op):
            return
        if handler is None:
            what = "can only be computed from constants"
            raise op.invalid(what, "give fixed shapes at export, or use onnxsim")
        with np.errstate(all="ignore"):
            if quant.travels(draft, op):
                quant.travel(draft, op, handler)
            else:
                handler(draft, op)
        if refused := empty.refused(draft, op):
            raise refused
        _note_unsigned(draft, op)
        if holds is not None:
            draft.ragged[op.output] = holds
    except TooMuch:
        raise
    except BuildError as error:
        draft.problems += [replace(p, where=op.where) for p in error.problems]
    except _BAD as error:
        what = f"its attributes or inputs are not valid ({type(error).__name__})"
        draft.problems.append(Problem(op.where, what))
    draft.note_origins(op, before)
    draft.stand_in(op.outputs)


def _note_unsigned(draft: Draft, op: Op) -> None:
    if op.kind in quant.KEEPING and op.input(0) in draft.unsigned:
        draft.unsigned |= set(op.outputs)


def _finish_outputs(draft: Draft, model: OnnxModel) -> None:
    """Check that every output exists; turn outputs that the file has as unsigned back
    into their type."""
    for value in model.outputs:
        if not draft.has(value.name):
            what = f"output '{value.name}' is never computed"
            draft.problems.append(Problem(draft.source, what))
            continue
        tensor = draft.tensor(value.name)
        if value.name in draft.constants or value.dtype not in ("uint8", "uint16"):
            continue
        if tensor.dtype is not unsigned.held(value.dtype):
            continue
        name = draft.fresh(f"{value.name}.{tensor.dtype.value}")
        draft.renamed(value.name, name)
        unsigned.emit_unsigned(draft, name, value.name)


def _counts(draft: Draft, model: OnnxModel) -> dict[str, Bound]:
    """Add an output with the element count for each output that may be partly
    filled."""
    found = {}
    for name in dict.fromkeys(o.name for o in model.outputs):
        if name in draft.ragged:
            made = draft.fresh(f"{name}_count")
            draft.emit("copy", made, [draft.ragged[name].count], made)
            found[name] = Bound(draft.ragged[name].axis, made)
    return found


def _used(
    draft: Draft, model: OnnxModel, bounded: Mapping[str, Bound]
) -> dict[str, Tensor]:
    """Return the tensors that nodes or the boundary use; drop unread constants."""
    names = {v.name for v in (*model.inputs, *model.outputs)}
    names |= {bound.count for bound in bounded.values()}
    for node in draft.nodes:
        names |= {n for n in (*node.inputs, *node.outputs) if n}
    for name in set(draft.constants) - names:
        del draft.constants[name]
    return {name: t for name, t in draft.tensors.items() if name in names}

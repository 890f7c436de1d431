"""QDQ to integers: float operators between dequantize and quantize become int8;
layers and movement int16, too.

Only pairs that the file means as integers (attribute `simulated`, from the ONNX
frontend); what is left stays float between its dequantize and quantize.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.ops.conv import conv_parameters
from pybuild.ops.fixed_point.centred import centred
from pybuild.ops.interpret import operator_of
from pybuild.passes.edit import Edit
from pybuild.records import dataclass

# commute with quantisation: the integers move, or the largest is chosen
MOVEMENT = ("reshape", "transpose", "slice", "max_pool2d", "pad", "concat", "copy")
# general operators that do: whose values they move, for `map` by its function
MOVED = {"gather": (0,), "reduce": (0,), "map": (0, 1)}
_MAPPED = {"copy": (0,), "where": (1, 2), "maximum": (0, 1), "minimum": (0, 1)}
# find places among values: the same ones among their integers
PLACES = ("arg_reduce", "top_k")
WEIGHTED = ("conv2d", "depthwise_conv2d", "dense")
COMPUTED = (*UNARY, *BINARY, "avg_pool2d", "mean", "softmax")
# of a float bias, in steps of what it is added to
_ROOM = 1 << 30
# of layers: the type of a bias, and what it may be
_BIAS = {DType.INT8: (DType.INT32, 2**31 - 1), DType.INT16: (DType.INT64, 2**62)}


@dataclass(frozen=True)
class Form:
    """The integer type and scale that represent the real numbers of a tensor."""

    quant: Quant
    dtype: DType


def form_of(tensor: Tensor) -> Form | None:
    """The form of integers that operators here compute with: of one scale."""
    quant = tensor.quant
    if tensor.dtype not in _BIAS or quant is None or len(quant.scale) != 1:
        return None
    return Form(quant, tensor.dtype)


@dataclass
class _Sweep:
    """State of the one pass over the nodes.

    integers  float tensor -> the tensor of integers that it is the dequantize of
    wanted    float tensor -> the integers that all its readers ask for
    floats    float tensors that were needed after all
    taken     outputs of quantize nodes that other nodes now make
    """

    graph: Graph
    edit: Edit
    users: Mapping[str, Sequence[Node]]
    integers: dict[str, str]
    wanted: dict[str, Form]
    floats: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)


def integer_arithmetic(graph: Graph) -> Graph:
    """The graph with every operator in integers that stands between integers.

    Errors  none: what does not fit stays in float32
    """
    users = graph.consumers()
    sweep = _Sweep(graph, Edit(graph), users, {}, _wanted(graph, users))
    for node in graph.nodes:
        if not _taken(sweep, node):
            _keep(sweep, node)
    for name in graph.outputs:
        _float(sweep, name)
    nodes = [_plain(node) for node in sweep.edit.nodes]
    return sweep.edit.done(nodes)


def _plain(node: Node) -> Node:
    return replace(
        node, attrs={k: v for k, v in node.attrs.items() if k != "simulated"}
    )


def _taken(sweep: _Sweep, node: Node) -> bool:
    simulated = bool(node.attrs.get("simulated"))
    match node.op:
        case "dequantize" if simulated:
            return _note(sweep, node)
        case "quantize" if simulated:
            return _quantize(sweep, node)
        case op if op in PLACES:
            return _find(sweep, node)
        case _ if moved_inputs(node):
            return _move(sweep, node)
        case op if op in WEIGHTED:
            return _layer(sweep, node)
        case op if op in COMPUTED:
            return _compute(sweep, node)
        case "matmul":
            return _compute(sweep, node.with_attrs(rounding="even"))
    return False


def moved_inputs(node: Node) -> tuple[int, ...]:
    """The inputs of which every value of the output is one; () if it computes."""
    if node.op in MOVEMENT:
        return tuple(range(len(node.inputs)))
    if node.op == "map":
        return _MAPPED.get(str(node.attrs["fn"]), ())
    if node.op == "reduce" and node.attrs["fn"] not in ("max", "min"):
        return ()
    return MOVED.get(node.op, ())


def _wanted(graph: Graph, users: Mapping[str, Sequence[Node]]) -> dict[str, Form]:
    """For each tensor that only quantize nodes read, also through data movement: the
    form that they make of it, if it is one.
    """
    found: dict[str, Form] = {}
    for node in reversed(graph.nodes):
        for name in node.outputs:
            asked = {_asked(graph, user, name, found) for user in users[name]}
            if len(asked) == 1 and name not in graph.outputs:
                form = asked.pop()
                if form is not None:
                    found[name] = form
    return found


def _asked(
    graph: Graph, user: Node, name: str, found: Mapping[str, Form]
) -> Form | None:
    if user.op == "quantize" and user.attrs.get("simulated"):
        return form_of(graph.tensor(user.output))
    if name in [user.inputs[i] for i in moved_inputs(user)]:
        return found.get(user.output)
    return None


def _keep(sweep: _Sweep, node: Node) -> None:
    for name in node.inputs:
        _float(sweep, name)
    sweep.edit.keep(node)


def _float(sweep: _Sweep, name: str) -> None:
    """The float tensor itself, dequantised once if it is only known as integers."""
    source = sweep.integers.get(name)
    if source is not None and name not in sweep.floats:
        sweep.floats.add(name)
        sweep.edit.nodes.append(Node("dequantize", name, (source,), (name,)))


def _note(sweep: _Sweep, node: Node) -> bool:
    sweep.integers[node.output] = sweep.edit.name(node.inputs[0])
    return True


def _whole(sweep: _Sweep, name: str) -> tuple[str, Form] | None:
    """The integers behind a float tensor."""
    source = sweep.integers.get(name)
    if source is None:
        return None
    form = form_of(sweep.edit.tensors[source])
    return None if form is None else (source, form)


def _quantize(sweep: _Sweep, node: Node) -> bool:
    """Replaces a quantize of integers: by nothing if they have that scale, else by a
    requantisation."""
    x, y = _whole(sweep, node.inputs[0]), form_of(sweep.edit.tensors[node.output])
    if x is None or y is None:
        return False
    name, form = x
    if name == node.output:
        return True
    if form == y and node.output not in sweep.graph.outputs:
        sweep.edit.alias(node.output, name)
        return True
    if form != y and not _requantises(form, y):
        return False
    op = "copy" if form == y else "quantize"
    sweep.edit.nodes.append(Node(op, node.name, (name,), node.outputs))
    return True


def _requantises(*forms: Form) -> bool:
    """True if an operator makes each of these of another one."""
    return all(form.dtype is DType.INT8 for form in forms)


def _target(sweep: _Sweep, name: str, form: Form) -> str:
    """The name for the integers of a float tensor: the one that its quantize uses."""
    for user in sweep.users[name]:
        output = user.output
        same = form_of(sweep.graph.tensor(output)) == form
        if user.op == "quantize" and same and output not in sweep.taken:
            sweep.taken.add(output)
            return output
    return sweep.edit.fresh(f"{name}.{form.dtype.value}")


def _emit(sweep: _Sweep, node: Node, inputs: Sequence[str], form: Form) -> bool:
    """Emits the form of a node in integers; False if the operator refuses."""
    output = node.output
    target = _target(sweep, output, form)
    made = replace(node, inputs=tuple(inputs), outputs=(target,))
    if node.op in WEIGHTED and form.dtype is DType.INT16:
        made = made.with_attrs(rounding="even")
    shape = sweep.edit.tensors[output].shape
    try:
        sweep.edit.emit(made, shape=shape, quant=form.quant, dtype=form.dtype)
        if node.op in WEIGHTED:
            conv_parameters(made.with_attrs(rounding="even"), sweep.edit.view())
    except BuildError:
        if sweep.edit.nodes[-1:] == [made]:
            sweep.edit.nodes.pop()
        return False
    sweep.integers[output] = target
    return True


def _move(sweep: _Sweep, node: Node) -> bool:
    places = moved_inputs(node)
    read = [_whole(sweep, node.inputs[i]) for i in places]
    found = [one for one in read if one is not None]
    if not found or len(found) < len(read):
        return False
    form: Form | None = found[0][1]
    if len(places) > 1:
        form = _joint_form(sweep, node, [f for _, f in found])
    if form is None or (node.op == "pad" and not _exact_pad(node, form)):
        return False
    inputs = [sweep.edit.name(name) if name else "" for name in node.inputs]
    for i, (name, given) in zip(places, found, strict=True):
        inputs[i] = name if given == form else _requantised(sweep, name, form)
    return _emit(sweep, node, inputs, form)


def _find(sweep: _Sweep, node: Node) -> bool:
    x = _whole(sweep, node.inputs[0])
    if x is None:
        return False
    inputs = (x[0], *(sweep.edit.name(name) for name in node.inputs[1:]))
    sweep.edit.nodes.append(replace(node, inputs=inputs))
    return True


def _joint_form(sweep: _Sweep, node: Node, found: Sequence[Form]) -> Form | None:
    """The form of all inputs, or the one that the output is quantised to."""
    if len(set(found)) == 1:
        return found[0]
    wanted = sweep.wanted.get(node.output)
    return wanted if wanted is not None and _requantises(wanted, *found) else None


def _requantised(sweep: _Sweep, source: str, form: Form) -> str:
    name = sweep.edit.fresh(f"{source}.requantised")
    node = Node("quantize", name, (source,), (name,))
    return sweep.edit.emit(node, quant=form.quant, dtype=form.dtype)


def _exact_pad(node: Node, form: Form) -> bool:
    """The padding's value is one of the integers."""
    (scale,), (zero,) = form.quant.scale, form.quant.zero_point
    steps = float(node.attrs.get("value", 0.0)) / scale
    if not np.isfinite(steps) or abs(steps - round(steps)) >= 1e-4:
        return False
    return form.dtype.low <= round(steps) + zero <= form.dtype.high


def _compute(sweep: _Sweep, node: Node) -> bool:
    form = sweep.wanted.get(node.output)
    read = [_whole(sweep, name) for name in node.inputs]
    found = [one for one in read if one is not None]
    if form is None or len(found) < len(read):
        return False
    if not _requantises(form, *(given for _, given in found)):
        return False
    return _emit(sweep, node, [name for name, _ in found], form)


def _layer(sweep: _Sweep, node: Node) -> bool:
    """conv2d, depthwise_conv2d, dense on int8 weights; the bias becomes integers."""
    form, read = sweep.wanted.get(node.output), _whole(sweep, node.inputs[0])
    weights = sweep.integers.get(node.inputs[1], "")
    if form is None or read is None or weights not in sweep.edit.constants:
        return False
    x = sweep.edit.tensors[read[0]]
    if x.dtype is not form.dtype:
        return False
    w = sweep.edit.tensors[weights]
    if w.dtype is not DType.INT8 or w.quant is None:
        return False
    if any(w.quant.zero_point):
        if not sweep.edit.known(weights) or x.dtype is not DType.INT8:
            return False
        w = _centred(sweep, w)
    inputs = [x.name, w.name]
    if len(node.inputs) > 2 and node.inputs[2]:
        assert w.quant is not None
        if len(w.quant.scale) not in (1, sweep.edit.tensors[node.inputs[2]].size):
            return False  # of input channels, as PT2E has those that are transposed
        weights, scales = _with_room(sweep, node, x, w)
        inputs, bias = [x.name, weights], _bias(sweep, node.inputs[2], x, scales)
        if bias is None:
            return False
        inputs.append(bias)
    return _emit(sweep, node, inputs, form)


def _centred(sweep: _Sweep, w: Tensor) -> Tensor:
    """Weights without their zero points."""
    made, value = centred(w, sweep.edit.constants[w.name])
    name = sweep.edit.constant(f"{w.name}.centred", value, made.quant)
    return sweep.edit.tensors[name]


def _with_room(sweep: _Sweep, node: Node, x: Tensor, w: Tensor) -> tuple[str, Quant]:
    """The weights, and their scales, in which a float bias has room: one of weights of
    0 alone may have any scale, and has one in which its bias is exact to float32.
    """
    edit, quant = sweep.edit, w.quant
    assert quant is not None
    bias = edit.constants.get(node.inputs[2])
    if bias is None or bias.dtype != np.float32 or quant.axis is None:
        return w.name, quant
    rows = np.moveaxis(edit.constants[w.name], quant.axis, 0).reshape(len(bias), -1)
    scales = np.asarray(quant.scale)
    flags = ~rows.any(1) & ~(np.abs(bias) < x.scale * scales * _ROOM)
    if not edit.known(w.name) or not flags.any():
        return w.name, quant
    fine = np.abs(bias.astype(np.float64)) / (x.scale * (1 << 23))
    fine = np.where(bias, fine, scales.max() or 1.0)
    made = replace(quant, scale=tuple(np.where(flags, fine, scales).tolist()))
    return edit.constant(f"{w.name}.scaled", edit.constants[w.name], made), made


def _bias(sweep: _Sweep, name: str, x: Tensor, weights: Quant) -> str | None:
    """Integers of scale x * weights: as the file has them, or rounded from its
    numbers."""
    scale = tuple(x.scale * s for s in weights.scale)
    quant = Quant(scale, (0,), 0 if len(scale) > 1 else None)
    edit, (dtype, most) = sweep.edit, _BIAS[x.dtype]
    source = sweep.integers.get(name, "")
    if source in edit.constants:
        tensor, value = edit.tensors[source], edit.constants[source]
        same = tensor.dtype is DType.INT32 and _same_scale(tensor.quant, scale)
        if same and tensor.dtype is dtype:
            return source
        if not edit.known(source):
            return None
        if same:
            whole = value.astype(dtype.numpy)
            return edit.constant(f"{name}.{dtype.value}", whole, quant)
        real = _numbers(sweep, tensor)
    elif edit.known(name) and edit.constants[name].dtype == np.float32:
        value = edit.constants[name]
        real = value.astype(np.float64)
    else:
        return None
    with np.errstate(all="ignore"):
        whole = np.rint(real / np.asarray(scale))
    if not (np.abs(whole) <= most).all():
        return None
    made = whole.astype(dtype.numpy)
    return edit.constant(f"{name}.{dtype.value}", made, quant)


def _same_scale(quant: Quant | None, scale: tuple[float, ...]) -> bool:
    if quant is None or any(quant.zero_point):
        return False
    least = float(np.finfo(np.float32).smallest_subnormal)  # of a dead channel
    return bool(np.allclose(quant.scale, scale, rtol=1e-5, atol=least))


def _numbers(sweep: _Sweep, tensor: Tensor) -> npt.NDArray[np.float64]:
    """The result of dequantising a constant."""
    output = "number"
    node = Node("dequantize", output, (tensor.name,), (output,))
    view = sweep.edit.view()
    value = sweep.edit.constants[tensor.name]
    made: npt.NDArray[np.float64] = (
        operator_of(node, view).reference(node, view, [value])[0].astype(np.float64)
    )
    return made

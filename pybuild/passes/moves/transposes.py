"""Transposes away: they sink through the graph, meet others, and cancel.

One sweep in order. A transpose is not computed but noted (views.py); operators that
can work in any order of axes do so, the others ask for the tensor as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.passes.edit import Edit, renamed, used
from pybuild.passes.views import (
    View,
    Views,
    composed,
    inverse,
    moves_nothing,
    regrouped,
    turned,
)

Sweep = Callable[[Views, Node], bool]


def fold_transposes(graph: Graph) -> Graph:
    """The same graph with as few transposes as sinking leaves.

    A transpose that moves no bytes becomes a reshape; a flatten before a dense layer
    reorders its weights.
    """
    edit = Edit(graph)
    views = Views(edit)
    for node in graph.nodes:
        rule = _RULES.get(node.op)
        if node.op == "dequantize" and node.inputs[0] in graph.constants:
            rule = None
        if rule is None or not rule(views, node):
            _keep(views, node)
    for name in graph.outputs:
        _finish(views, name)
    return _plain_names(edit.done(), graph.tensors)


def _keep(views: Views, node: Node) -> None:
    """The node on its inputs as they were."""
    inputs = tuple(views.read(name) for name in node.inputs)
    views.edit.nodes.append(replace(node, inputs=inputs))


def _finish(views: Views, name: str) -> None:
    """An output of the model is computed under its own name."""
    made = any(name in node.outputs for node in views.edit.nodes)
    view = views.of(name)
    if made or name in views.edit.old.inputs or name in views.edit.constants:
        return
    if view.plain:
        tensor = views.edit.tensors[view.base]
        node = Node("copy", name, (view.base,), (name,))
        views.edit.emit(node, quant=tensor.quant, dtype=tensor.dtype)
    else:
        views.compute(view, name)


def _on_base(
    views: Views, node: Node, inputs: tuple[str, ...], perm: tuple[int, ...],
    shape: tuple[int, ...] | None = None,
) -> bool:  # fmt: skip
    """Computes the node on bases; its output is a view by `perm` of what that makes."""
    old = views.edit.tensors[node.output]
    base = views.fresh(node.output)
    made = replace(node, inputs=inputs, outputs=(base,))
    views.edit.emit(made, quant=old.quant, dtype=old.dtype)
    views.put(node.output, View(base, perm, shape))
    return True


def _gets_scale(views: Views, node: Node) -> bool:
    """True if its output has a scale and the base does not: no view of it would."""
    tensors = views.edit.tensors
    base = tensors[views.of(node.inputs[0]).base]
    return base.quant is None and tensors[node.output].quant is not None


# ---- one rule per kind of operator; False where it has nothing to do ----------------


def _transpose(views: Views, node: Node) -> bool:
    view, perm = views.of(node.inputs[0]), tuple(node.attrs["perm"])
    if _gets_scale(views, node):
        return False
    if view.shape is not None:
        found = turned(views.edit.tensors[view.base].shape, view, perm)
        if found is not None:
            views.put(node.output, found)
            return True
        name = views.read(node.inputs[0])
        view = View(name, tuple(range(len(perm))))
    views.put(node.output, View(view.base, composed(view.perm, perm)))
    return True


def _reshape(views: Views, node: Node) -> bool:
    view = views.of(node.inputs[0])
    if view.plain:
        return False
    if _gets_scale(views, node):
        return False
    base, target = views.edit.tensors[view.base], views.edit.tensors[node.output]
    if moves_nothing(base.shape, view.perm):
        made = replace(node, inputs=(view.base,))
        views.edit.emit(
            made, shape=target.shape, quant=target.quant, dtype=target.dtype
        )
        return True
    found = None if view.shape else regrouped(base.shape, view.perm, target.shape)
    if found is None:
        whole = tuple(base.shape[axis] for axis in view.perm) == target.shape
        views.put(node.output, replace(view, shape=None if whole else target.shape))
        return True
    shape, perm = found
    name = views.fresh(node.output)
    views.edit.emit(
        replace(node, inputs=(view.base,), outputs=(name,)),
        shape=shape, quant=target.quant, dtype=target.dtype,
    )  # fmt: skip
    views.put(node.output, View(name, perm))
    return True


def _unary(views: Views, node: Node) -> bool:
    view = views.of(node.inputs[0])
    if view.plain:
        return False
    return _on_base(views, node, (view.base,), view.perm, view.shape)


def _quantize_dynamic(views: Views, node: Node) -> bool:
    """A range is that of the elements in any order, if they are of one batch."""
    view = views.of(node.inputs[0])
    whole = node.attrs["batches"] == 1 and not any(node.attrs.get("pads", ()))
    if view.plain or not whole:
        return False
    integers = views.fresh(node.output)
    made = replace(node, inputs=(view.base,), outputs=(integers, *node.outputs[1:]))
    views.edit.emit(made, dtype=views.edit.tensors[node.output].dtype)
    views.put(node.output, View(integers, view.perm, view.shape))
    return True


def _many(views: Views, node: Node) -> bool:
    """add, sub, mul, concat: all operands in the order of the first that has one."""
    out = views.edit.tensors[node.output]
    found = [views.of(name) for name in node.inputs]
    constant = [name in views.edit.constants for name in node.inputs]
    ordered = [
        view
        for view, known in zip(found, constant, strict=True)
        if not known and not view.plain and view.shape is None
        and len(view.perm) == len(out.shape)
    ]  # fmt: skip
    if not ordered:
        return False
    perm = ordered[0].perm
    inputs = tuple(_in_order(views, name, perm) for name in node.inputs)
    if node.op == "concat":
        node = node.with_attrs(axis=perm[int(node.attrs["axis"])])
    return _on_base(views, node, inputs, perm)


def _map(views: Views, node: Node) -> bool:
    """One operand as it lies, reshaped or not; several in one order, as others."""
    if "shape" in node.attrs:
        return False
    return (_unary if len(node.inputs) == 1 else _many)(views, node)


def _in_order(views: Views, name: str, perm: tuple[int, ...]) -> str:
    """A tensor t such that transpose(t, perm) is the tensor called `name`."""
    edit = views.edit
    view, back = views.of(name), inverse(perm)
    if view.shape is None and view.perm == perm:
        return view.base
    shape = edit.tensors[name].shape
    wide = (1,) * (len(perm) - len(shape)) + shape
    if name in edit.constants:
        value = edit.constants[name]
        if value.size == 1:
            return name
        moved = np.ascontiguousarray(value.reshape(wide).transpose(back))
        return edit.moved(name, "nhwc", moved)
    if len(shape) == len(perm) and view.shape is None:
        moved_view = View(view.base, composed(view.perm, back))
        if moved_view.plain:
            return view.base
        return views.compute(moved_view, views.fresh(name))
    at = views.read(name)
    if wide != shape:
        at = views.compute(
            View(at, tuple(range(len(shape))), wide), edit.fresh(f"{name}.wide")
        )
    return views.compute(View(at, back), views.fresh(name))


def _pad(views: Views, node: Node) -> bool:
    return _per_axis(views, node, ("pads",))


def _slice(views: Views, node: Node) -> bool:
    return _per_axis(views, node, ("begin", "end", "strides"))


def _per_axis(views: Views, node: Node, keys: tuple[str, ...]) -> bool:
    """Attributes with one entry per axis move with the axes."""
    view = views.of(node.inputs[0])
    if view.plain or view.shape is not None:
        return False
    back = inverse(view.perm)
    attrs = {key: tuple(node.attrs[key][axis] for axis in back) for key in keys}
    return _on_base(views, node.with_attrs(**attrs), (view.base,), view.perm)


def _along(views: Views, node: Node) -> bool:
    """Operators along one axis, which keep it."""
    view = views.of(node.inputs[0])
    if view.plain or view.shape is not None:
        return False
    made = node.with_attrs(axis=view.perm[int(node.attrs["axis"])])
    return _on_base(views, made, (view.base, *node.inputs[1:]), view.perm)


def _gather(views: Views, node: Node) -> bool:
    """Rows of known numbers, a list of them: the axis stays."""
    if len(views.edit.tensors[node.inputs[1]].shape) != 1:
        return False
    return _along(views, node)


def _mean(views: Views, node: Node) -> bool:
    view = views.of(node.inputs[0])
    if view.plain or view.shape is not None:
        return False
    gone = {view.perm[axis] for axis in node.attrs["axes"]}
    perm = view.perm
    if not node.attrs["keepdims"]:
        left = [axis for axis in range(len(perm)) if axis not in gone]
        perm = tuple(left.index(axis) for axis in perm if axis not in gone)
    made = node.with_attrs(axes=tuple(sorted(gone)))
    if View(view.base, perm).plain:
        old = views.edit.tensors[node.output]
        made = replace(made, inputs=(view.base,))
        views.edit.emit(made, quant=old.quant, dtype=old.dtype)
        return True
    return _on_base(views, made, (view.base,), perm)


def _matmul(views: Views, node: Node) -> bool:
    """A second operand whose columns lie in rows is read as it lies."""
    view = views.of(node.inputs[1])
    *outer, row, column = view.perm
    if view.shape is not None or row != len(view.perm) - 1:
        return False
    turned = View(view.base, (*outer, column, row))
    b = (
        view.base
        if turned.plain
        else views.compute(turned, views.fresh(node.inputs[1]))
    )
    attrs = {k: v for k, v in node.attrs.items() if k != "transpose_b"}
    if "transpose_b" not in node.attrs:
        attrs["transpose_b"] = True
    a = views.read(node.inputs[0])
    views.edit.nodes.append(replace(node, inputs=(a, b), attrs=attrs))
    return True


def _dense(views: Views, node: Node) -> bool:
    """A dense layer on a flattened view: its weights in the order of the base."""
    edit = views.edit
    view = views.of(node.inputs[0])
    if view.shape is None or len(view.shape) != 2 or view.perm[0] != 0:
        return False
    base = edit.tensors[view.base]
    if base.shape[0] != view.shape[0]:
        return False
    weights = _reordered(edit, node.inputs[1], base.shape, view.perm)
    if weights is None:
        return False
    flat = edit.fresh(f"{node.inputs[0]}.nhwc")
    edit.emit(
        Node("reshape", flat, (view.base,), (flat,)),
        shape=view.shape, quant=base.quant, dtype=base.dtype,
    )  # fmt: skip
    edit.nodes.append(replace(node, inputs=(flat, weights, *node.inputs[2:])))
    return True


def _reordered(
    edit: Edit, name: str, base: tuple[int, ...], perm: tuple[int, ...]
) -> str | None:
    """Weights [O,K], K in the order of transpose(base, perm); made that of base."""
    source = next((n for n in edit.nodes if name in n.outputs), None)
    whole = name
    if source is not None and source.op == "dequantize":
        whole = source.inputs[0]
    value, tensor = edit.constants.get(whole), edit.tensors[whole]
    if value is None or (tensor.quant is not None and tensor.quant.axis == 1):
        return None
    outs = value.shape[0]
    shape = tuple(base[axis] for axis in perm[1:])
    if math.prod(shape) != value.shape[1]:
        return None
    cells = value.reshape(outs, *shape).transpose(inverse(perm))
    moved = np.ascontiguousarray(cells).reshape(value.shape)
    made = edit.moved(whole, "nhwc", moved)
    if source is None or whole == name:
        return made
    output = edit.fresh(f"{name}.nhwc")
    return edit.emit(replace(source, inputs=(made,), outputs=(output,)))


def _scatter(views: Views, node: Node) -> bool:
    """Rows are written along the axis of the base that is theirs."""
    edit, view = views.edit, views.of(node.inputs[0])
    axis = int(node.attrs.get("axis", 0))
    shape, base = edit.old.tensor(node.output).shape, edit.tensors[view.base].shape
    moved = [base[i] for i in view.perm]
    places = (i for i, size in enumerate(moved) if size == shape[axis]
              and math.prod(moved[:i]) == math.prod(shape[:axis]))  # fmt: skip
    at = next(places, None)
    if view.plain or at is None:
        return False
    moved[at] = edit.old.tensor(node.inputs[2]).shape[axis]
    old, flat = edit.tensors[node.inputs[2]], edit.fresh(f"{node.inputs[2]}.flat")
    rows = Node("reshape", flat, (views.read(node.inputs[2]),), (flat,))
    edit.emit(rows, shape=tuple(moved), quant=old.quant, dtype=old.dtype)
    name = views.fresh(node.inputs[2])
    rows_of = views.compute(View(flat, inverse(view.perm)), name)
    made = node.with_attrs(axis=view.perm[at])
    inputs = (view.base, views.read(node.inputs[1]), rows_of)
    return _on_base(views, made, inputs, view.perm, view.shape)


_RULES: dict[str, Sweep] = {
    "transpose": _transpose,
    "reshape": _reshape,
    **dict.fromkeys((*UNARY, "copy", "quantize", "dequantize"), _unary),
    **dict.fromkeys((*BINARY, "concat"), _many),
    "quantize_dynamic": _quantize_dynamic,
    "pad": _pad,
    "slice": _slice,
    "softmax": _along,
    "reduce": _along,
    "arg_reduce": _along,
    "cumulate": _along,
    "gather": _gather,
    "map": _map,
    "mean": _mean,
    "matmul": _matmul,
    "dense": _dense,
    "dense_sums": _dense,
    "scatter": _scatter,
}


def _plain_names(graph: Graph, old: Mapping[str, Tensor]) -> Graph:
    """A base takes the name of the tensor that it stands for, where that is free and
    its shape tells them apart: `crt check --per-layer` would compare them.
    """
    graph = used(graph)
    names: dict[str, str] = {}
    taken = set(graph.tensors)
    made = {name for node in graph.nodes for name in node.outputs}
    for name in sorted(made):
        plain = name.partition(".nhwc")[0]
        alike = plain in old and _alike(graph.tensors[name].shape, old[plain].shape)
        free = plain not in taken and name not in graph.outputs
        if ".nhwc" in name and free and not alike:
            names[name] = plain
            taken.add(plain)
    return renamed(graph, names)


def _alike(moved: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """True if a shape is the same though axes of one size may have changed places.

    Of images it is known that channels are last: verify/layout.py.
    """
    sizes = [n for n in shape if n > 1]
    return moved == shape and len(shape) != 4 and len(set(sizes)) < len(sizes)

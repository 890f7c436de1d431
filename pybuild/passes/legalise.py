"""Last: every node says how it rounds, and outputs are tensors of their own."""

from __future__ import annotations

from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.signatures import BINARY, IGNORE_NAN, UNARY
from pybuild.ops.conv import layer_rounding
from pybuild.passes.edit import Edit, renamed

_WHOLE = (DType.INT8, DType.UINT8, DType.INT16)
_ROUNDING = (
    "conv2d", "depthwise_conv2d", "dense", "avg_pool2d", "mean", "softmax", "quantize",
    "prelu", *UNARY, *BINARY,
)  # fmt: skip
# operators, and the functions of theirs, that compare
_COMPARING = {
    "max_pool2d": ("",),
    "top_k": ("",),
    "reduce": ("min", "max"),
    "scatter": ("min", "max"),
    "map": ("minimum", "maximum"),
}
_RULES = {"litert": "double", "tflm": "double", "single": "single", "onnx": "even"}


def set_rounding(graph: Graph, option: str) -> Graph:
    """The attribute `rounding` of every quantised node, from the build option."""
    return replace(graph, nodes=tuple(rounded(n, graph, option) for n in graph.nodes))


def rounded(node: Node, graph: Graph, option: str) -> Node:
    """The node with its attribute `rounding`, if it is a quantised one."""
    if option == "tflm":
        node = _micro(node)
    if node.attrs.get("fixed", False):
        return node  # of features, which are those of training with any net
    if node.op in _ROUNDING and graph.tensor(node.output).dtype in _WHOLE:
        return node.with_attrs(rounding=rule_of(node, graph, option))
    if node.op == "lstm":
        return node.with_attrs(reference="tflm" if option == "tflm" else "litert")
    once = node.attrs.get("fn") == "requantize_once" and "rounding" in node.attrs
    if option == "tflm" and once:
        return node.with_attrs(fn="requantize")
    return node


def _micro(node: Node) -> Node:
    """TFLM adds int16 in one way only, and has ratios of scales in float64."""
    if node.attrs.get("exact", False):
        return node.with_attrs(exact=False)
    return node.with_attrs(wide=True) if node.op in ("clip", "leaky_relu") else node


def rule_of(node: Node, graph: Graph, option: str) -> str:
    """LiteRT's reference kernels round a dense layer once, by float. XNNPACK has no
    clip and no prelu of integers, so that LiteRT's own kernels run, which round twice.

    int16 has one rule only, but in dense layers, and in a layer that QDQ made.
    """
    if option == "litert" and node.op == "dense":
        return "away"
    if option == "single" and node.op in ("clip", "prelu"):
        return "double"
    x, y = (graph.tensor(n).dtype for n in (node.inputs[0], node.output))
    if y is DType.INT16 and not x.is_float:
        if node.op not in ("conv2d", "depthwise_conv2d", "dense"):
            return "double"
        if option == "onnx":
            return layer_rounding(node, graph)
        rest = {name: v for name, v in node.attrs.items() if name != "rounding"}
        return layer_rounding(replace(node, attrs=rest), graph)
    return _RULES[option]


def of_numbers(graph: Graph) -> Graph:
    """Layers that take less where none of their numbers is NaN may do so."""
    marked = {IGNORE_NAN: True}
    return replace(
        graph,
        nodes=tuple(
            node.with_attrs(**marked) if _looks_for_nan(node, graph) else node
            for node in graph.nodes
        ),
    )


def _looks_for_nan(node: Node, graph: Graph) -> bool:
    """True if its kernels compare twice so that no NaN is lost."""
    name = str(node.attrs.get("fn", node.attrs.get("join", "")))
    if name not in _COMPARING.get(node.op, ()):
        return False
    return graph.tensor(node.inputs[0]).dtype.is_float


def own_outputs(graph: Graph) -> Graph:
    """An output that is an input, a constant or another output is copied.

    A constant gives its name to the output that is copied from it.
    """
    edit = Edit(graph)
    taken = graph.constants.keys() & graph.outputs
    sources = {name: edit.fresh(f"{name}.value") for name in sorted(taken)}
    edit = Edit(renamed(graph, sources))
    for node in edit.old.nodes:
        edit.keep(node)
    made = {name for node in graph.nodes for name in node.outputs}
    outputs: list[str] = []
    for name in graph.outputs:
        new = name
        if name in outputs or name not in made:
            source = sources.get(name, name)
            new = name if name in sources and name not in outputs else ""
            new = new or edit.fresh(f"{name}.copy")
            x = edit.tensors[source]
            node = Node("copy", new, (source,), (new,))
            edit.emit(node, quant=x.quant, dtype=x.dtype, shape=x.shape)
        outputs.append(new)
    edit.old = replace(edit.old, outputs=tuple(outputs))
    return edit.done()

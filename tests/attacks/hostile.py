"""Model files that ask for much with few bytes: turns in turns, doublings, sizes,
chains. Each is a function of how much it shall ask for; knows no limit of pybuild."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSETS = (helper.make_opsetid("", 17),)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Any],
    output: str,
    constants: Sequence[onnx.TensorProto] = (),
    shape: Sequence[int] = (4,),
) -> bytes:
    """A file; inputs are (name, shape) of float32, shape is the output's."""
    given = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in inputs
    ]
    given_back = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "g", given, given_back, constants)
    made = helper.make_model(graph, opset_imports=OPSETS, ir_version=8)
    data: bytes = made.SerializeToString()
    return data


def constant(name: str, value: Any) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value), name)


def nested_loops(turns: int, depth: int) -> bytes:
    """Loops in loops: turns ** depth additions are asked for."""

    def body(level: int) -> onnx.GraphProto:
        if level == depth:
            inner = [helper.make_node("Add", [f"x{level}", "one"], [f"y{level}"])]
        else:
            loop = [f"n{level}", "", f"x{level}"]
            inner = [
                helper.make_node("Constant", [], [f"n{level}"], value_int=turns),
                helper.make_node("Loop", loop, [f"y{level}"], body=body(level + 1)),
            ]
        inner.append(helper.make_node("Identity", [f"c{level}"], [f"d{level}"]))
        infos = [
            helper.make_tensor_value_info(f"i{level}", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"c{level}", TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"x{level}", TensorProto.FLOAT, [4]),
        ]
        given = [
            helper.make_tensor_value_info(f"d{level}", TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"y{level}", TensorProto.FLOAT, [4]),
        ]
        return helper.make_graph(inner, f"b{level}", infos, given)

    first = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body(1))
    constants = [constant("n", np.int64(turns)), constant("one", np.ones(4, "f"))]
    return model([first], [("x", [4])], "y", constants)


def chain(count: int, kinds: Sequence[str] = ("Sigmoid", "Tanh")) -> bytes:
    """Nodes one behind the other."""
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    nodes = [
        helper.make_node(kinds[i % len(kinds)], [a], [b], name=f"n{i}")
        for i, (a, b) in enumerate(pairwise(names))
    ]
    return model(nodes, [("x", [4])], "y")


def doubling_functions(depth: int) -> bytes:
    """Functions that call the one before twice: 2 ** depth nodes are asked for."""
    functions = []
    for level in range(depth):
        if level == 0:
            nodes = [helper.make_node("Relu", ["a"], ["b"])]
        else:
            call = f"F{level - 1}"
            nodes = [
                helper.make_node(call, ["a"], ["m"], domain="own"),
                helper.make_node(call, ["m"], ["b"], domain="own"),
            ]
        functions.append(
            helper.make_function(
                "own",
                f"F{level}",
                ["a"],
                ["b"],
                nodes,
                [*OPSETS, helper.make_opsetid("own", 1)],
            )
        )
    top = helper.make_node(f"F{depth - 1}", ["x"], ["y"], domain="own")
    graph = helper.make_graph(
        [top],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    opsets = [*OPSETS, helper.make_opsetid("own", 1)]
    made = helper.make_model(
        graph, opset_imports=opsets, functions=functions, ir_version=8
    )
    data: bytes = made.SerializeToString()
    return data


def dilated(dilation: int = 2**31 - 1) -> bytes:
    """A convolution whose window is wider than any memory."""
    conv = helper.make_node(
        "Conv",
        ["x", "w"],
        ["y"],
        dilations=[dilation, dilation],
        pads=[dilation, dilation, dilation, dilation],
        kernel_shape=[3, 3],
    )
    weights = constant("w", np.ones((1, 1, 3, 3), np.float32))
    return model([conv], [("x", [1, 1, 8, 8])], "y", [weights], (1, 1, 8, 8))


def roi_align(samples: int, size: int = 2) -> bytes:
    """Boxes that are sampled so many times in each direction."""
    node = helper.make_node(
        "RoiAlign",
        ["x", "boxes", "of"],
        ["y"],
        output_height=size,
        output_width=size,
        sampling_ratio=samples,
    )
    boxes = constant("boxes", np.float32([[0, 0, 4, 4]]))
    of = constant("of", np.int64([0]))
    return model([node], [("x", [1, 1, 8, 8])], "y", [boxes, of], (1, 1, size, size))


def doubling_concats(times: int) -> bytes:
    """A known value that is joined with itself: 2 ** times elements."""
    nodes = [
        helper.make_node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0)
        for i in range(times)
    ]
    nodes.append(helper.make_node("ReduceSum", [f"c{times}"], ["s"], keepdims=0))
    nodes.append(helper.make_node("Add", ["x", "s"], ["y"]))
    return model(nodes, [("x", [4])], "y", [constant("c0", np.ones(4, "f"))])


def filled(elements: int) -> bytes:
    """A constant of so many zeros, by its shape alone."""
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["c"]),
        helper.make_node("ReduceSum", ["c"], ["r"], keepdims=0),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    return model(nodes, [("x", [4])], "y", [constant("s", np.int64([elements]))])


def deep_ifs(depth: int) -> bytes:
    """Branches in branches, none of them known."""

    def branch(level: int) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(f"o{level}", TensorProto.FLOAT, [4])
        if level == depth:
            node = helper.make_node("Relu", ["x"], [f"o{level}"])
        else:
            node = helper.make_node(
                "If",
                ["c"],
                [f"o{level}"],
                then_branch=branch(level + 1),
                else_branch=flat(level),
            )
        return helper.make_graph([node], f"b{level}", [], [out])

    def flat(level: int) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(f"e{level}", TensorProto.FLOAT, [4])
        node = helper.make_node("Neg", ["x"], [f"e{level}"])
        return helper.make_graph([node], f"f{level}", [], [out])

    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["c"], to=TensorProto.BOOL),
        helper.make_node(
            "If", ["c"], ["y"], then_branch=branch(1), else_branch=flat(0)
        ),
    ]
    return model(nodes, [("x", [4])], "y")


def empty_loops(turns: int, depth: int) -> bytes:
    """Loops in loops with nothing in the innermost."""
    name = "x"

    def body(level: int) -> onnx.GraphProto:
        infos = [
            helper.make_tensor_value_info(f"i{level}", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"c{level}", TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"x{level}", TensorProto.FLOAT, [4]),
        ]
        inner, last = [], f"x{level}"
        if level < depth:
            last = f"y{level}"
            inputs = ["n", "", f"x{level}"]
            inner = [helper.make_node("Loop", inputs, [last], body=body(level + 1))]
        given = [
            helper.make_tensor_value_info(f"c{level}", TensorProto.BOOL, []),
            helper.make_tensor_value_info(last, TensorProto.FLOAT, [4]),
        ]
        return helper.make_graph(inner, f"b{level}", infos, given)

    first = helper.make_node("Loop", ["n", "", name], ["y"], body=body(1))
    return model([first], [(name, [4])], "y", [constant("n", np.int64(turns))])


def many_filled(count: int) -> bytes:
    """Constants of 64 MB each, all in use."""
    nodes = []
    for i in range(count):
        last = "x" if i == 0 else f"y{i}"
        nodes += [
            helper.make_node("ConstantOfShape", ["s"], [f"c{i}"]),
            helper.make_node("Gather", [f"c{i}", "at"], [f"g{i}"]),
            helper.make_node("Add", [last, f"g{i}"], [f"y{i + 1}"]),
        ]
    constants = [constant("s", np.int64([1 << 24])), constant("at", np.int64([0]))]
    return model(nodes, [("x", [4])], f"y{count}", constants)

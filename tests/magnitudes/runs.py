"""A graph's outputs by LLVM and by C with traps on undefined behaviour, alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from pybuild.dtype import Array
from pybuild.host.cc import compile_shared, loaded
from pybuild.host.native import Net
from pybuild.install import host_library
from pybuild.ir.graph import Graph, Node, Tensor, verify
from pybuild.model import Model
from tests.toolchains import STRICT

TRAPS = ("-O0", "-ffp-contract=off", "-fPIC", "-shared",
         "-fsanitize=undefined,float-cast-overflow",
         "-fsanitize-undefined-trap-on-error")  # fmt: skip


def joined(graphs: Mapping[str, Graph]) -> Graph:
    """One graph of several with the same inputs: it is compiled once. An output y of
    the graph named "onnx" is onnx_y."""
    nodes: list[Node] = []
    tensors: dict[str, Tensor] = {}
    outputs: list[str] = []
    constants: dict[str, Array] = {}
    for name, graph in graphs.items():

        def own(of: str, name: str = name, graph: Graph = graph) -> str:
            return of if not of or of in graph.inputs else f"{name}_{of}"

        tensors |= {own(t): replace(v, name=own(t)) for t, v in graph.tensors.items()}
        constants |= {own(t): value for t, value in graph.constants.items()}
        outputs += map(own, graph.outputs)
        for node in graph.nodes:
            reads, makes = (tuple(map(own, n)) for n in (node.inputs, node.outputs))
            nodes.append(
                replace(node, name=f"{name}_{node.name}", inputs=reads, outputs=makes)
            )
    first = next(iter(graphs.values()))
    whole = replace(
        first, nodes=tuple(nodes), tensors=tensors, outputs=tuple(outputs),
        constants=constants,
    )  # fmt: skip
    verify(whole)
    return whole


def results(
    name: str, graph: Graph, inputs: Mapping[str, Array], folder: Path
) -> dict[str, Array]:
    """Of every output; both back ends give the same bits, but for those of NaN."""
    model = Model(f"{name}.toml", graph, "onnx", "0" * 64)
    library = model.build(None, name=name, input="keep", plan="whole")
    files = []
    for file, text in library.sources().items():
        (folder / file).write_text(text)
        files += [str(folder / file)] if file.endswith(".c") else []
    whole = folder / f"{name}.so"
    compile_shared([*files, str(host_library())], [folder], whole, (*STRICT, *TRAPS))
    found = []
    for net in (library.host("llvm"), Net(library.plan, loaded(name, whole, None))):
        net.run(**inputs)
        found.append(net.outputs())
    for output, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][output], f"LLVM, C: {output}")
    return found[0]

"""A graph's outputs by LLVM and by C with traps on undefined behaviour, alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pybuild.dtype import Array
from pybuild.host.cc import compile_shared, loaded
from pybuild.host.native import Net
from pybuild.install import host_library
from pybuild.ir.graph import Graph
from pybuild.model import Model
from tests.toolchains import STRICT

TRAPS = ("-O0", "-ffp-contract=off", "-fPIC", "-shared",
         "-fsanitize=undefined,float-cast-overflow",
         "-fsanitize-undefined-trap-on-error")  # fmt: skip


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

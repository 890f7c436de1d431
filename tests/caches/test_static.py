"""Static caches as transformers writes them (index_copy_, repeat_kv, SDPA or written
out), from torch.export and ONNX, of float32 and int8: written and read where they lie,
and what torch computes. Made by export_static.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild

HERE = Path(__file__).parent
CACHE = 2 * 2 * 12 * 8  # elements of keys and values
STATE = {"keys": "keys_next", "values": "values_next"}
MOVES = {"assign", "copy", "transpose", "slice", "dequantize"}


@pytest.mark.parametrize("form", ["pt2", "onnx"])
@pytest.mark.parametrize("kind", ["float32", "int8"])
@pytest.mark.parametrize("way", ["sdpa", "eager"])
def test_static_caches(way: str, kind: str, form: str) -> None:
    name = f"{way}_{kind}"
    state = STATE if form == "onnx" else None
    model = pybuild.load(HERE / "static" / f"{name}.{form}", state=state)
    assert len(model.graph.state) == 2
    library = model.build()
    graph, steps = library.plan.graph, [step.node for step in library.plan.steps]
    assert not MOVES & {node.op for node in steps}
    size = 4 if kind == "float32" else 1
    # the exporter of ONNX guards SDPA's weights against NaN: they stay a tensor
    if (way, form) != ("sdpa", "onnx"):
        large = [n.op for n in steps if graph.tensor(n.output).size >= CACHE // 2]
        assert large == ["scatter", "scatter"]
        assert [node.op for node in steps].count("attention") == 1
        assert library.plan.arena_bytes < CACHE * size + 600
    arrays, net = np.load(HERE / "static.npz"), library.host("llvm")
    for run, (x, y) in enumerate(
        zip(arrays[f"{name}.x"], arrays[f"{name}.y"], strict=True)
    ):
        made = next(iter(net.run(x=x, at=np.array([run % 12])).values()))
        np.testing.assert_allclose(made, y, 1e-5, 2e-6)
    net.close()

"""Interpreters of ONNX files: ONNX Runtime, and the standard itself.

Both give tensors by the file's names, as a build holds them.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pybuild.dtype import Array
from pybuild.frontends.onnx.reader.labels import numbered
from pybuild.ir.graph import Graph
from pybuild.verify.layout import as_given, as_ours, channels_last, flattened

Run = Callable[[Mapping[str, Array]], dict[str, Array]]
# what a session says that cannot be made as it is asked for: another one can
_RETRIED = ("NOT_IMPLEMENTED", "AddInitialized", "Attempt to replace")


def ort_run(path: Path, graph: Graph, every: bool) -> tuple[Run, str]:
    """ONNX Runtime on the CPU with its integer kernels, as it runs by default; and what
    is to be said of how it runs.

    Its integer softmax is kept out, which is a step off the standard's result for
    almost every input: it is not fused where its float result is an output too. Where
    it has no kernel for what its optimiser made of the file, it runs the file as it is.
    """
    import onnx
    import onnxruntime as ort

    names = _names(onnx.load(path), graph, every)
    levels = ort.GraphOptimizationLevel
    tries = [(names, levels.ORT_ENABLE_ALL), (names, levels.ORT_DISABLE_ALL)]
    tries.append((_names(onnx.load(path), graph, None), levels.ORT_ENABLE_ALL))
    net, left = None, list(tries)
    while net is None:
        wanted, level = left.pop(0)
        try:
            net = _session(_with_outputs(path, wanted), level)
        except Exception as error:
            if not left or not any(said in str(error) for said in _RETRIED):
                raise
    made = _mapped(net.run, [o.name for o in net.get_outputs()], graph)
    plain = level == levels.ORT_DISABLE_ALL
    return made, "not optimised" if plain else ""


def standard_run(path: Path, graph: Graph, every: bool) -> Run:
    """The file's nodes one by one, in float64.

    Errors  BuildError where onnx's interpreter has not one of its operators
    """
    import onnx

    from pybuild.verify.standard import standard

    names = _names(onnx.load(path), graph, every or None)
    names = [*dict.fromkeys([*graph.outputs, *names])]
    run = standard(path, names)
    return _mapped(lambda _, fed: _values(run(fed), names), names, graph)


def _values(found: Mapping[str, Array], names: Iterable[str]) -> list[Array | None]:
    return [found.get(name) for name in names]


def _names(model: Any, graph: Graph, every: bool | None) -> list[str]:
    """Inner tensors that must become outputs; None: none, not even of softmax."""
    wanted = []
    for node in model.graph.node:
        wanted += [n for n in node.output if every and n in graph.tensors]
        if node.op_type == "Softmax" and every is not None:
            wanted.append(node.output[0])
    return [name for name in dict.fromkeys(wanted) if name not in graph.constants]


def _with_outputs(path: Path, names: Iterable[str]) -> bytes:
    import onnx

    model = onnx.load(path)
    numbered(model)
    given = {o.name for o in model.graph.output}
    for name in names:
        if name not in given:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    data: bytes = model.SerializeToString()
    return data


def _session(model: bytes | str, level: Any, optimised: str = "") -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = level
    # without this, CPUs that have no VNNI saturate sums of two products to 16 bits
    options.add_session_config_entry("session.x64quantprecision", "1")
    # float products with weights of few bits stay float: else x is quantised on the fly
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    options.intra_op_num_threads = 1
    if optimised:
        options.optimized_model_filepath = optimised
        options.log_severity_level = 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _mapped(call: Callable[..., Any], names: list[str], graph: Graph) -> Run:
    last = channels_last(graph)
    lost = flattened(graph, last)

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        begun = {name: state.begun for name, state in graph.state.items()}
        fed = {
            name: as_given(value, graph, name, last)
            for name, value in {**begun, **inputs, **graph.fixed}.items()
        }
        found = zip(names, call(None, fed), strict=True)
        return {
            name: as_ours(value, graph, name, last)
            for name, value in found
            if value is not None and name in graph.tensors and name not in lost
        }

    return run


# what ONNX Runtime rounds where the standard does not
_REAL = (
    "Conv", "ConvTranspose", "FusedConv", "Gemm", "FusedGemm", "MatMul", "AveragePool",
    "GlobalAveragePool", "Add", "Sub", "Mul", "Div", "ReduceMean", "LayerNormalization",
    "InstanceNormalization", "Softmax", "Sigmoid", "Gelu", "HardSigmoid", "HardSwish",
)  # fmt: skip
# kernels of its own whose rounding is another than the standard's
_OWN = (
    "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearReduceMean",
    "QLinearSoftmax", "QLinearAdd", "QLinearMul", "QLinearLeakyRelu", "QLinearSigmoid",
)  # fmt: skip


def unfused(path: Path) -> str:
    """The reason of ONNX Runtime's difference from the standard: "because it left CONV
    (2), ADD unfused, in float32"; "" if it does not say.
    """
    import onnx
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as folder:
        to = str(Path(folder) / "optimised.onnx")
        try:
            _session(str(path), ort.GraphOptimizationLevel.ORT_ENABLE_ALL, to)
            nodes = onnx.load(to).graph.node
        except Exception:  # it has classes of its own
            return ""
    real = {o for n in nodes if n.op_type == "DequantizeLinear" for o in n.output}
    kinds = [n.op_type for n in nodes if real & set(n.input) and n.op_type in _REAL]
    own = [n.op_type for n in nodes if n.op_type in _OWN]
    cut = [
        n.op_type
        for n in nodes
        if n.op_type in ("Resize", "Upsample") and not real & set(n.input)
    ]
    said = [
        text.format(_counted(found))
        for text, found in (
            ("left {} unfused, in float32", kinds),
            ("has kernels of its own for {}", own),
            ("cuts off the fractions of {}", cut),
        )
        if found
    ]
    return f"because it {', '.join(said)}" if said else ""


def _counted(kinds: Iterable[str]) -> str:
    short = (k.removeprefix("Fused").removeprefix("QLinear").upper() for k in kinds)
    counted = Counter(short).items()
    return ", ".join(k if count == 1 else f"{k} ({count})" for k, count in counted)

"""The interpreters that a build is compared with, behind one small value.

They are optional packages, imported only when asked for. Knows nothing of plans,
kernels or generated code.
"""

from __future__ import annotations

import importlib.util
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, UsageError
from pybuild.frontends.formats import ONNX, TFLITE, format_of
from pybuild.frontends.tflite.reader.first import with_first
from pybuild.frontends.tflite.reader.flat import FlatModel, read
from pybuild.ir.graph import Graph
from pybuild.ir.renamed import as_in_file, under
from pybuild.ops.interpret import interpret
from pybuild.records import dataclass
from pybuild.verify.apart import Lacking, ReferenceCrashed, Run, loaded, possible
from pybuild.verify.onnx_reference import ort_run, standard_run

KINDS = ("auto", "litert", "tflm", "ort", "standard", "numpy")
_PACKAGES = {"litert": "ai_edge_litert", "ort": "onnxruntime", "standard": "onnx"}
_OTHER, TIMED = "other", "timed"
SECONDS, NOT_TIMED = "seconds", "leave out --against"
_INTERPRETERS = {
    "litert": "LiteRT", "ort": "ONNX Runtime", _OTHER: "LiteRT's other kernels",
}  # fmt: skip
_FORMATS = {"litert": TFLITE, "ort": ONNX, "standard": ONNX}
# what LiteRT says of a file with ELU, CEIL or ROUND: they have no reference kernel
_LACKING = "Didn't find op"
# what LiteRT computes with float activations that it quantises on the fly
_WEIGHTED = (
    "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SVDF",
    "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM",
)  # fmt: skip
_OURS = "compared with our own numpy model only"


@dataclass(frozen=True)
class Reference:
    """An interpreter with a model loaded.

    name    with its version
    kind    litert, tflm, ort, standard or numpy
    run     inputs by name -> every tensor it can give, as the graph names and holds it
    exact   integers must be equal; else they are computed through floats
    hybrid  int8 weights with float activations quantised on the fly
    missing  a stronger one that "auto" would have taken, and how to install it
    lacking  LiteRT has no reference kernel of an operator, but others
    """

    name: str
    kind: str
    run: Run
    exact: bool = True
    hybrid: bool = False
    missing: str = ""
    lacking: bool = False


def reference(
    kind: str,
    path: str | Path,
    graph: Graph,
    rounding: str = "litert",
    every: bool = True,
) -> Reference:
    """The interpreter `kind` for the model file at `path`.

    graph   the final graph of the build: for names, shapes and the numpy meaning
    every   intermediates too; without, ONNX Runtime can fuse more integer kernels
    Errors  BuildError where the package is missing or reads other files
    """
    path = Path(path)
    if graph.renamed:
        known = reference(kind, path, as_in_file(graph), rounding, every)
        return replace(known, run=under(known.run, graph.renamed))
    if kind == "auto" and graph.sampled:
        kind = "numpy"  # the file is of a part
    if kind == "auto":
        kind = auto_kind(path, rounding)
        try:
            known = reference(kind, path, graph, rounding, every)
            return replace(known, missing=_missing(path, rounding))
        except BuildError as error:
            if kind != "litert" or isinstance(error, ReferenceCrashed):
                raise
            numpy = reference("numpy", path, graph, rounding, every)
            why = error.problems[0].what.replace("--ref litert", "LiteRT")
            lacking = isinstance(error, Lacking)
            return replace(numpy, missing=f"{why}: {_OURS}", lacking=lacking)
    _must_fit(kind, path)
    match kind:
        case "litert" | "ort":
            return _loaded_apart(kind, path, graph, every)
        case "standard":
            return loaded_here(kind, path, graph, every)
        case "tflm":
            twice = _rounded(graph, "double")
            name = "numpy model of TensorFlow Lite Micro (rounds twice)"
            return Reference(name, kind, lambda inputs: interpret(twice, inputs))
    name = f"numpy {np.__version__}"
    return Reference(name, kind, lambda inputs: interpret(graph, inputs))


def loaded_here(kind: str, path: Path, graph: Graph, every: bool) -> Reference:
    """An interpreter in this process: a crash of its is one of this process."""
    who = _INTERPRETERS[kind] if kind == _OTHER else f"--ref {kind}"
    with _told(path, who):
        made = _interpreter(kind, path, graph, every)
    return replace(made, run=_telling(path, who, made.run))


def other_kernels(path: Path, graph: Graph) -> Reference:
    """LiteRT's kernels that are not reference kernels.

    Errors  BuildError; ReferenceCrashed
    """
    return _loaded_apart(_OTHER, path, graph, every=True)


def _loaded_apart(kind: str, path: Path, graph: Graph, every: bool) -> Reference:
    """An interpreter in a process of its own.

    Errors  BuildError; ReferenceCrashed
    """
    if not possible():
        return loaded_here(kind, path, graph, every)
    facts, run = loaded(path, _INTERPRETERS[kind], kind, graph, every)
    exact, hybrid = bool(facts["exact"]), bool(facts["hybrid"])
    return Reference(str(facts["name"]), kind, run, exact, hybrid)


def _interpreter(kind: str, path: Path, graph: Graph, every: bool) -> Reference:
    if kind == "litert":
        return _litert(path, graph)
    if kind == _OTHER:
        return Reference(_INTERPRETERS[kind], kind, _other_run(path, graph))
    if kind == "standard":
        name = "the standard (every node of the file in float64)"
        return Reference(name, kind, standard_run(path, graph, every))
    import onnxruntime

    run, how = ort_run(path, graph, every)
    name = f"ONNX Runtime {onnxruntime.__version__}{how and f', {how}'}"
    return Reference(name, kind, run, exact=False)


def auto_kind(path: Path, rounding: str) -> str:
    """The strongest reference that is installed and means the same rounding."""
    if rounding == "tflm":
        return "tflm"
    fitting = _fitting(path, rounding)
    return fitting if fitting and _installed(fitting) else "numpy"


def _fitting(path: Path, rounding: str) -> str:
    """The interpreter that means this rounding and reads the file; "": none."""
    kind = {"litert": "litert", "onnx": "ort"}.get(rounding, "")
    return kind if kind and reads(kind, path) else ""


def _missing(path: Path, rounding: str) -> str:
    kind = _fitting(path, rounding)
    if not kind or _installed(kind):
        return ""
    package = _PACKAGES[kind].replace("_", "-")
    what = f"{package} is not installed: {_OURS}"
    return f"{what}. Hint: pip install {package}, it is in the extra 'verify'"


def reads(kind: str, path: Path) -> bool:
    """True if an interpreter knows the format of a file."""
    try:
        return format_of(path.read_bytes(), path.name) == _FORMATS[kind]
    except (BuildError, OSError):
        return False


def _installed(kind: str) -> bool:
    return importlib.util.find_spec(_PACKAGES[kind]) is not None


def _must_fit(kind: str, path: Path) -> None:
    if kind not in KINDS:
        raise BuildError("--ref", f"'{kind}' is unknown", f"one of {', '.join(KINDS)}")
    if kind not in _PACKAGES:
        return
    if not reads(kind, path):
        other = "ort" if kind == "litert" else "litert"
        hint = f"--ref {other}, numpy or auto"
        raise UsageError(path.name, f"--ref {kind} cannot read this file", hint)
    if not _installed(kind):
        what = f"--ref {kind} needs the package {_PACKAGES[kind]}"
        hint = f"pip install {_PACKAGES[kind].replace('_', '-')}, or --ref numpy"
        raise UsageError(path.name, what, hint)


def _rounded(graph: Graph, rounding: str) -> Graph:
    """The graph with every integer operator rounding in one way."""
    nodes = tuple(
        n.with_attrs(rounding=rounding) if "rounding" in n.attrs else n
        for n in graph.nodes
    )
    return replace(graph, nodes=nodes)


@contextmanager
def _told(path: Path, who: str, hint: str = "--ref numpy") -> Iterator[None]:
    """Turns the errors of an interpreter into BuildErrors.

    Errors  BuildError for whatever an interpreter raises: they have classes of
    their own
    """
    try:
        yield
    except BuildError:
        raise
    except Exception as error:
        what = f"{who} cannot run it: {' '.join(str(error).split())}"
        raise BuildError(path.name, what, hint) from None


def _telling(path: Path, who: str, run: Run, hint: str = "--ref numpy") -> Run:
    def telling(inputs: Mapping[str, Array]) -> dict[str, Array]:
        with _told(path, who, hint):
            return run(inputs)

    return telling


def _litert(path: Path, graph: Graph) -> Reference:
    """LiteRT's reference kernels, every tensor kept."""
    import ai_edge_litert
    from ai_edge_litert.interpreter import OpResolverType

    resolver, kernels = OpResolverType.BUILTIN_REF, "reference kernels"
    try:
        first = _litert_net(path, graph, resolver)
    except ValueError as error:
        if _LACKING not in str(error):
            raise
        if any(tensor.quant for tensor in graph.tensors.values()):
            what = f"LiteRT has no reference kernel of {_lacks(str(error))}"
            raise Lacking(path.name, what, "--ref numpy") from None
        resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        first, kernels = _litert_net(path, graph, resolver), "kernels"
    run = _run_of(first, path, graph, resolver)
    name = f"LiteRT {ai_edge_litert.__version__} {kernels}"
    hybrid = is_hybrid(read(path.name, path.read_bytes(), *graph.signatures[:1]))
    return Reference(name, "litert", run, hybrid=hybrid)


def _other_run(path: Path, graph: Graph) -> Run:
    from ai_edge_litert.interpreter import OpResolverType

    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return _run_of(_litert_net(path, graph, resolver), path, graph, resolver)


def _run_of(first: Any, path: Path, graph: Graph, resolver: Any) -> Run:
    details = first.get_tensor_details()
    named = Counter(d["name"] for d in details)
    known = [
        d
        for d in details
        if named[d["name"]] == 1 and _wanted(graph, d["name"], tuple(d["shape"]))
    ]

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        # variables of its own keep their values even when it is reset
        net = _litert_net(path, graph, resolver) if graph.state else first
        _set_fixed(net, graph)
        for detail, name in zip(_free_inputs(net, graph), graph.inputs, strict=True):
            net.set_tensor(detail["index"], inputs[name])
        net.invoke()
        found = {d["name"]: net.get_tensor(d["index"]) for d in known}
        for detail, name in zip(net.get_output_details(), graph.outputs, strict=True):
            found[name] = net.get_tensor(detail["index"])
        return found

    return run


def _lacks(said: str) -> str:
    """The operator, as LiteRT names it in "Didn't find op for builtin opcode 'ELU'"."""
    found = re.search(r"(?:opcode|operator|custom op)[^'\"]*['\"]([^'\"]+)['\"]", said)
    return found[1] if found else "one of its operators"


def _litert_net(path: Path, graph: Graph, resolver: Any) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    with warnings.catch_warnings():  # that all tensors are kept is meant
        warnings.simplefilter("ignore", UserWarning)
        net = Interpreter(
            model_content=_bytes_of(path, graph),
            experimental_op_resolver_type=resolver,
            experimental_preserve_all_tensors=True,
        )
    _fit_inputs(net, graph)
    net.allocate_tensors()
    return net


def _bytes_of(path: Path, graph: Graph) -> bytes:
    """A file of which the first subgraph is the graph's."""
    data = path.read_bytes()
    if not graph.signatures:
        return data
    number = read(path.name, data, graph.signatures[0]).number
    return with_first(data, number)


def _fit_inputs(net: Any, graph: Graph) -> None:
    """Gives dynamic inputs the shapes that the graph was built for."""
    for detail, name in zip(_free_inputs(net, graph), graph.inputs, strict=True):
        shape = graph.tensor(name).shape
        if tuple(detail["shape"]) != shape:
            net.resize_tensor_input(detail["index"], shape)


def timed_here(path: Path, graph: Graph) -> tuple[str, Run]:
    """LiteRT's default interpreter on one thread, its name and a run that gives the
    seconds of its second time.
    """
    import ai_edge_litert
    from ai_edge_litert.interpreter import Interpreter

    who, hint = _INTERPRETERS["litert"], NOT_TIMED
    with _told(path, who, hint):
        net = Interpreter(model_content=_bytes_of(path, graph), num_threads=1)
        net.allocate_tensors()
        _set_fixed(net, graph)
    indices = [detail["index"] for detail in _free_inputs(net, graph)]

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        start = 0.0
        for _ in range(2):
            start = time.perf_counter()
            for index, name in zip(indices, graph.inputs, strict=True):
                net.set_tensor(index, inputs[name])
            net.invoke()
        return {SECONDS: np.asarray(time.perf_counter() - start)}

    name = f"{who} {ai_edge_litert.__version__}, default CPU"
    return name, _telling(path, who, run, hint)


def _free_inputs(net: Any, graph: Graph) -> list[Any]:
    """The inputs of LiteRT's interpreter that are also inputs of the graph."""
    return [d for d in net.get_input_details() if d["name"] not in graph.fixed]


def _set_fixed(net: Any, graph: Graph) -> None:
    for detail in net.get_input_details():
        if detail["name"] in graph.fixed:
            net.set_tensor(detail["index"], graph.fixed[detail["name"]])


def _wanted(graph: Graph, name: str, shape: tuple[int, ...]) -> bool:
    """A tensor of ours, perhaps with channels that ours has no more."""
    tensor = graph.tensors.get(name)
    if tensor is None or name in graph.constants or len(tensor.shape) != len(shape):
        return False
    return tensor.shape[:-1] == shape[:-1] and tensor.shape[-1:] <= shape[-1:]


def is_hybrid(model: FlatModel) -> bool:
    """A float layer that reads int8 weights as they are, also in a loop."""
    found, reached = [model], {model.number}
    for graph in found:  # which grows
        calls = graph.called() - reached
        reached |= calls
        found += [one for one in model.subgraphs if one.number in calls]
    return any(map(_has_hybrid, found))


def _has_hybrid(model: FlatModel) -> bool:
    kinds = [tensor.kind for tensor in model.tensors]
    for op in model.operators:
        if op.code not in _WEIGHTED:
            continue
        x, *others = (kinds[i] for i in op.inputs if 0 <= i < len(kinds))
        if x == "FLOAT32" and "INT8" in others:
            return True
    return False

"""The ways to pass a model to pybuild: files, text, graphs; each becomes a Model."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from pybuild.dtype import Array
from pybuild.errors import BuildError, BuildWarning, all_known
from pybuild.executor.factory import BACKENDS, Factory, Package
from pybuild.features import Decision, Features, Images
from pybuild.files.read import read_bytes
from pybuild.front import Chain, Front, parted, read_front, with_front
from pybuild.frontends.formats import ONNX, PT2, TFLITE, must_suit
from pybuild.ir.graph import Graph
from pybuild.ir.renamed import with_names
from pybuild.library import Library
from pybuild.model import Model, problems_in
from pybuild.model_source import Given, Source, read_source, recipe_of
from pybuild.ops.base.functions import AnyFunctions
from pybuild.options.option import options_in, parse_options
from pybuild.options.recipe import Source as FileFact
from pybuild.options.recipe import source_of
from pybuild.options.table import PERCENTILE, LoadOptions, QuantiseOptions
from pybuild.package.grid import as_html
from pybuild.package.page import quantisation_page
from pybuild.passes.products.int8_weights import dense_in_int8
from pybuild.progress import Progress, Steps, silent
from pybuild.quantisation.report import Quantisation
from pybuild.records import dataclass

Buildable = Model | Graph | Chain | Features | Images | Source
# arrays by the names of inputs, that of an only one, or where they are
Data = Mapping[str, ArrayLike] | ArrayLike | os.PathLike[str]


def load(
    what: Source,
    input_dims: Mapping[str, int] | None = None,
    functions: AnyFunctions = None,
    weights: bytes | Mapping[str, Array] | None = None,
    input_values: Mapping[str, Any] | None = None,
    state: str | Mapping[str, str] | None = None,
    max_turns: int = 0,
    bounds: Mapping[str, int] | None = None,
    front: str | None = None,
    hybrid: str = "litert",
    progress: Progress = silent,
    signature: str = "",
    rename: Mapping[str, str] | None = None,
) -> Model:
    """Reads a .tflite or .onnx file, or a graph .json with its .params beside it.

    what        a path, FRONT.toml+PATH, or what such a file holds: bytes, a ModelProto,
                a graph JSON's text; its bytes say which format it is
    input_dims  values of the dimensions that the file leaves open, by name
    functions   what nodes of a graph .json call that name no operator
    input_values  of inputs of a file that decide shapes: constants from here on
    state       {input: the output that it is in the next run}; "auto": obvious pairs
    max_turns   of each WHILE of a .tflite whose condition is computed; 0: refused
    bounds      room for results of a .onnx whose size depends on data, by their name
    front, signature  a file of features and decisions; which one, of several
    hybrid      how int8 weights meet float32: "litert", "int8" or "float"
    rename      of inputs and outputs, by name or position: {"output:0": "scores"}
    weights     other values of constants that the model has: arrays by name, or a
                parameter file's bytes; None: of a graph .json, the file beside it
    progress    called with the steps that are done, and all: progress(1, 3), ...
    Errors      BuildError with every finding
    """
    if isinstance(what, str):
        front, what = parted(what, front)
    values = locals()
    options = {one.keyword: values[one.keyword] for one in options_in(LoadOptions)}
    asked, wrong = parse_options(LoadOptions, options)
    step = Steps(progress, 3)
    try:
        there = read_source(what)
        step()
        made = _loaded(there, asked, functions, weights)
        step()
    except BuildError as error:
        raise error.with_more((*problems_in(error.rest), *wrong)) from None
    if wrong:
        raise BuildError.of([*made.problems(), *wrong])
    graph = dense_in_int8(made.graph) if asked.hybrid == "int8" else made.graph
    fact = FileFact(Path(made.path).name, made.digest)
    recipe = recipe_of(fact, asked, what, (functions, weights))
    size = made.file_bytes or len(there.data)
    made = replace(made, recipe=recipe, file_bytes=size)
    made = made.with_graph(with_names(graph, asked.rename))
    made = made.with_state(asked.state)
    if asked.front is not None:
        made = with_front(made, read_front(asked.front))
    step()
    return made


def _loaded(
    given: Given,
    asked: LoadOptions,
    functions: AnyFunctions,
    weights: bytes | Mapping[str, Array] | None,
) -> Model:
    where, data, folder, kind = given.where, given.data, given.folder, given.format
    short = Path(where).name
    dims, bounds, hybrid = asked.input_dims, asked.bounds, asked.hybrid
    digest = hashlib.sha256(data).hexdigest()
    values = {n: np.asarray(v) for n, v in asked.input_values.items()}
    said = {"max-turns": asked.max_turns, "hybrid": hybrid != "litert",
            "signature": asked.signature, "input-value": values}  # fmt: skip
    must_suit(kind, {**said, "bound": bounds})
    if functions is not None and kind in (TFLITE, ONNX):
        raise BuildError("functions", "are for a graph JSON, whose nodes call them")
    if kind == TFLITE:
        from pybuild.frontends import tflite

        graph = tflite.load(
            short, data, dims, asked.max_turns, values, asked.signature, hybrid
        )
        return Model(where, graph, "litert", digest).with_weights(weights)
    if kind == ONNX:
        from pybuild.frontends import onnx

        near = onnx.Beside(folder)
        graph = onnx.load(short, data, dims, values, near, bounds)
        made = Model(where, graph, "onnx", near.digest(data))
        return replace(made, file_bytes=near.size(data)).with_weights(weights)
    if kind == PT2:
        from pybuild.frontends import torch

        made = Model(where, torch.load(short, data, dims), "onnx", digest)
        return made.with_weights(weights)
    from pybuild.frontends import graphjson

    beside = Path(where).with_suffix(".params")
    if weights is None and folder is not None and beside.is_file():
        weights = read_bytes(beside)
    graph = graphjson.load(short, data, weights, functions)
    if isinstance(weights, Mapping):
        all_known(weights, graph.constants, "weights")
    more = len(weights) if isinstance(weights, bytes) else 0
    return Model(where, graph, "litert", digest, file_bytes=len(data) + more)


@overload
def build(
    what: Mapping[str, Buildable],
    out: None = None,
    *,
    functions: AnyFunctions = None,
    weights: None = None,
    target: str = "llvm",
    mod_name: str = "default",
    **options: Any,
) -> Package: ...


@overload
def build(
    what: Buildable,
    out: str | Path | None = None,
    *,
    functions: AnyFunctions = None,
    weights: bytes | Mapping[str, Array] | None = None,
    target: str = "generic",
    mod_name: str = "default",
    **options: Any,
) -> Library: ...


def build(
    what: Buildable | Mapping[str, Buildable],
    out: str | Path | None = None,
    *,
    functions: AnyFunctions = None,
    weights: bytes | Mapping[str, Array] | None = None,
    target: str = "generic",
    mod_name: str = "default",
    **options: Any,
) -> Library | Package:
    """Builds a loaded model, a file, the text of a graph JSON, or a graph made by hand;
    several by name, as a package of libraries.

    functions, weights  as in load()
    out       a folder; "llvm" and "c" are targets here, too, as in scripts for TVM
    target    a processor; or "llvm" or "c", for graph executors on this machine: inputs
              are kept, and the weights of a graph JSON replaceable
    mod_name  what makes modules: library["default"](device)
    options   as in Model.build(); params={name: array} gives weights that may be
              replaced
    Errors    BuildError, LimitError
    """
    if isinstance(options.get("params"), Mapping):
        if weights is not None:
            raise BuildError("weights", "are given by params, too", "give one")
        weights = options["params"]
        options = {**options, "params": tuple(weights)}
    if _is_machine(out):
        if target != "generic":
            raise BuildError(str(out), f"is a target, and so is '{target}'", "give one")
        out, target = None, str(out)
    target = _machine(target)
    if isinstance(what, Mapping):
        for name, unused in (("out", out), ("weights", weights)):
            if unused is not None:
                why = "is for one model, here are several"
                raise BuildError(name, why, "build each, then pybuild.build_image")
        given = {"functions": functions, "target": target, **options}
        made = {n: build(w, mod_name=n, name=n, **given) for n, w in what.items()}
        return Package(made)
    model = model_of(what, functions, weights)
    if target not in BACKENDS:
        library = model.build(out, target=target, **options)
        return replace(library, mod_name=mod_name)
    defaults: dict[str, Any] = {"input": "keep", "plan": "whole"}
    made_here = isinstance(what, (Model, Graph))
    if not made_here and model.path.endswith(".json") and not model.graph.parameters:
        defaults["params"] = "replaceable"
    library = model.build(out, target="host", **{**defaults, **options})
    return replace(library, backend=target, mod_name=mod_name)


def _is_machine(target: object) -> bool:
    """True if it names this machine as TVM does: "llvm", "c -keys=cpu", ..."""
    words = target.split() if isinstance(target, str) else []
    options = all(word.startswith("-") for word in words[1:])
    return bool(words) and words[0] in BACKENDS and options


def _machine(target: Any) -> Any:
    """The target for a target string of TVM's.

    Errors  BuildError for options of TVM's targets, which would do nothing
    """
    if not _is_machine(target):
        return target
    first, *unused = target.split()
    if unused:
        hint = "name a processor by itself: target='cortex-m4'"
        raise BuildError(f"target '{target}'", f"{unused[0]} is not used here", hint)
    return first


@dataclass(frozen=True, repr=False)
class Quantised:
    """A quantised model, to be built like any other, and the report of its loss."""

    model: Model
    report: Quantisation

    def build(self, out: str | Path | None = None, **options: Any) -> Library:
        """Does the same as Model.build()."""
        return self.model.build(out, **options)

    def __repr__(self) -> str:
        return f"Quantised({self.model!r}, error {self.report.error:.2%})"

    def _repr_html_(self) -> str:
        return as_html(quantisation_page(self.report))


def quantise(
    model: Buildable,
    data: Data,
    *,
    test: Data | None = None,
    calibrate: str = "minmax",
    percentile: float | str = PERCENTILE,
    keep_float: str | Collection[str] = (),
    int16: str | Collection[str] = (),
    bias_correction: bool = True,
    equalise: bool = True,
    fit_weights: bool = True,
    max_loss: float | str | None = None,
    boundary: str = "float",
    rounding: str | None = None,
    progress: Progress = silent,
) -> Quantised:
    """Quantises a float model after training: int8 weights by channel, int8 activations
    by tensor.

    data        to calibrate with, by input name: arrays [samples, ...], and `labels`,
                the class of each, if known; the array of an only input; or where they
                are: .npz, .csv or a folder of .npy, see docs/python.md
    test        to measure with; None: `data`
    calibrate   "minmax", "percentile" (of the values, `percentile` per cent) or
                "entropy": what range of a tensor's values its integers cover
    keep_float  layers that stay float32; int16: layers with int16 activations
    bias_correction, equalise, fit_weights  done where they make the outputs better
    max_loss    as many layers stay float as it takes to lose no more than this share
                of the samples; without labels, than this error of the outputs
    boundary    "float": inputs and outputs as they are; "int8": integers
    progress    called with the share that is done: progress(40, 100), ...
    Errors      BuildError with everything that is wrong with the data or the choices
    """
    from pybuild.quantisation.cached import quantised_once
    from pybuild.quantisation.draft import Choices
    from pybuild.quantisation.quantise import quantisable
    from pybuild.quantisation.ranges import Calibration
    from pybuild.quantisation.samples import samples_of
    from pybuild.quantisation.stages import Stages

    values = {**locals(), "data": None, "test": None}
    chosen = {one.keyword: values[one.keyword] for one in options_in(QuantiseOptions)}
    asked, wrong = parse_options(QuantiseOptions, chosen)
    loaded = model_of(model)
    graph = quantisable(loaded.graph)
    given = samples_of(graph, data)
    tested = given if test is None else samples_of(graph, test)
    choices = Choices(
        Calibration(asked.calibrate, asked.percentile), asked.keep_float, asked.int16,
        asked.bias_correction, asked.equalise, asked.fit_weights, asked.max_loss,
        asked.boundary, rounding or loaded.rounding, tuple(wrong),
    )  # fmt: skip
    made, report = quantised_once(graph, given, tested, choices, Stages(progress))
    for doubt in report.warnings:
        warnings.warn(f"calibration data: {doubt}", BuildWarning, stacklevel=2)
    recipe = replace(loaded.recipe, quantise=asked, data=_fact(data), test=_fact(test))
    whole = replace(loaded.with_graph(made), quantisation=report, recipe=recipe)
    return Quantised(whole, report)


def _fact(data: object) -> FileFact | None:
    """The name and hash of samples that are in files."""
    return source_of(Path(data)) if isinstance(data, str | os.PathLike) else None


def load_module(path: str | Path, fmt: str = "") -> Factory | Package:
    """Loads a library, or a package of libraries, that export_library has written.

    fmt     TVM's word for the file, "so" or "tar"; the bytes say what it is
    Errors  BuildError for other files
    """
    from pybuild.executor.archive import read

    if fmt not in ("", "so", "tar", "zip"):
        raise BuildError(str(path), f"format '{fmt}' is not read", "leave it out")
    return read(path, _rebuilt)


def _rebuilt(graph: Graph, facts: Mapping[str, Any]) -> Library:
    model = Model(f"{facts['name']}.json", graph, facts["rounding"], "")
    library = model.build(name=facts["name"], **facts["options"])
    return replace(library, backend=facts["backend"])


def model_of(
    what: Buildable,
    functions: AnyFunctions = None,
    weights: bytes | Mapping[str, Array] | None = None,
) -> Model:
    if isinstance(what, Chain):
        what = what.model
    if isinstance(what, Features | Images):
        what = what.graph
    if isinstance(what, Model | Graph) and functions is not None:
        raise BuildError("functions", "are for a graph JSON, whose nodes call them")
    if isinstance(what, Model):
        return what.with_weights(weights)
    if isinstance(what, Graph):
        parts = [what.dump().encode()]
        parts += [what.constants[name].tobytes() for name in sorted(what.constants)]
        digest = hashlib.sha256(b"".join(parts)).hexdigest()
        return Model(what.source, what, "litert", digest).with_weights(weights)
    return load(what, functions=functions, weights=weights)


def chain(
    features: Buildable,
    net: Buildable | Quantised,
    decision: Decision | None = None,
    *,
    every: int = 0,
    stream: bool = False,
) -> Chain:
    """Joins features, a net and a decision into one model: samples in, decisions out.

    features  pybuild.features.log_mel(...), images(...) or a model of samples to a row
    decision  pybuild.features.Decision(...): outputs `heard` and `active`; None: the
              scores alone
    every     rows of features for each run of the net; 0: all of the input of a net
              with state, else one: the window slides on by it
    stream    the net computes only what new rows add, with the same bits
    Errors    BuildError where types, shapes or scales do not fit
    """
    made = features if isinstance(features, Images) else model_of(features).lower()
    whole = net.model if isinstance(net, Quantised) else model_of(net)
    return Chain(with_front(whole, Front(made, decision, every, stream)))

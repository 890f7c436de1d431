"""The table of options: everything that says or reads one is made from this.

A class is what travels together; a field is an option: in Python a keyword, on the
command line and in crt.toml a word, in report.json a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybuild.options import kinds
from pybuild.options.many import FitOptions, ImageOptions, SweepOptions
from pybuild.options.option import option
from pybuild.options.packages import PackageOptions
from pybuild.options.pages import CompareOptions, ReportOptions, SampleOptions
from pybuild.options.regions import RegionSpec
from pybuild.records import dataclass
from pybuild.targets.target import Target

ROUNDINGS = ("litert", "tflm", "single", "onnx")
REFERENCES = ("auto", "litert", "tflm", "ort", "standard", "numpy")
TOOLCHAINS = ("auto", "gcc", "zig", "clang")
SIMULATORS = ("auto", "qemu", "unicorn")
STAGES = ("passes", "kernels", "plan", "loop", "c", "llvm", "asm", "bounds")
METHODS = ("minmax", "percentile", "entropy")
BOUNDARIES = ("float", "int8")
PERCENTILE = 99.999

_CODE, _MEMORY, _WEIGHTS, _DEVICES = "code", "memory", "weights", "devices"
_OPEN = "what the model file leaves open"
_SEED = "of the random inputs; default 0"
_KEY_FILE = "with --port: the key that the board has, too; default: CRT_KEY_FILE"
_HERE = "generated C, or LLVM at once (the default)"


@dataclass(frozen=True)
class LoadOptions:
    """How a model's file is read: pybuild.load."""

    signature: str = option("", kinds.text("NAME"), _OPEN, "the one to build of many")
    input_dims: Mapping[str, int] = option(
        {}, kinds.NUMBERS, _OPEN, "size of a dimension, by its name", word="input-dim",
    )  # fmt: skip
    input_values: Mapping[str, Any] = option(
        {}, kinds.VALUES, _OPEN,
        "the value of an input that decides a shape; it becomes a constant",
        word="input-value",
    )  # fmt: skip
    bounds: Mapping[str, int] = option(
        {}, kinds.NUMBERS, _OPEN,
        "room for a result whose size depends on data; NAME_count says how much is "
        "used", word="bound",
    )  # fmt: skip
    max_turns: int = option(
        0, kinds.count(0), _OPEN,
        "most turns of a WHILE whose condition is computed; all are written out",
    )  # fmt: skip
    hybrid: str = option("litert", kinds.word("litert", "float"), _WEIGHTS,
        "int8 weights of float32 layers: inputs are made int8; or float32")  # fmt: skip
    state: Mapping[str, str] = option(
        {}, kinds.STATE, _MEMORY,
        "an input that is what this output was in the run before; auto: those that are "
        "obvious",
    )  # fmt: skip
    front: str | None = option(
        None, kinds.text("FRONT.toml", "file"), _CODE,
        "features before and decisions after the model, which then takes samples; or "
        "FRONT.toml+MODEL",
    )  # fmt: skip


@dataclass(frozen=True)
class BuildOptions:
    """What Model.build plans and prints; one value for each of its keywords."""

    rounding: str | None = option(
        None, kinds.word(*ROUNDINGS), _CODE,
        "whose integers to equal; default: litert for .tflite, onnx for .onnx",
    )  # fmt: skip
    target: str | Target | Mapping[int, str | Target] = option(
        "generic", kinds.TARGET, _CODE,
        "use this CPU's instructions, like cortex-m4; default: those of any CPU",
    )  # fmt: skip
    optimise: str = option(
        "balanced", kinds.word("size", "ram", "balanced", "speed"), _CODE,
        "what to save: bytes of code, of RAM, instructions, or all (balanced, default)",
    )  # fmt: skip
    nan: str = option(
        "propagate", kinds.word("propagate", "ignore"), _CODE,
        "NaN in, NaN out (propagate, the default); ignore: what inputs with NaN give "
        "is not specified, and maxima take less time",
    )  # fmt: skip
    names: str = option(
        "full", kinds.word("full", "ids"), _CODE,
        "names of tensors in flash: all (the default), or none, only numbers",
    )  # fmt: skip
    emit: str = option(
        "c", kinds.word("c", "obj"), _CODE,
        "C sources, or an object for --target, which needs no compiler",
    )  # fmt: skip
    api: str = option(
        "", kinds.API, _CODE,
        "other names over the model: tvm, those of microTVM's firmware; tvm:MODULE for "
        "tvmgen_MODULE.h",
    )  # fmt: skip
    ram_limit: int | Mapping[int, int] | None = option(
        None, kinds.SIZE, _MEMORY,
        "most bytes of RAM, like 64K: the fastest plan that fits, or an error",
    )  # fmt: skip
    plan: str = option(
        "rows", kinds.word("rows", "whole"), _MEMORY,
        "rows (the default): layers advance together where that needs less RAM",
    )  # fmt: skip
    regions: tuple[RegionSpec, ...] = option(
        (), kinds.REGIONS, _MEMORY,
        "a memory of its own: NAME=SIZE[:fast|slow][+weights][+deviceN]",
        word="region",
    )  # fmt: skip
    input: str = option(
        "reuse", kinds.INPUT, _MEMORY,
        "after a run, inputs are gone (reuse, the default) or still there (keep); "
        "consumable: overwritten while they are read",
    )  # fmt: skip
    push: tuple[str, ...] = option(
        (), kinds.names("INPUT"), _MEMORY,
        "an input that is pushed row by row (NAME_push_rows), never held whole",
    )  # fmt: skip
    lazy: tuple[str, ...] | None = option(
        None, kinds.names("NAME"), _MEMORY,
        "an input or output without memory until it is bound",
    )  # fmt: skip
    stream: tuple[str, ...] = option(
        (), kinds.names("[INPUT=]AXIS[:FRAMES]"), _MEMORY,
        "the axis along which a window slides; each run takes the new FRAMES",
    )  # fmt: skip
    storage: str = option(
        "planned", kinds.word("planned", "given"), _MEMORY,
        "given: tensors share memory as a graph JSON file says", word="",
    )  # fmt: skip
    layout: Mapping[str, str] = option(
        {}, kinds.LAYOUT, _OPEN,
        "an input or output has channels last (nhwc) or first (nchw)",
    )  # fmt: skip
    params: str | tuple[str, ...] | None = option(
        None, kinds.PARAMS, _WEIGHTS,
        "weights that can be loaded and shared: 'replaceable' for all, or a NAME",
    )  # fmt: skip
    compress: str = option(
        "none", kinds.word("none", "lz4", "lz4-layer"), _WEIGHTS,
        "pack weights: unpacked once to RAM (lz4) or by layer to the arena",
    )  # fmt: skip
    verify: bool = option(
        False, kinds.FLAG, _WEIGHTS,
        "NAME_verify, which finds bits of weights and tables that flip in flash",
    )  # fmt: skip
    place: Mapping[str, int | str] = option(
        {}, kinds.PLACES, _DEVICES,
        "which device computes a layer or operator, or has input:NAME or output:NAME; "
        "* is all others",
    )  # fmt: skip
    alone: bool = option(
        True, kinds.FLAG, _CODE, "False: other models may share the kernels", word=""
    )


@dataclass(frozen=True)
class QuantiseOptions:
    """pybuild.quantise, with what its data comes from."""

    data: str | None = option(
        None, kinds.text("CALIB.npz", "file"), "quantise",
        "make a float model int8 with these samples: arrays by input name, and "
        "'labels' if known", word="quantise",
    )  # fmt: skip
    test: str | None = option(
        None, kinds.text("TEST.npz", "file"), "quantise",
        "measure accuracy and noise with these samples, not the calibration's",
        word="quantise-test",
    )  # fmt: skip
    calibrate: str = option(
        "minmax", kinds.word(*METHODS), "quantise",
        "the range that int8 covers: all values seen (minmax, the default), most of "
        "them (percentile), or most of their information (entropy)",
    )  # fmt: skip
    percentile: float = option(
        PERCENTILE, kinds.PERCENT, "quantise",
        f"how many per cent --calibrate percentile covers; default {PERCENTILE}",
    )  # fmt: skip
    keep_float: tuple[str, ...] = option(
        (), kinds.names("LAYER"), "quantise",
        "a layer, or its output, that stays float32",
    )  # fmt: skip
    int16: tuple[str, ...] = option(
        (), kinds.names("LAYER"), "quantise",
        "a layer, or its output, that reads and makes int16",
    )  # fmt: skip
    max_loss: float | None = option(
        None, kinds.SHARE, "quantise",
        "as few layers in int16 or float as it takes to lose no more, like 0.5%",
    )  # fmt: skip
    boundary: str = option(
        "float", kinds.word(*BOUNDARIES), "quantise",
        "type of the model's inputs and outputs; default float",
    )  # fmt: skip
    bias_correction: bool = option(
        True, kinds.FLAG, "quantise", "leave biases as they are",
        word="no-bias-correction",
    )  # fmt: skip
    fit_weights: bool = option(
        True, kinds.FLAG, "quantise", "round each weight to its nearest step",
        word="no-fit-weights",
    )  # fmt: skip
    equalise: bool = option(
        True, kinds.FLAG, "quantise", "do not scale channels between layers",
        word="no-equalise",
    )  # fmt: skip


# ---- of the command line, and of crt.toml --------------------------------------


@dataclass(frozen=True)
class ModelOptions:
    """Of every verb that builds a model, besides those of pybuild.load and build."""

    name: tuple[str, ...] = option(
        (), kinds.names("[MODEL=]NAME"), _CODE,
        "prefix of every C name; default: the file's name",
    )  # fmt: skip
    project: str | None = option(
        None, kinds.text("FILE", "file"), _CODE,
        "the file that says what is built; default: crt.toml of this folder, or "
        "pyproject.toml with [tool.crt]",
    )  # fmt: skip
    outside: bool = option(
        False, kinds.FLAG, _CODE,
        "paths in the project file may lead out of its folder, to read and to write",
    )  # fmt: skip
    device: Mapping[int, str] = option(
        {}, kinds.DEVICES, _DEVICES,
        "a further device and its CPU; --place says what it computes",
    )  # fmt: skip


@dataclass(frozen=True)
class TreeOptions:
    """crt build."""

    out: str | None = option(
        None, kinds.text("DIR", "folder"), "build", "the folder to write", short="o"
    )
    force: bool = option(
        False, kinds.FLAG, "build", "write into a folder with other files"
    )
    html: bool = option(
        False, kinds.FLAG, "build", "write report.html into the folder, too"
    )
    evidence: str | None = option(
        None, kinds.text("DIR", "folder"), "build",
        "write there what an auditor files: hashes, bill of materials, requirements "
        "and their tests, bounds, a comparison with a reference (of --data)",
    )  # fmt: skip


@dataclass(frozen=True)
class InspectOptions:
    """crt inspect."""

    stage: str | None = option(
        None, kinds.word(*STAGES), "inspect",
        "what the compiler made there, of all layers or of the LAYER behind it: graph "
        "after each pass, candidates, plan, a kernel's loops, C, LLVM IR, assembly, "
        "proofs that it stays inside",
    )  # fmt: skip
    ram_curve: str | None = option(
        None, kinds.file(".svg"), "inspect",
        "list plans from the smallest to the fastest; FILE.svg: draw them too",
        alone=True,
    )  # fmt: skip


@dataclass(frozen=True)
class BoardOptions:
    """Where check, bench and run run."""

    on: str = option(
        "host", kinds.BOARD, "where",
        "host (the default), a board of `crt boards`, or a board's folder",
    )  # fmt: skip
    toolchain: str = option(
        "auto", kinds.word(*TOOLCHAINS), "where",
        "what compiles for the board; default: the first that is installed",
    )  # fmt: skip
    simulator: str = option(
        "auto", kinds.word(*SIMULATORS), "where",
        "what runs the board; default: the first that is installed",
    )  # fmt: skip


@dataclass(frozen=True)
class CheckOptions:
    """crt check."""

    ref: str = option(
        "auto", kinds.word(*REFERENCES), "check", "the reference interpreter"
    )
    samples: int = option(20, kinds.count(), "check", "random inputs; default 20")
    seed: int = option(0, kinds.count(0), "check", _SEED)
    data: str | None = option(
        None, kinds.text("FILE", "file"), "check",
        "compare these samples, all of them: .npz, .npy, .csv or a folder of .npy",
    )  # fmt: skip
    labels: str | None = option(
        None, kinds.text("FILE", "file"), "check",
        "the class of each sample, if --data does not have it: accuracy and confusion",
    )  # fmt: skip
    port: str | None = option(
        None, kinds.text("ADDRESS"), "check",
        "a board that serves the model: serial:/dev/ttyUSB0,921600, tcp:HOST:PORT",
    )  # fmt: skip
    key_file: str | None = option(None, kinds.text("FILE", "file"), "check", _KEY_FILE)
    per_layer: bool = option(
        False, kinds.FLAG, "check",
        "compare the results of every layer, not of the last alone",
    )  # fmt: skip
    backend: tuple[str, ...] = option(
        (), kinds.words("c", "llvm"), "check",
        "compare this back end only; default: both",
    )  # fmt: skip


@dataclass(frozen=True)
class BenchOptions:
    """crt bench."""

    runs: int = option(50, kinds.count(), "bench", "default 50")
    seed: int = option(0, kinds.count(0), "bench", _SEED)
    backend: str = option("llvm", kinds.word("c", "llvm"), "bench", _HERE)
    against: str | None = option(
        None, kinds.word("litert"), "bench", "time this too, in turn with ours"
    )
    port: str | None = option(
        None, kinds.text("ADDRESS"), "bench",
        "a board that serves the model: serial:/dev/ttyUSB0,921600, tcp:HOST:PORT",
    )  # fmt: skip
    key_file: str | None = option(None, kinds.text("FILE", "file"), "bench", _KEY_FILE)


@dataclass(frozen=True)
class RunOptions:
    """crt run."""

    data: str | None = option(
        None, kinds.text("FILE", "file"), "run",
        "one sample or many: .npz, .npy, .csv or a folder of .npy; default: random",
    )  # fmt: skip
    out: str | None = option(
        None, kinds.text("FILE.npz", "file"), "run", "write the outputs there",
        short="o",
    )  # fmt: skip


@dataclass(frozen=True)
class DebugOptions:
    """crt debug."""

    data: str | None = option(
        None, kinds.text("FILE.npz", "file"), "debug",
        "an array for each input, by its name; default: random ones",
    )  # fmt: skip
    ref: str | None = option(
        None, kinds.word(*REFERENCES), "debug", "the interpreter to compare with"
    )
    backend: str = option("llvm", kinds.word("c", "llvm"), "debug", _HERE)


COMMON = (LoadOptions, BuildOptions, QuantiseOptions, ModelOptions)
# what each verb takes
VERBS: Mapping[str, tuple[type, ...]] = {
    "inspect": (*COMMON, InspectOptions, BoardOptions),
    "build": (*COMMON, ImageOptions, TreeOptions, SampleOptions, PackageOptions),
    "report": (*COMMON, ReportOptions, SampleOptions, BoardOptions),
    "compare": (*COMMON, CompareOptions),
    "check": (*COMMON, CheckOptions, BoardOptions),
    "bench": (*COMMON, BenchOptions, BoardOptions),
    "run": (*COMMON, RunOptions, BoardOptions),
    "debug": (*COMMON, DebugOptions),
    "fit": (*COMMON, FitOptions),
    "sweep": (SweepOptions,),
}

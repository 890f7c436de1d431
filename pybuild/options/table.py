"""The table of options, from which every parser and page of options is made.

A class is a group of options that belong together. A field is one option: a keyword in
Python, a word on the command line and in crt.toml, a key in report.json.
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
_SEED = "seed of the random inputs; default 0"
_KEY_FILE = "with --port: a file with the board's key; default: CRT_KEY_FILE"
_HERE = "run the generated C, or LLVM's code in memory (the default)"


@dataclass(frozen=True)
class LoadOptions:
    """Options of pybuild.load: how to read a model's file."""

    signature: str = option("", kinds.text("NAME"), _OPEN, "the signature to build")
    input_dims: Mapping[str, int] = option(
        {}, kinds.NUMBERS, _OPEN, "fix the dimension NAME at size N", word="input-dim",
    )  # fmt: skip
    input_values: Mapping[str, Any] = option(
        {}, kinds.VALUES, _OPEN,
        "fix the value of an input that decides a shape; it becomes a constant",
        word="input-value",
    )  # fmt: skip
    bounds: Mapping[str, int] = option(
        {}, kinds.NUMBERS, _OPEN,
        "reserve room for a result whose size depends on data; the output "
        "NAME_count says how much is used", word="bound",
    )  # fmt: skip
    max_turns: int = option(
        0, kinds.count(0), _OPEN,
        "most iterations of a WHILE whose condition is computed; all are unrolled",
    )  # fmt: skip
    hybrid: str = option("litert", kinds.word("litert", "int8", "float"), _WEIGHTS,
        "for int8 weights of float32 layers: compute in int8, or in float; litert: as "
        "LiteRT does in a .tflite, in float in others")  # fmt: skip
    rename: Mapping[str, str] = option({}, kinds.RENAMES, _CODE,
        "rename an input or output; OLD: its name, input:N or output:N")  # fmt: skip
    state: Mapping[str, str] = option(
        {}, kinds.STATE, _MEMORY,
        "feed this output to that input in the next run; auto: find the obvious "
        "pairs",
    )  # fmt: skip
    front: str | None = option(
        None, kinds.text("FRONT.toml", "file"), _CODE,
        "put features before and decisions after the model, which then takes samples; "
        "or write FRONT.toml+MODEL; micro_frontend: those of micro wake word",
    )  # fmt: skip


@dataclass(frozen=True)
class BuildOptions:
    """Options of Model.build, one for each of its keywords."""

    rounding: str | None = option(
        None, kinds.word(*ROUNDINGS), _CODE,
        "whose integers to equal; default: litert for .tflite, onnx for .onnx",
    )  # fmt: skip
    target: str | Target | Mapping[int, str | Target] = option(
        "generic", kinds.TARGET, _CODE,
        "use this CPU's instructions, like cortex-m4; default: C for any CPU",
    )  # fmt: skip
    optimise: str = option(
        "balanced", kinds.word("size", "ram", "balanced", "speed"), _CODE,
        "what to save: code size, RAM, instructions (speed), or all (the default)",
    )  # fmt: skip
    nan: str = option(
        "propagate", kinds.word("propagate", "ignore"), _CODE,
        "propagate (the default): NaN in, NaN out; ignore: results for inputs with NaN "
        "are unspecified, and maxima take less time",
    )  # fmt: skip
    names: str = option(
        "full", kinds.word("full", "ids"), _CODE,
        "store names of tensors in flash (full, the default), or only numbers (ids)",
    )  # fmt: skip
    emit: str = option(
        "c", kinds.word("c", "obj"), _CODE,
        "write C sources (the default), or an object for --target without a compiler",
    )  # fmt: skip
    api: str = option(
        "", kinds.API, _CODE,
        "other names over the model: tvm, those of microTVM's firmware; tvm:MODULE for "
        "tvmgen_MODULE.h",
    )  # fmt: skip
    cores: int = option(
        1, kinds.count(1), _CODE,
        "let N equal cores that share memory compute a run together "
        "(NAME_run_cores, NAME_work)",
    )  # fmt: skip
    ram_limit: int | Mapping[int, int] | None = option(
        None, kinds.SIZE, _MEMORY,
        "use the fastest plan whose arena has at most this size, like 64K; else fail",
    )  # fmt: skip
    plan: str = option(
        "rows", kinds.word("rows", "whole"), _MEMORY,
        "rows (the default): layers advance together to save RAM; whole: they never do",
    )  # fmt: skip
    regions: tuple[RegionSpec, ...] = option(
        (), kinds.REGIONS, _MEMORY,
        "use a further memory: NAME=SIZE[:fast|slow][+weights][+deviceN]",
        word="region",
    )  # fmt: skip
    input: str = option(
        "reuse", kinds.INPUT, _MEMORY,
        "after a run, inputs are used up (reuse, the default: rows are free once they "
        "are read) or intact (keep); consumable: used up with --plan whole, too",
    )  # fmt: skip
    push: tuple[str, ...] = option(
        (), kinds.names("INPUT"), _MEMORY,
        "push this input row by row (NAME_push_rows) and never hold it whole",
    )  # fmt: skip
    lazy: tuple[str, ...] | None = option(
        None, kinds.names("NAME"), _MEMORY,
        "give this input or output no memory: the program binds its own",
    )  # fmt: skip
    stream: tuple[str, ...] = option(
        (), kinds.names("[INPUT=]AXIS[:FRAMES]"), _MEMORY,
        "slide the input window along this axis; each run takes the new FRAMES",
    )  # fmt: skip
    storage: str = option(
        "planned", kinds.word("planned", "given"), _MEMORY,
        "given: share memory as the graph JSON file says", word="",
    )  # fmt: skip
    layout: Mapping[str, str] = option(
        {}, kinds.LAYOUT, _OPEN,
        "pass an input or output with channels last (nhwc), first (nchw), or row by "
        "row of all planes (nhcw)",
    )  # fmt: skip
    params: str | tuple[str, ...] | None = option(
        None, kinds.PARAMS, _WEIGHTS,
        "make weights loadable and shared, slower: 'replaceable' for all, or a NAME",
    )  # fmt: skip
    compress: str = option(
        "none", kinds.word("none", "lz4", "lz4-layer"), _WEIGHTS,
        "compress weights: unpack all once to RAM (lz4) or each layer's to the arena",
    )  # fmt: skip
    verify: bool = option(
        False, kinds.FLAG, _WEIGHTS,
        "add NAME_verify, which detects bit flips of weights and tables in flash",
    )  # fmt: skip
    place: Mapping[str, int | str] = option(
        {}, kinds.PLACES, _DEVICES,
        "which device N computes a layer or operator, or holds input:NAME or "
        "output:NAME; * means all others",
    )  # fmt: skip
    alone: bool = option(
        True, kinds.FLAG, _CODE, "False: let other models share the kernels", word=""
    )


@dataclass(frozen=True)
class QuantiseOptions:
    """Options of pybuild.quantise, and the files with its data."""

    data: str | None = option(
        None, kinds.text("CALIB.npz", "file"), "quantise",
        "quantise a float model to int8 with these samples: an array for each input, "
        "and 'labels' if known", word="quantise",
    )  # fmt: skip
    test: str | None = option(
        None, kinds.text("TEST.npz", "file"), "quantise",
        "measure accuracy and noise with these samples instead of the calibration's",
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
        "keep this layer, named by itself or its output, in float32",
    )  # fmt: skip
    int16: tuple[str, ...] = option(
        (), kinds.names("LAYER"), "quantise",
        "let this layer, named by itself or its output, read and write int16",
    )  # fmt: skip
    max_loss: float | None = option(
        None, kinds.SHARE, "quantise",
        "keep as few layers in int16 or float as this loss allows, like 0.5%",
    )  # fmt: skip
    boundary: str = option(
        "float", kinds.word(*BOUNDARIES), "quantise",
        "type of the model's inputs and outputs; default float",
    )  # fmt: skip
    bias_correction: bool = option(
        True, kinds.FLAG, "quantise", "do not correct biases",
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
    """Options of every verb that builds a model, besides those of load and build."""

    name: tuple[str, ...] = option(
        (), kinds.names("[MODEL=]NAME"), _CODE,
        "prefix of every C name; default: the file's name",
    )  # fmt: skip
    project: str | None = option(
        None, kinds.text("FILE", "file"), _CODE,
        "the project file; default: crt.toml in this folder, or pyproject.toml with "
        "[tool.crt]",
    )  # fmt: skip
    outside: bool = option(
        False, kinds.FLAG, _CODE,
        "allow paths in the project file that lead out of its folder, to read or write",
    )  # fmt: skip
    device: Mapping[int, str] = option(
        {}, kinds.DEVICES, _DEVICES,
        "add a device and its CPU; --place says what it computes",
    )  # fmt: skip


@dataclass(frozen=True)
class TreeOptions:
    """crt build."""

    out: str | None = option(
        None, kinds.text("DIR", "folder"), "build", "the folder to write", short="o"
    )
    force: bool = option(
        False, kinds.FLAG, "build", "write even into a folder with other files"
    )
    html: bool = option(
        False, kinds.FLAG, "build", "also write report.html into the folder"
    )
    evidence: str | None = option(
        None, kinds.text("DIR", "folder"), "build",
        "write documents for an auditor: hashes, bill of materials, requirements and "
        "their tests, bounds, a comparison with a reference (on --data)",
    )  # fmt: skip


@dataclass(frozen=True)
class InspectOptions:
    """crt inspect."""

    stage: str | None = option(
        None, kinds.word(*STAGES), "inspect",
        "show the result of this stage, for all layers or the LAYER after it: graph "
        "after each pass, candidates, plan, a kernel's loops, C, LLVM IR, assembly, "
        "proofs that it stays inside its tensors",
    )  # fmt: skip
    ram_curve: str | None = option(
        None, kinds.file(".svg"), "inspect",
        "list plans from the smallest to the fastest; FILE.svg: also draw them",
        alone=True,
    )  # fmt: skip


@dataclass(frozen=True)
class BoardOptions:
    """Options of the verbs that can run on a board."""

    on: str = option(
        "host", kinds.BOARD, "where",
        "run on host (the default), a board of `crt boards`, or a board's folder",
    )  # fmt: skip
    toolchain: str = option(
        "auto", kinds.word(*TOOLCHAINS), "where",
        "the compiler for the board; default: the first that is installed",
    )  # fmt: skip
    simulator: str = option(
        "auto", kinds.word(*SIMULATORS), "where",
        "the simulator of the board; default: the first that is installed",
    )  # fmt: skip


@dataclass(frozen=True)
class CheckOptions:
    """crt check."""

    ref: str = option(
        "auto", kinds.word(*REFERENCES), "check", "the reference to compare with"
    )
    samples: int = option(20, kinds.count(), "check", "N random inputs; default 20")
    seed: int = option(0, kinds.count(0), "check", _SEED)
    data: str | None = option(
        None, kinds.text("FILE", "file"), "check",
        "compare all of these samples: .npz, .npy, .csv or a folder of .npy",
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
        "compare the results of every layer, not only of the last",
    )  # fmt: skip
    backend: tuple[str, ...] = option(
        (), kinds.words("c", "llvm"), "check",
        "compare this back end only; default: both",
    )  # fmt: skip


@dataclass(frozen=True)
class BenchOptions:
    """crt bench."""

    runs: int = option(50, kinds.count(), "bench", "number of runs; default 50")
    seed: int = option(0, kinds.count(0), "bench", _SEED)
    backend: str = option("llvm", kinds.word("c", "llvm"), "bench", _HERE)
    against: str | None = option(
        None, kinds.word("litert"), "bench", "also time this interpreter, alternating"
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
        "the samples to run: .npz, .npy, .csv or a folder of .npy; default: random",
    )  # fmt: skip
    out: str | None = option(
        None, kinds.text("FILE.npz", "file"), "run", "write the outputs to this file",
        short="o",
    )  # fmt: skip


@dataclass(frozen=True)
class DebugOptions:
    """crt debug."""

    data: str | None = option(
        None, kinds.text("FILE.npz", "file"), "debug",
        "an array for each input, named after it; default: random",
    )  # fmt: skip
    ref: str | None = option(
        None, kinds.word(*REFERENCES), "debug", "the reference to compare with"
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

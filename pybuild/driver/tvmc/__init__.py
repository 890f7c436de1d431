"""tvmc's load and compile over pybuild.load and build; all else is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pybuild.dtype import Array
from pybuild.entry import build
from pybuild.errors import BuildError, fitting
from pybuild.files.read import read_bytes
from pybuild.library import Library
from pybuild.micro import export_model_library_format
from pybuild.model import Model
from pybuild.records import dataclass
from pybuild.relay import frontend

__all__ = ["TVMCModel", "TVMCPackage", "compile", "load"]

_FORMATS = ("tflite", "onnx")
_HOST = ("llvm", "c")
_MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class TVMCModel:
    """A model that was read; params: none, weights are constants of it."""

    mod: Model
    params: dict[str, Array]


@dataclass(frozen=True)
class TVMCPackage:
    """The result of compile, and the file that it wrote; "": none."""

    lib: Library
    package_path: str = ""


def load(
    path: str | Path,
    model_format: str | None = None,
    shape_dict: Mapping[str, Sequence[int]] | None = None,
) -> TVMCModel:
    """A .tflite or .onnx file; model_format is checked, the bytes say what it is.

    Errors  BuildError
    """
    kind = model_format or Path(path).suffix[1:]
    if kind not in _FORMATS:
        what = f"tvmc's format '{kind}' is not read here"
        raise BuildError(str(path), what, fitting(kind, _FORMATS))
    if kind == "onnx" and not shape_dict:
        return TVMCModel(*frontend.from_onnx(path))
    if kind == "onnx":
        import onnx

        try:
            proto = onnx.load_from_string(read_bytes(Path(path), _MOST_BYTES))
        except Exception as error:  # protobuf has a class of its own
            what = f"is not an ONNX file: {error}"
            raise BuildError(str(path), what, "give the exported model") from None
        return TVMCModel(*frontend.from_onnx(proto, shape_dict))
    return TVMCModel(*frontend.from_tflite(path, shape_dict))


def compile(
    tvmc_model: TVMCModel,
    target: str,
    package_path: str | Path | None = None,
    output_format: str = "so",
    mod_name: str = "default",
) -> TVMCPackage:
    """Builds a model and, with package_path, writes it.

    target         "llvm" or "c": this machine; with -mcpu=NAME: that processor
    output_format  "so": a library for pybuild.load_module; "mlf": an archive of C
    Errors         BuildError
    """
    if output_format not in ("so", "mlf"):
        what = f"'{output_format}' is not written"
        raise BuildError("--output-format", what, "so, or mlf")
    kind, cpu = read_target(target)
    if output_format == "mlf":
        api = "tvm" if mod_name == "default" else f"tvm:{mod_name}"
        made = tvmc_model.mod.build(target=cpu or "generic", api=api)
        if package_path is not None:
            export_model_library_format(made, package_path)
    else:
        if cpu:
            hint = "--output-format mlf, or a target without -mcpu"
            raise BuildError("--target", f"{cpu} is not this machine", hint)
        made = build(tvmc_model.mod, target=kind, mod_name=mod_name)
        if package_path is not None:
            made.export_library(package_path)
    return TVMCPackage(made, "" if package_path is None else str(package_path))


def read_target(text: str) -> tuple[str, str]:
    """ "llvm" or "c", and the processor of -mcpu, "" without: the last of TVM's
    composite targets; the ones before, like cmsis-nn, are kernels, of ours alone.

    Errors  BuildError for other options
    """
    *before, last = [part.split() or [""] for part in text.split(",")]
    words = [word for part in (*before, last) for word in part[1:]]
    first, kernels = last[0], {part[0] for part in before if part[0]}
    options = dict(word.partition("=")[::2] for word in words)
    cpu = options.pop("-mcpu", "")
    if first not in _HOST or options or kernels - {"cmsis-nn"}:
        what = f"'{text}' is not known here"
        raise BuildError("--target", what, "c, c -mcpu=cortex-m4, or llvm")
    return first, cpu

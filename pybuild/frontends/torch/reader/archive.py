"""Reads the bytes of a .pt2 archive, a zip with JSON and raw weights, into a Program;
torch is not needed. All errors of foreign files are raised here.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.torch.reader.inside import opened
from pybuild.frontends.torch.reader.program import Call, Kind, Program, Ref
from pybuild.frontends.torch.reader.sizes import Sizes
from pybuild.params.budget import UNPACKING, Budget
from pybuild.text.short_names import brief

_WHOLE = "give a .pt2 file, whole and unchanged: torch.export.save(exported, 'm.pt2')"
_OLD = "save it with torch 2.8 or newer: torch.export.save(exported, 'm.pt2')"
# torch._export.serde.schema.ScalarType
KINDS = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16",
    7: "float32", 8: "float64", 12: "bool", 13: "bfloat16", 28: "uint16",
}  # fmt: skip
_NUMBERS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def read(source: str, data: bytes, input_dims: Mapping[str, int]) -> Program:
    """Return the program in `data`.

    input_dims  values of open dimensions, by torch's names (s77)
    Errors      BuildError
    """
    try:
        return _read(source, data, input_dims)
    except (
        KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError,
        StopIteration, OverflowError, *UNPACKING,
    ) as error:  # fmt: skip
        what = f"is not a valid .pt2 file ({type(error).__name__})"
        raise BuildError(source, what, _WHOLE) from None


def _read(source: str, data: bytes, input_dims: Mapping[str, int]) -> Program:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        budget = Budget(source, len(data))
        budget.take_archive(archive)
        files = {_inner(name): name for name in archive.namelist()}
        models = [name for name in files if name.startswith("models/")]
        if len(models) != 1:
            old = "serialized_exported_program.json" in files or not models
            what = "is a .pt2 of an older torch" if old else "holds several programs"
            raise BuildError(source, what, _OLD if old else "save one program a file")
        document = json.loads(archive.read(files[models[0]]))
        stored = {
            **_weights(budget, archive, files, "weights"),
            **_weights(budget, archive, files, "constants"),
        }
    graph = opened(source, document["graph_module"]["graph"])
    signature = document["graph_module"]["signature"]
    sizes = Sizes(source, document, graph, input_dims)
    metas = graph["tensor_values"]
    specs = [next(iter(spec.items())) for spec in signature["input_specs"]]
    names = [next(iter(given.values())) for given in graph["inputs"]]
    weights, inputs = _given(source, specs, names, stored)
    outputs, mutated = _taken(source, signature["output_specs"], specs)
    sizes.check(inputs)
    return Program(
        source=source,
        calls=tuple(_call(source, node, sizes) for node in graph["nodes"]),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        weights=weights,
        shapes={name: sizes.shape(meta["sizes"]) for name, meta in metas.items()},
        kinds={name: KINDS.get(meta["dtype"], "?") for name, meta in metas.items()},
        mutated=mutated,
    )


def _inner(name: str) -> str:
    """Return a file's path without the archive's top folder."""
    return name.partition("/")[2]


def _weights(
    budget: Budget, archive: zipfile.ZipFile, files: Mapping[str, str], folder: str
) -> dict[str, Array]:
    config = f"data/{folder}/model_{folder}_config.json"
    if config not in files:
        return {}
    found = {}
    for name, one in json.loads(archive.read(files[config]))["config"].items():
        if one["use_pickle"]:
            what = f"its {folder} '{brief(name)}' is pickled, not stored as a tensor"
            raise BuildError(budget.source, what, "make it a parameter or a buffer")
        raw = archive.read(files[f"data/{folder}/{one['path_name']}"])
        found[name] = _array(budget, name, raw, one["tensor_meta"])
    return found


def _array(budget: Budget, name: str, raw: bytes, meta: Mapping[str, Any]) -> Array:
    kind, source = KINDS.get(meta["dtype"], "?"), budget.source
    shape = tuple(int(size["as_int"]) for size in meta["sizes"])
    strides = tuple(int(stride["as_int"]) for stride in meta["strides"])
    first = int(meta["storage_offset"]["as_int"])
    if kind == "bfloat16":
        wide = np.frombuffer(raw, np.uint16).astype(np.uint32) << 16
        flat: Array = wide.view(np.float32)
    elif kind == "?":
        raise BuildError(source, f"'{brief(name)}' has a type that is not supported")
    else:
        flat = np.frombuffer(raw, kind)
    reach = first + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    bad = min((*shape, *strides, first), default=0) < 0
    if bad or (0 not in shape and reach >= flat.size):
        raise BuildError(source, f"the bytes of '{brief(name)}' do not fit its shape")
    if 0 in shape:
        return np.zeros(shape, flat.dtype)
    budget.take_bytes(math.prod(shape) * flat.itemsize)
    steps = [stride * flat.itemsize for stride in strides]
    view = np.lib.stride_tricks.as_strided(flat[first:], shape, steps)
    return np.ascontiguousarray(view).reshape(shape)


def _given(
    source: str,
    specs: list[tuple[str, Any]],
    names: list[Any],
    stored: Mapping[str, Array],
) -> tuple[dict[str, Array], list[str]]:
    """Return the weights by the names of the graph, and the user's inputs."""
    weights, inputs = {}, []
    keys = {
        "parameter": "parameter_name", "buffer": "buffer_name",
        "tensor_constant": "tensor_constant_name",
    }  # fmt: skip
    for (kind, spec), given in zip(specs, names, strict=True):
        if kind in keys:
            weights[spec["arg"]["name"]] = stored[spec[keys[kind]]]
        elif kind == "user_input" and "as_tensor" in spec["arg"]:
            inputs.append(spec["arg"]["as_tensor"]["name"])
        elif kind == "user_input":
            what = "an input is not a tensor"
            raise BuildError(source, what, "export with tensors as inputs")
        elif kind != "constant_input":
            what = f"has an input of the kind {kind} ({given})"
            raise BuildError(source, what, "export a module of parameters and tensors")
    return weights, inputs


def _taken(
    source: str, specs: list[Any], inputs: list[tuple[str, Any]]
) -> tuple[list[str], dict[str, str]]:
    """Return the outputs, and the value of each changed buffer after a run."""
    buffers = {
        spec["buffer_name"]: spec["arg"]["name"]
        for kind, spec in inputs
        if kind == "buffer"
    }
    outputs, mutated = [], {}
    for one in specs:
        kind, spec = next(iter(one.items()))
        if kind == "buffer_mutation":
            mutated[buffers[spec["buffer_name"]]] = spec["arg"]["name"]
        elif kind == "user_output" and "as_tensor" in spec["arg"]:
            outputs.append(spec["arg"]["as_tensor"]["name"])
        elif kind == "user_output" and "as_none" not in spec["arg"]:
            raise BuildError(source, "an output is not a tensor", "return tensors")
        elif kind != "user_output":
            what = f"has an output of the kind {kind}"
            raise BuildError(source, what, "export for inference: model.eval()")
    return outputs, mutated


def _call(source: str, node: Mapping[str, Any], sizes: Sizes) -> Call:
    outputs: list[str] = []
    for one in node["outputs"]:
        kind, value = next(iter(one.items()))
        if kind == "as_tensor":
            outputs.append(value["name"])
        elif kind == "as_tensors":
            outputs += [each["name"] for each in value]
        else:
            outputs.append("")
    target = node["target"].removeprefix("torch.ops.")
    name = node.get("name") or next(iter(outputs), "")
    where = f"{source}: node '{brief(name)}' ({target})"
    args = {one["name"]: _value(one["arg"], sizes) for one in node["inputs"]}
    return Call(target, name, args, tuple(outputs), where)


def _value(arg: Mapping[str, Any], sizes: Sizes) -> Any:
    kind, value = next(iter(arg.items()))
    match kind:
        case "as_none":
            return None
        case "as_tensor":
            return Ref(value["name"])
        case "as_tensors":
            return [Ref(one["name"]) for one in value]
        case "as_optional_tensors":
            return [_value(one, sizes) for one in value]
        case "as_sym_int" | "as_sym_float" | "as_sym_bool":
            return sizes.number(value)
        case "as_sym_ints" | "as_sym_floats":
            return [sizes.number(one) for one in value]
        case "as_scalar_type":
            return Kind(KINDS.get(value, "?"))
        case "as_float" if isinstance(value, str):
            return _NUMBERS[value]
    return value

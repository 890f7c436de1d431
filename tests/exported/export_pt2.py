"""Writes pt2/*.pt2 beside it, as torch.export saves the nets of zoo.py, and pt2.npz:
what they compute. In float, and as PT2E quantises them for XNNPACK.

python tests/exported/export_pt2.py [FOLDER]: needs torch and torchao. What says where
the script lay, and the example inputs, which are a pickle, are left out of the files.
"""

from __future__ import annotations

import io
import json
import re
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.exported.zoo import ZOO, again, made

HERE = Path(__file__).parent
RUNS = {"GPT, cached": 3}  # one after the other; else one
# as core ATen; the others as torch.export writes them first
CORE = ("MobileNetV3", "Conformer", "LSTM", "GPT, cached", "norms", "U-Net, bilinear")
QUANTISED = (
    "MobileNetV2", "MobileNetV3", "ShuffleNet", "U-Net, transposed", "YOLO", "DS-CNN",
    "TCN", "audio 1-D", "ViT", "autoencoder", "SSD",
)  # fmt: skip
OPEN = ("DS-CNN",)  # with an open batch


def stem(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower()


def stored(exported: torch.export.ExportedProgram, name: str) -> bytes:
    """The archive without what is of this machine; the same bytes each time."""
    file, slim = io.BytesIO(), io.BytesIO()
    torch.export.save(exported, file)
    with (
        zipfile.ZipFile(file) as given,
        zipfile.ZipFile(slim, "w", zipfile.ZIP_DEFLATED) as kept,
    ):
        for one in given.infolist():
            inner = one.filename.partition("/")[2]
            if inner.startswith("data/sample_inputs"):
                continue
            data = given.read(one)
            if inner.startswith("models/"):
                document = json.loads(data)
                for node in document["graph_module"]["graph"]["nodes"]:
                    node["metadata"] = {}
                data = json.dumps(document, separators=(",", ":")).encode()
            kept.writestr(
                zipfile.ZipInfo(f"{name}/{inner}"), data, zipfile.ZIP_DEFLATED
            )
    return slim.getvalue()


def values(net: torch.nn.Module, runs: list[tuple[Tensor, ...]], name: str):
    """Inputs and outputs of some runs, one after the other."""
    found = {}
    with torch.no_grad():
        for run, given in enumerate(runs):
            out = net(*given)
            outs = out if isinstance(out, tuple) else (out,)
            found |= {f"{name}.{run}.x{i}": v.numpy() for i, v in enumerate(given)}
            found |= {f"{name}.{run}.y{i}": v.numpy() for i, v in enumerate(outs)}
    return found


def quantised(name: str) -> torch.nn.Module:
    """By PT2E, with what ExecuTorch's XNNPACK quantiser annotates."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

    net, example = made(name)
    chosen = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
    quantiser = xnnpack.XNNPACKQuantizer().set_global(chosen)
    ready = prepare_pt2e(torch.export.export(net, example).module(), quantiser)
    for _ in range(4):
        ready(*again(example))
    return convert_pt2e(ready)


def main(folder: Path = HERE) -> None:
    warnings.simplefilter("ignore")
    (folder / "pt2").mkdir(exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    for name in ZOO:
        net, example = made(name)
        batch = {0: torch.export.Dim("batch")} if name in OPEN else None
        given = tuple(torch.cat([x, x]) for x in example) if batch else example
        program = torch.export.export(
            net, given, dynamic_shapes=(batch,) if batch else None
        )
        if name in CORE:
            program = program.run_decompositions()
        (folder / "pt2" / f"{stem(name)}.pt2").write_bytes(stored(program, stem(name)))
        arrays |= values(
            net, [again(example) for _ in range(RUNS.get(name, 1))], stem(name)
        )
    for name in QUANTISED:
        net, example = quantised(name), made(name)[1]
        key = f"{stem(name)}_int8"
        program = torch.export.export(net, example)
        (folder / "pt2" / f"{key}.pt2").write_bytes(stored(program, key))
        arrays |= values(net, [again(example) for _ in range(RUNS.get(name, 1))], key)
    np.savez_compressed(folder / "pt2.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

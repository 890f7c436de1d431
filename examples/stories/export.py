"""Exports what train.py has trained: stories.pt2, by torch.export, and stories.onnx.

python export.py   needs torch and onnxscript
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import onnx
import torch
from corpus import stories
from network import Llama, Sizes
from step import KeptStep, Step, cache_names, caches, reach_of
from tokens import BEGIN, encode, read_pairs

HERE = Path(__file__).parent
WEIGHTS = HERE / "build" / "stories.pt"
SEED = 2  # of the stories that say how great keys and values are
Reach = list[tuple[float, float]]
START = torch.tensor([0]), torch.tensor([0])  # token, position


def to_pt2(net: Llama, reach: Reach, path: Path) -> None:
    """Caches are buffers that a run changes. What is of this machine is left out."""
    program = torch.export.export(KeptStep(net, reach), START)
    whole = io.BytesIO()
    torch.export.save(program, whole)
    with (
        zipfile.ZipFile(whole) as given,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as kept,
    ):
        for one in given.infolist():
            inner, data = one.filename.partition("/")[2], given.read(one)
            if inner.startswith("data/sample_inputs"):
                continue
            if inner.startswith("models/"):
                document = json.loads(data)
                for node in document["graph_module"]["graph"]["nodes"]:
                    node["metadata"] = {}
                data = json.dumps(document, separators=(",", ":")).encode()
            name = zipfile.ZipInfo(f"{path.stem}/{inner}")
            kept.writestr(name, data, zipfile.ZIP_DEFLATED)


def to_onnx(net: Llama, reach: Reach, path: Path) -> None:
    """Caches are inputs and outputs."""
    names = cache_names(net.sizes)
    torch.onnx.export(
        Step(net, reach),
        (*START, *caches(net.sizes)),
        path,
        dynamo=True,
        external_data=False,
        input_names=["token", "at", *names],
        output_names=["logits", *(f"{name}_next" for name in names)],
    )
    model = onnx.load(path)
    for node in model.graph.node:  # where this script lies on this machine
        del node.metadata_props[:]
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        del value.metadata_props[:]
    onnx.save(model, path)


def main() -> None:
    torch.set_num_threads(1)
    net = Llama(Sizes())
    net.load_state_dict(torch.load(WEIGHTS))
    net.eval().requires_grad_(requires_grad=False)
    pairs = read_pairs()
    rows = [[BEGIN, *encode(text.encode(), pairs)] for text in stories(64, SEED)]
    width = max(map(len, rows))
    tokens = torch.tensor([row + [BEGIN] * (width - len(row)) for row in rows])
    reach = reach_of(net, tokens)
    to_pt2(net, reach, HERE / "stories.pt2")
    to_onnx(net, reach, HERE / "stories.onnx")


if __name__ == "__main__":
    main()

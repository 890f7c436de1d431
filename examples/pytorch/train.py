"""Trains a small MobileNet of digits in PyTorch and exports it beside this script.

Needs torch, torchao, onnxscript and scikit-learn (for its pictures).
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import onnx
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

HERE = Path(__file__).parent
HELD_OUT = HERE.parent / "digits" / "digits_test.npz"
SEED, EPOCHS, BATCH, CALIBRATION = 5, 60, 64, 128


def cell(inputs: int, outputs: int, stride: int = 1) -> list[nn.Module]:
    """A depthwise and a pointwise convolution, normalised."""
    return [
        nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
        nn.BatchNorm2d(inputs),
        nn.ReLU6(),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.Hardswish(),
    ]


class Digits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.Hardswish()
        )
        self.down = nn.Sequential(*cell(8, 24, 2))
        self.same = nn.Sequential(*cell(24, 24))
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(24, 10)
        )

    def forward(self, image: Tensor) -> Tensor:
        x = self.down(self.stem(image))
        return self.head(x + self.same(x))


def pictures() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Those to train with, then those that are held out in examples/digits."""
    found, held = load_digits(), np.load(HELD_OUT)
    kept = {image.tobytes() for image in held["images"]}
    images = found.images.astype(np.uint8)
    free = [i for i, image in enumerate(images) if image.tobytes() not in kept]
    x, y = images[free], found.target[free].astype(np.int64)
    known = held["labels"].astype(np.int64)
    pairs = ((x, y), (held["images"], known))
    return tuple(
        torch.from_numpy(part)
        for image, label in pairs
        for part in (image[:, None].astype(np.float32) / 16, label)
    )


def trained(x: Tensor, y: Tensor) -> nn.Module:
    net = Digits()
    steps = EPOCHS * (len(x) // BATCH)
    descent = torch.optim.AdamW(net.parameters(), weight_decay=0.02)
    rate = torch.optim.lr_scheduler.OneCycleLR(descent, 0.01, steps)
    for _ in range(steps):
        chosen = torch.randint(len(x), (BATCH,))
        # pictures moved by up to a pixel
        moved = torch.randint(-1, 2, (2,)).tolist()
        image = torch.roll(x[chosen], moved, (2, 3))
        descent.zero_grad()
        nn.functional.cross_entropy(net(image), y[chosen]).backward()
        descent.step()
        rate.step()
    return net.eval()


def export(net: nn.Module, path: Path) -> None:
    """As torch.export sees it, for any number of pictures, weights in the file."""
    torch.onnx.export(
        net,
        (torch.zeros(2, 1, 8, 8),),
        path,
        dynamo=True,
        external_data=False,
        input_names=["image"],
        output_names=["scores"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
    )
    model = onnx.load(path)
    # where this script and PyTorch lie on this machine
    for node in model.graph.node:
        del node.metadata_props[:]
    onnx.save(model, path)


def quantise(net: nn.Module, some: Tensor, path: Path) -> nn.Module:
    """By PT2E, as users of ExecuTorch do; saved as it is, without ONNX."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

    chosen = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
    quantiser = xnnpack.XNNPACKQuantizer().set_global(chosen)
    example = (some[:1].clone(),)
    ready = prepare_pt2e(torch.export.export(net, example).module(), quantiser)
    for image in some:
        ready(image[None])
    made = convert_pt2e(ready)
    program = torch.export.export(made, example)
    for node in program.graph.nodes:  # where this script lies on this machine
        for key in ("stack_trace", "nn_module_stack", "torch_fn", "from_node"):
            node.meta.pop(key, None)
    whole = io.BytesIO()
    torch.export.save(program, whole)
    with (
        zipfile.ZipFile(whole) as given,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as kept,
    ):
        for name in given.namelist():
            kept.writestr(zipfile.ZipInfo(name), given.read(name), zipfile.ZIP_DEFLATED)
    return made


def main() -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    x, y, test_x, test_y = pictures()
    net = trained(x, y)
    with torch.no_grad():
        right = int((net(test_x).argmax(1) == test_y).sum())
    count = sum(value.numel() for value in net.parameters())
    print(f"{count} parameters, {right} of {len(test_y)} held-out digits right")
    export(net, HERE / "digits.onnx")
    whole = quantise(net, x[:CALIBRATION], HERE / "digits_int8.pt2")
    with torch.no_grad():
        said = torch.cat([whole(image[None]).argmax(1) for image in test_x])
    right = int((said == test_y).sum())
    print(f"in int8, {right} right")
    some = {"image": x[:CALIBRATION].numpy(), "labels": y[:CALIBRATION].numpy()}
    some["labels"] = some["labels"].astype(np.uint8)
    np.savez_compressed(HERE / "calibration.npz", allow_pickle=False, **some)


if __name__ == "__main__":
    main()

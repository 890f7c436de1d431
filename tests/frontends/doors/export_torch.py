"""Writes torch.tar.xz beside it: the layers of layers.py as torch.export saves them, of
float32 and, between torch's quantize_per_tensor and dequantize_per_tensor, of int8.

python tests/frontends/doors/export_torch.py [FILE]: needs torch and onnx. A layer's
weights are those of its other files.
"""

from __future__ import annotations

import io
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao.quantization.fx import _decomposed  # quantized_decomposed's operators

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.exported.export_pt2 import stored
from tests.frontends.doors.layers import FLAT, KIND, LAYERS, UNIT, numbers
from tests.frontends.doors.writers import IMAGE, USUAL, Scale, Shape, first, rows, whole

assert _decomposed
OPS = torch.ops.quantized_decomposed
H, W, C = IMAGE[1:]
FILE = Path(__file__).with_name("torch.tar.xz")


class Net(nn.Module):
    """A layer, in a net of int8 or of float32. Its constants are buffers in the order
    in which the layer asks for them."""

    def __init__(self, layer: Layer, int8: bool) -> None:
        super().__init__()
        self.layer, self.int8, self.asked = layer, int8, 0

    def plain(self, value: np.ndarray) -> Tensor:
        name = f"c{self.asked}"
        self.asked += 1
        if not hasattr(self, name):
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(value)))
        return getattr(self, name)

    def through(self, x: Tensor, scale: Scale = USUAL) -> Tensor:
        """A tensor as its integers have it."""
        if not self.int8:
            return x
        given = (*scale, -128, 127, torch.int8)
        return OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, *given), *given)

    def known(self, value: np.ndarray) -> Tensor:
        if not self.int8:
            return self.plain(value)
        data, scale = whole(value)
        given = (float(scale), 0, -127, 127, torch.int8)
        return OPS.dequantize_per_tensor(self.plain(data), *given)

    def weighted(self, weights: np.ndarray, axis: int, bias: np.ndarray):
        """Weights and bias; the bias is float32, as PT2E leaves it."""
        if not self.int8:
            return self.plain(weights), self.plain(bias)
        data, scales = rows(weights, axis)
        zeros = self.plain(np.zeros(scales.shape, np.int64))
        held = OPS.dequantize_per_channel(
            self.plain(data), self.plain(scales), zeros, axis, -127, 127, torch.int8
        )
        return held, self.plain(bias)

    def pointwise(self, x: Tensor, outs: int) -> Tensor:
        """As layers.pointwise."""
        weights = numbers(outs, 1, 1, x.shape[1]).transpose(0, 3, 1, 2)
        return self.through(F.conv2d(x, *self.weighted(weights, 0, numbers(outs))))

    def image(self, x: Tensor) -> Tensor:
        return self.pointwise(self.through(x), x.shape[1])

    def forward(self, *given: Tensor) -> Tensor:
        self.asked = 0
        y = self.layer(self, *given)
        return self.pointwise(y, 8) if y.ndim == 4 else y


Layer = Callable[..., Tensor]  # of a Net and of its inputs


def conv(shape: Shape, depthwise: bool = False, pads: tuple[int, ...] = (),
         relu: bool = False, **options: int) -> Layer:  # fmt: skip
    """shape: of the weights, as layers.convolution has it"""

    def layer(net: Net, x: Tensor) -> Tensor:
        x, weights = net.image(x), numbers(*shape)
        turned = weights.transpose((3, 0, 1, 2) if depthwise else (0, 3, 1, 2))
        held = net.weighted(turned, 0, numbers(turned.shape[0]))
        y = F.conv2d(F.pad(x, pads) if pads else x, *held, **options)
        return net.through(F.relu(y) if relu else y)

    return layer


def transposed(net: Net, x: Tensor) -> Tensor:
    x, weights = net.image(x), numbers(8, 2, 2, C).transpose(3, 0, 1, 2)
    held = net.weighted(weights, 1, numbers(8))
    return net.through(F.conv_transpose2d(x, *held, stride=2))


def dense(net: Net, x: Tensor) -> Tensor:
    held = net.weighted(numbers(20, 32), 0, numbers(20))
    return net.through(F.linear(net.through(x), *held))


def product(net: Net, x: Tensor) -> Tensor:
    weights, bias = net.weighted(numbers(20, 32).T, 1, numbers(20))
    return net.through(net.through(x) @ weights + bias)


def matmul(turned: bool) -> Layer:
    def layer(net: Net, a: Tensor, b: Tensor) -> Tensor:
        a, b = net.through(a), net.through(b)
        return net.through(a @ (b.transpose(1, 2) if turned else b))

    return layer


def unary(function: Callable[[Tensor], Tensor], scale: Scale = USUAL,
          flat: bool = False) -> Layer:  # fmt: skip
    def layer(net: Net, x: Tensor) -> Tensor:
        return net.through(function(net.through(x) if flat else net.image(x)), scale)

    return layer


def binary(
    function: Callable[[Tensor, Tensor], Tensor], other: Shape | None = None
) -> Layer:
    """other: the shape of a known operand"""

    def layer(net: Net, x: Tensor, *more: Tensor) -> Tensor:
        x = net.image(x)
        if other is None:
            y = net.image(*more)
        else:
            value = numbers(*other)
            y = net.known(value.reshape(-1, 1, 1) if value.size > 1 else value)
        return net.through(function(x, y))

    return layer


def line(net: Net, x: Tensor) -> Tensor:
    x = net.image(x)
    y = net.through(x * net.known(numbers(C).reshape(C, 1, 1)))
    return net.through(y + net.known(numbers(C).reshape(C, 1, 1)))


def silu(net: Net, x: Tensor) -> Tensor:
    x = net.image(x)
    return net.through(x * net.through(torch.sigmoid(x), UNIT))


def prelu(net: Net, x: Tensor) -> Tensor:
    return net.through(F.prelu(net.image(x), net.known(numbers(C))))


def to_space(x: Tensor) -> Tensor:
    """As ONNX's DepthToSpace of mode DCR."""
    there = x.reshape(1, 2, 2, C // 4, H, W).permute(0, 3, 4, 1, 5, 2)
    return there.reshape(1, C // 4, 2 * H, 2 * W)


def to_depth(x: Tensor) -> Tensor:
    there = x.reshape(1, C, H // 2, 2, W // 2, 2).permute(0, 3, 5, 1, 2, 4)
    return there.reshape(1, 4 * C, H // 2, W // 2)


def joined(axis: int) -> Layer:
    return binary(lambda x, y: torch.cat([x, y], axis))


def resized(**how: object) -> Layer:
    return unary(lambda x: F.interpolate(x, scale_factor=2, **how))


def gathered(net: Net, x: Tensor) -> Tensor:
    there = net.plain(np.asarray([3, 1, 4], np.int64))
    return net.through(torch.index_select(net.through(x), 0, there))


WIDE = (8, 3, 3, C)
TORCH: dict[str, Layer] = {
    "conv 3x3, relu": conv(WIDE, padding=1, relu=True),
    "conv 3x3, stride 2": conv(WIDE, pads=(0, 1, 0, 1), stride=2),
    "conv 1x1": conv((24, 1, 1, C)),
    "conv of groups": conv((24, 3, 3, C // 4), padding=1, groups=4),
    "conv with gaps": conv(WIDE, padding=2, dilation=2),
    "depthwise": conv((1, 3, 3, C), True, padding=1, groups=C),
    "transposed conv": transposed,
    "dense": dense,
    "dense as product and sum": product,
    "matmul": matmul(False),
    "matmul, second turned": matmul(True),
    "average pool": unary(lambda x: F.avg_pool2d(x, 2)),
    "max pool": unary(lambda x: F.max_pool2d(x, 2)),
    "mean of pixels": unary(lambda x: x.mean((2, 3), keepdim=True)),
    "mean of pixels, no axes": unary(lambda x: x.mean((2, 3))),
    "mean of channels": unary(lambda x: x.mean(1, keepdim=True)),
    "greatest pixel": unary(lambda x: x.amax((2, 3))),
    "sum of pixels": unary(lambda x: x.sum((2, 3))),
    "relu": unary(F.relu),
    "relu6": unary(F.relu6),
    "sigmoid": unary(torch.sigmoid, UNIT),
    "tanh": unary(torch.tanh, (1 / 128, 0)),
    "abs": unary(torch.abs),
    "neg": unary(torch.neg),
    "exp": unary(torch.exp),
    "hard swish": unary(F.hardswish),
    "leaky relu": unary(lambda x: F.leaky_relu(x, 0.1)),
    "gelu": unary(F.gelu),
    "silu": silu,
    "prelu": prelu,
    "softmax": unary(lambda x: F.softmax(x, -1), UNIT, True),
    "softmax of channels": unary(lambda x: F.softmax(x, 1), UNIT),
    "log softmax": unary(lambda x: F.log_softmax(x, -1), (16 / 256, 127), True),
    "add": binary(torch.add),
    "sub": binary(torch.sub),
    "mul": binary(torch.mul),
    "div": binary(torch.div),
    "maximum": binary(torch.maximum),
    "minimum": binary(torch.minimum),
    "mul by channel": binary(torch.mul, (C,)),
    "add by channel": binary(torch.add, (C,)),
    "mul by a number": binary(torch.mul, (1,)),
    "line by channel": line,
    "excited channels": binary(torch.mul),
    "pad": unary(lambda x: F.pad(x, (2, 0, 1, 1))),
    "mirrored pad": unary(lambda x: F.pad(x, (2, 0, 1, 1), mode="reflect")),
    "channels joined": joined(1),
    "rows joined": joined(2),
    "slice": unary(lambda x: x[:, 4:12, 1:, :]),
    "nearest": resized(mode="nearest"),
    "bilinear": resized(mode="bilinear", align_corners=False),
    "depth to space": unary(to_space),
    "space to depth": unary(to_depth),
    "gather": gathered,
}
INPUTS: dict[str, tuple[Shape, ...]] = {
    "matmul": ((2, 6, 32), (2, 32, 9)),
    "matmul, second turned": ((2, 6, 32), (2, 9, 32)),
    "excited channels": (IMAGE, (1, 1, 1, C)),
    **dict.fromkeys(
        ("dense", "dense as product and sum", "softmax", "log softmax", "gather"),
        (FLAT,),
    ),
    **dict.fromkeys(
        ("add", "sub", "mul", "div", "maximum", "minimum", "channels joined",
         "rows joined"), (IMAGE, IMAGE)
    ),
}  # fmt: skip


def program(name: str, int8: bool) -> bytes:
    net = Net(TORCH[name], int8)
    given = tuple(torch.zeros(first(s)) for s in INPUTS.get(name, (IMAGE,)))
    with torch.no_grad():
        net(*given)  # asks for the constants
        exported = torch.export.export(net, given, strict=False)
    return loose(stored(exported, "layer"))


def loose(data: bytes) -> bytes:
    """The archive without compression: xz finds more, from file to file."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as given,
        zipfile.ZipFile(out, "w") as kept,
    ):
        for one in given.infolist():
            kept.writestr(zipfile.ZipInfo(one.filename), given.read(one))
    return out.getvalue()


def main(file: Path = FILE) -> None:
    warnings.simplefilter("ignore")
    assert TORCH.keys() == LAYERS.keys()
    with tarfile.open(file, "w:xz") as archive:
        for name in TORCH:
            for int8 in (False, True):
                data = program(name, int8)
                entry = tarfile.TarInfo(f"{name}, {KIND[int8]}.pt2")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

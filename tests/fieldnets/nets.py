"""Architectures that people put on microcontrollers, at the sizes that they take, as
.tflite files of seeded weights. Knows no kernel; each net is made once a process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from tests.fieldnets.maker import Maker, Value

# name of the family -> instructions per MAC at most, Cortex-M4F and M55
AIMS = {
    "mobilenet_v1": (1.35, 0.32),
    "mobilenet_v2": (1.6, 0.42),
    "resnet": (1.05, 0.22),
    "squeezenet": (1.1, 0.25),
    "yolo": (1.2, 0.28),
}


@dataclass(frozen=True)
class Net:
    """macs: products that its meaning has; file: the .tflite."""

    name: str
    file: bytes
    macs: int

    @property
    def aims(self) -> tuple[float, float] | None:
        """Of its family, if there are any."""
        found = [most for family, most in AIMS.items() if self.name.startswith(family)]
        return found[0] if found else None


def _classes(m: Maker, x: Value, count: int) -> Value:
    return m.softmax(m.dense(m.mean(x), count))


def mobilenet_v1(m: Maker, width: float, classes: int = 10) -> Value:
    """A.G. Howard et al. 2017: 13 pairs of depthwise and pointwise layers."""
    outs = [int(n * width) for n in (64, 128, 128, 256, 256, *[512] * 6, 1024, 1024)]
    strides = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
    x = m.conv(m.x, int(32 * width), 3, 2)
    for count, stride in zip(outs, strides, strict=True):
        x = m.conv(m.depthwise(x, 3, stride), count)
    return _classes(m, x, classes)


def mobilenet_v2(m: Maker, width: float, classes: int = 10) -> Value:
    """M. Sandler et al. 2018: inverted residuals, linear where they end."""

    wide = functools.partial(_wide, width=width)
    stages = (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
        (6, 160, 3, 2), (6, 320, 1, 1),
    )  # fmt: skip
    x = m.conv(m.x, wide(32), 3, 2)
    for times, outs, count, stride in stages:
        for number in range(count):
            x = _inverted(m, x, times, wide(outs), 3, 1 if number else stride)
    return _classes(m, m.conv(x, 1280), classes)


def _wide(count: float, width: float) -> int:
    """Channels by eights, never a tenth fewer than asked for, as M. Sandler has it."""
    made = max(8, int(count * width + 4) // 8 * 8)
    return made + 8 if made < 0.9 * count * width else made


def _inverted(m: Maker, x: Value, times: int, outs: int, size: int, step: int) -> Value:
    ins = x.real.shape[-1]
    inside = m.conv(x, ins * times) if times > 1 else x
    made = m.conv(m.depthwise(inside, size, step), outs, act="")
    return m.add(x, made) if step == 1 and ins == outs else made


def efficientnet_lite(m: Maker, width: float, classes: int = 10) -> Value:
    """Lite0's stages: without squeeze and excitation, ReLU6, half of them 5x5."""

    wide = functools.partial(_wide, width=width)
    stages = (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
    )  # fmt: skip
    x = m.conv(m.x, 32, 3, 2)
    for times, outs, count, stride, size in stages:
        for number in range(count):
            x = _inverted(m, x, times, wide(outs), size, 1 if number else stride)
    return _classes(m, m.conv(x, 1280), classes)


def resnet(m: Maker, blocks: int, classes: int = 10) -> Value:
    """K. He et al. 2015 for CIFAR: 6 times blocks and 2 layers."""
    x = m.conv(m.x, 16, 3, act="relu")
    for stage, outs in enumerate((16, 32, 64)):
        for number in range(blocks):
            step = 2 if stage and not number else 1
            made = m.conv(m.conv(x, outs, 3, step, "relu"), outs, 3, act="")
            past = m.conv(x, outs, 1, step, "") if step > 1 else x
            x = m.add(past, made, "relu")
    return _classes(m, x, classes)


def miniresnet(m: Maker, classes: int = 10) -> Value:
    """One stack of bottlenecks behind a 7x7, as for sounds."""
    x = m.pool(m.conv(m.x, 64, 7, 2, "relu"), 3, 2)
    for _ in range(2):
        inside = m.conv(m.conv(x, 64, act="relu"), 64, 3, act="relu")
        made = m.conv(inside, 256, act="")
        past = x if x.real.shape[-1] == 256 else m.conv(x, 256, act="")
        x = m.add(past, made, "relu")
    return _classes(m, x, classes)


def squeezenet(m: Maker, classes: int = 10) -> Value:
    """F. Iandola et al. 2016, version 1.1."""

    def fire(x: Value, few: int, many: int) -> Value:
        inside = m.conv(x, few, act="relu")
        sides = (m.conv(inside, many, size, act="relu") for size in (1, 3))
        return m.concat(*sides)

    x = m.pool(m.conv(m.x, 64, 3, 2, "relu", same=False), 3, 2, same=False)
    for few, many in ((16, 64), (16, 64)):
        x = fire(x, few, many)
    x = m.pool(x, 3, 2, same=False)
    for few, many in ((32, 128), (32, 128)):
        x = fire(x, few, many)
    x = m.pool(x, 3, 2, same=False)
    for few, many in ((48, 192), (48, 192), (64, 256), (64, 256)):
        x = fire(x, few, many)
    return m.softmax(m.mean(m.conv(x, classes, act="relu")))


def yolo(m: Maker, outs: int = 18) -> tuple[Value, Value]:
    """Stages that split and join, then two scales joined by upsampling."""

    def stage(x: Value, count: int) -> Value:
        x = m.conv(x, count, 3, 2, "relu6")
        a, b = m.conv(x, count // 2), m.conv(x, count // 2)
        inside = m.conv(m.conv(b, count // 2), count // 2, 3)
        return m.conv(m.concat(a, m.add(b, inside)), count)

    x = m.conv(m.x, 16, 3, 2)
    x = stage(x, 32)
    near = stage(x, 64)
    middle = stage(near, 96)
    far = stage(middle, 128)
    up = m.larger(m.conv(far, 64))
    joined = m.conv(m.conv(m.concat(up, middle), 64), 64, 3)
    up = m.larger(m.conv(joined, 48))
    fine = m.conv(m.conv(m.concat(up, near), 48), 48, 3)
    return m.conv(fine, outs, act=""), m.conv(joined, outs, act="")


def ds_cnn(m: Maker, count: int = 172, classes: int = 12) -> Value:
    """Y. Zhang et al. 2017 for keywords, medium: 49 x 10 MFCC."""
    x = m.conv(m.x, count, (10, 4), (2, 1), "relu")
    for number in range(4):
        x = m.conv(m.depthwise(x, 3, 2 if not number else 1, "relu"), count, act="relu")
    return _classes(m, x, classes)


def stream(m: Maker, classes: int = 4) -> Value:
    """Causal rows in time, [T,1,C]: temporal convolutions with growing gaps."""
    x = m.conv(m.x, 32, (3, 1), (1, 1), "relu", same=False)
    for size in (5, 9, 13):
        inside = m.depthwise(x, (size, 1), 1, "relu", same=False)
        x = m.conv(inside, 48, act="relu")
    return m.conv(x, classes, act="")


def unet(m: Maker, classes: int = 2) -> Value:
    """O. Ronneberger et al. 2015, four scales, 8 to 64 channels."""

    def twice(x: Value, count: int) -> Value:
        return m.conv(m.conv(x, count, 3, act="relu"), count, 3, act="relu")

    x, skips = twice(m.x, 8), []
    for count in (16, 32, 64):
        skips.append(x)
        x = twice(m.pool(x, 2, 2), count)
    for skip in reversed(skips):
        count = skip.real.shape[-1]
        x = twice(m.concat(m.transposed(x, count), skip), count)
    return m.conv(x, classes, act="")


Arch = Callable[[Maker], "Value | tuple[Value, ...]"]
SIDES = (96, 128, 224)
# name -> shape of an image, the net
NETS: dict[str, tuple[tuple[int, int, int], Arch]] = {
    **{f"mobilenet_v1_{width}_{side}": ((side, side, 3),
                                        functools.partial(mobilenet_v1, width=width))
       for width in (0.25, 0.5) for side in SIDES},
    **{f"mobilenet_v2_0.35_{side}": ((side, side, 3),
                                     functools.partial(mobilenet_v2, width=0.35))
       for side in SIDES},
    "resnet_8": ((32, 32, 3), functools.partial(resnet, blocks=1)),
    "resnet_32": ((32, 32, 3), functools.partial(resnet, blocks=5)),
    "squeezenet_128": ((128, 128, 3), squeezenet),
    "yolo_128": ((128, 128, 3), yolo),
    "miniresnet": ((64, 48, 1), miniresnet),
    "efficientnet_lite_0.35_128": ((128, 128, 3),
                                   functools.partial(efficientnet_lite, width=0.35)),
    "ds_cnn": ((49, 10, 1), ds_cnn),
    "stream": ((64, 1, 40), stream),
    "unet_64": ((64, 64, 3), unet),
    "person_detect": ((96, 96, 1), functools.partial(mobilenet_v1, width=0.25,
                                                     classes=2)),
}  # fmt: skip


@functools.cache
def net(name: str, floats: bool = False) -> Net:
    """The net of that name; floats: with float32 at its ends."""
    shape, arch = NETS[name]
    maker = Maker(sum(map(ord, name)), shape)
    made = arch(maker)
    outputs = made if isinstance(made, tuple) else (made,)
    return Net(name, maker.file(*outputs, floats=floats), maker.macs)

"""A camera's bytes as pixels of a net: colours, a part of the frame, another size.

In whole numbers from the first to the last step; weights of a size are in 2^-11.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import (
    Types,
    Values,
    invalid,
    must_have_shape,
    must_have_type,
    operand,
    optional,
    value,
)
from pybuild.records import dataclass

TAP_BITS = 11
BITS = 2 * TAP_BITS
# pixels that one of a box of whole pixels is the mean of, at most
MOST_CELLS = 4096
RESIZES = ("bilinear", "box")
# of red, green and blue in 2^-8, as ITU-R BT.601 has them
LUMA = (77, 150, 29)
# the value of a channel of ones: as much as the brightest of a colour
ONES = 255


@dataclass(frozen=True)
class Format:
    """How a camera writes its pixels.

    bytes   of a pixel
    side    pixels of the camera, each way, that one of the net is made of at most
    places  RGB: of each colour's byte; YUV: of y, u, v in a pair; Bayer (a mosaic: of
            a pixel for each of the camera's): of red, and of blue, in a cell of 2x2, as
            2 * row + column
    matrix  of YUV, in 2^-8: y0, y, v to red, u and v to green, u to blue
    """

    kind: str
    bytes: int
    side: int = 1
    places: tuple[int, ...] = ()
    matrix: tuple[int, ...] = ()

    @property
    def parts(self) -> tuple[int, ...]:
        """The greatest value of each part of a pixel; of Bayer's green it is a sum."""
        cell = (255, 510, 255)
        others = {"grey": (255,), "rgb565": (31, 63, 31), "bayer": cell, "mosaic": cell}
        return others.get(self.kind, (255, 255, 255))

    @property
    def cell(self) -> tuple[int, int]:
        """Rows and columns of the camera that belong together."""
        rows = 2 if self.kind in ("bayer", "mosaic") else 1
        return rows, 2 if self.kind == "yuv" else rows


# ITU-R BT.601: y from 0 to 255 as JPEG and most sensors, or from 16 to 235 as video
_FULL = (0, 256, 359, -88, -183, 454)
_VIDEO = (16, 298, 409, -100, -208, 516)
FORMATS: dict[str, Format] = {
    "grey": Format("grey", 1),
    "rgb888": Format("rgb888", 3, places=(0, 1, 2)),
    "bgr888": Format("rgb888", 3, places=(2, 1, 0)),
    "rgb565": Format("rgb565", 2, places=(0, 1)),
    "rgb565_swapped": Format("rgb565", 2, places=(1, 0)),
    "yuyv": Format("yuv", 2, places=(0, 1, 3), matrix=_FULL),
    "uyvy": Format("yuv", 2, places=(1, 0, 2), matrix=_FULL),
    "yuyv_video": Format("yuv", 2, places=(0, 1, 3), matrix=_VIDEO),
    "uyvy_video": Format("yuv", 2, places=(1, 0, 2), matrix=_VIDEO),
    "bayer_rggb": Format("bayer", 1, 2, places=(0, 3)),
    "bayer_bggr": Format("bayer", 1, 2, places=(3, 0)),
    "bayer_grbg": Format("bayer", 1, 2, places=(1, 2)),
    "bayer_gbrg": Format("bayer", 1, 2, places=(2, 1)),
    "bayer_rggb_full": Format("mosaic", 1, places=(0, 3)),
    "bayer_bggr_full": Format("mosaic", 1, places=(3, 0)),
    "bayer_grbg_full": Format("mosaic", 1, places=(1, 2)),
    "bayer_gbrg_full": Format("mosaic", 1, places=(2, 1)),
}


@dataclass(frozen=True)
class Axis:
    """How one axis gets its size: a group of `made` numbers from `given`, again and
    again.

    firsts   [made] the first that each is made of, within the group
    weights  [made, taps] whole numbers, whose sum is 2^11
    even     all weigh the same
    """

    given: int
    made: int
    firsts: Ints
    weights: Ints
    even: bool

    @property
    def taps(self) -> int:
        return int(self.weights.shape[1])


def axis_of(resize: str, given: int, made: int, even: int = 1) -> Axis:
    """The axis of `made` numbers from `given`; a bilinear one that grows, and holds its
    ends, is a single group.

    even  2: each group begins at an even number of an even `given`
    """
    groups = math.gcd(given, made)
    if resize == "bilinear" and made > given:
        groups = 1
    if given // groups % even:
        groups //= 2
    given, made = given // groups, made // groups
    shares = [_shares(resize, given, made, i) for i in range(made)]
    taps = max(max(one) - min(one) + 1 for one in shares)
    firsts = [min(min(one), given - taps) for one in shares]
    weights = np.zeros((made, taps), np.int64)
    for row, one, first in zip(weights, shares, firsts, strict=True):
        for at, share in one.items():
            row[at - first] = math.floor(share * (1 << TAP_BITS) + Fraction(1, 2))
        row[row.argmax()] += (1 << TAP_BITS) - row.sum()
    alike = made == 1 and len(set(shares[0].values())) == 1
    return Axis(given, made, np.asarray(firsts), weights, alike)


def _shares(resize: str, given: int, made: int, i: int) -> dict[int, Fraction]:
    """The share of each number in number i."""
    step = Fraction(given, made)
    if resize == "box":
        low, high = i * step, (i + 1) * step
        cells = range(math.floor(low), math.ceil(high))
        ends = {n: (max(low, Fraction(n)), min(high, Fraction(n + 1))) for n in cells}
        return {n: (end - begin) / step for n, (begin, end) in ends.items()}
    middle = (i + Fraction(1, 2)) * step - Fraction(1, 2)
    at = Fraction(min(max(middle, Fraction(0)), Fraction(given - 1)))
    first, rest = math.floor(at), at - math.floor(at)
    return {first: 1 - rest, first + 1: rest} if rest else {first: Fraction(1)}


@dataclass(frozen=True)
class Layer:
    """The checked parameters of an `image` node.

    top, left  of the part, in pixels that the format makes
    """

    format: Format
    top: int
    left: int
    rows: Axis
    columns: Axis
    channels: int

    @property
    def grey(self) -> bool:
        return self.channels == 1

    @property
    def cells(self) -> int:
        """Pixels that one is made of."""
        return self.rows.taps * self.columns.taps

    @property
    def even(self) -> bool:
        """All of them weigh the same."""
        return self.rows.even and self.columns.even

    @property
    def parts(self) -> tuple[int, ...]:
        """The greatest value of each part of a pixel of the camera."""
        return self.format.parts[:1] if self._luminous else self.format.parts

    @property
    def factors(self) -> tuple[int, ...]:
        """By which sums of each part are multiplied to be from 0 to 255 * 2^22: of a
        weighted sum, its 2^-11."""
        by = (1 << BITS, self.cells) if self.even else (1 << TAP_BITS, 1)
        return tuple(
            (2 * 255 * by[0] + most * by[1]) // (2 * most * by[1])
            for most in self.parts
        )

    @property
    def _luminous(self) -> bool:
        """The first part is all that a grey pixel needs."""
        return self.grey and self.format.kind in ("grey", "yuv")


def layer_of(node: Node, graph: Graph) -> Layer:
    """The checked parameters of an `image` node.

    Errors  BuildError for what does not fit
    """
    x, attrs = operand(node, graph, 0), node.attrs
    name, resize = str(attrs["format"]), str(attrs["resize"])
    if name not in FORMATS:
        hint = f"one of {', '.join(FORMATS)}"
        raise invalid(node, graph, f"the format '{name}' does not exist", hint)
    if resize not in RESIZES:
        hint = f"one of {', '.join(RESIZES)}"
        raise invalid(node, graph, f"resize '{resize}' does not exist", hint)
    found = FORMATS[name]
    must_have_type(node, graph, x, DType.UINT8)
    if len(x.shape) != 4 or x.shape[3] != found.bytes:
        what = f"'{x.name}' is {list(x.shape)}"
        raise invalid(node, graph, what, f"[N, height, width, {found.bytes}] in {name}")
    top, left, height, width = attrs["crop"]
    ends = top + height <= x.shape[1] and left + width <= x.shape[2]
    if not height or not width or not ends:
        what = f"the part {(top, left, height, width)} of {list(x.shape[1:3])} pixels"
        raise invalid(node, graph, what, "top, left, height, width inside the frame")
    rows, columns = found.cell
    odd = [n for n in (x.shape[2], left, width) if n % columns]
    odd += [n for n in (x.shape[1], top, height) if n % rows]
    if odd:
        raise invalid(node, graph, f"{odd[0]} pixels of {name}", "an even number")
    if attrs["depth"] not in (1, 3, 4):
        hint = "1 is grey, 3 colours, 4 colours and ones"
        raise invalid(node, graph, f"{attrs['channels']} channels", hint)
    part = [n // found.side for n in (height, width)]
    high, wide = attrs["size"]
    made = Layer(
        found, top // found.side, left // found.side,
        axis_of(resize, part[0], high, rows // found.side),
        axis_of(resize, part[1], wide), int(attrs["depth"]),
    )  # fmt: skip
    if made.even and made.cells > MOST_CELLS:
        what = f"a pixel of {made.cells}, more than {MOST_CELLS}"
        raise invalid(node, graph, what, "a smaller part, or resize 'bilinear'")
    return made


def infer_image(node: Node, graph: Graph) -> Types:
    """attrs format, crop (top, left, height, width), size (height, width), resize,
    depth. Shapes  x uint8[N, H, W, bytes]  y int8[N, height, width, channels];
    table int8[colours, 256]: of each value of a colour what is told
    """
    made = layer_of(node, graph)
    table = optional(node, graph, 1)
    if table is not None:
        must_have_type(node, graph, table, DType.INT8)
        must_have_shape(node, graph, table, (min(made.channels, 3), 256))
    shape = (operand(node, graph, 0).shape[0], *node.attrs["size"], made.channels)
    return ((shape, DType.INT8),)


# ---- numpy -------------------------------------------------------------------------


def _parts(x: Array, layer: Layer) -> Ints:
    """The parts of all pixels of frames: [N, H, W, parts].

    Shapes  x uint8[N, H, W, bytes]
    """
    wide, found = x.astype(np.int64), layer.format
    match found.kind:
        case "rgb888":
            return wide[..., list(found.places)]
        case "rgb565":
            low, high = (wide[..., n] for n in found.places)
            both = high << 8 | low
            return np.stack([both >> 11, both >> 5 & 63, both & 31], -1)
        case "yuv":
            pairs = wide.reshape(*x.shape[:2], -1, 4)
            at, *others = found.places
            y = np.stack([pairs[..., at], pairs[..., at + 2]], -1)
            parts = [y.reshape(x.shape[:3])]
            parts += [np.repeat(pairs[..., n], 2, -1) for n in others]
            return np.stack(parts[: len(layer.parts)], -1)
        case "bayer" | "mosaic":
            cells = [wide[:, r::2, c::2, 0] for r in (0, 1) for c in (0, 1)]
            red, blue = found.places
            greens = [n for n in range(4) if n not in found.places]
            both = cells[greens[0]] + cells[greens[1]]
            made = np.stack([cells[red], both, cells[blue]], -1)
            if found.kind == "bayer":
                return made
            made = np.repeat(np.repeat(made, 2, 1), 2, 2)
            for n in greens:  # has its own
                made[:, n // 2 :: 2, n % 2 :: 2, 1] = 2 * cells[n]
            return made
    return wide


def _colours(parts: Ints, layer: Layer) -> Ints:
    """Red, green and blue, or grey, from 0 to 255, of parts from 0 to 255."""
    kind = layer.format.kind
    if kind == "yuv":
        y0, scale, red, green_u, green_v, blue = layer.format.matrix
        y = (parts[..., :1] - y0) * scale + 128
        if not layer.grey:
            u, v = parts[..., 1:2] - 128, parts[..., 2:] - 128
            added = [red * v, green_u * u + green_v * v, blue * u]
            y = y + np.concatenate(added, -1)
        held: Ints = np.clip(y >> 8, 0, 255)
        return held
    if kind == "grey":
        return parts if layer.grey else np.repeat(parts, 3, -1)
    if not layer.grey:
        return parts
    luma: Ints = (parts @ np.asarray(LUMA) + 128) >> 8
    return luma[..., None]


def _places(axis: Axis, first: int, made: int) -> Ints:
    """[made, taps] the numbers that each of an axis is made of."""
    groups = np.arange(made // axis.made)[:, None] * axis.given
    firsts = (first + groups + axis.firsts).reshape(-1, 1)
    return np.asarray(firsts + np.arange(axis.taps))


def image(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning."""
    layer = layer_of(node, graph)
    height, width = node.attrs["size"]
    pixels = _parts(value(values, 0), layer)
    rows = _places(layer.rows, layer.top, height)
    columns = _places(layer.columns, layer.left, width)
    across = np.tile(layer.columns.weights, (width // layer.columns.made, 1))
    down = np.tile(layer.rows.weights, (height // layer.rows.made, 1))
    total = np.zeros((len(pixels), height, width, pixels.shape[-1]), np.int64)
    for i in range(layer.rows.taps):
        for j in range(layer.columns.taps):
            found = pixels[:, rows[:, i, None], columns[:, j]]
            if not layer.even:
                found = found * (down[:, i, None] * across[:, j])[..., None]
            total += found
    total = total if layer.even else total >> TAP_BITS
    held = (total * np.asarray(layer.factors) + (1 << (BITS - 1))) >> BITS
    made = _colours(held, layer)
    table = values[1] if len(values) > 1 else None
    if table is None:
        made = made - 128
    else:
        made = np.stack([row[made[..., n]] for n, row in enumerate(table)], -1)
    if layer.channels == 4:
        ones = np.full((*made.shape[:-1], 1), ONES - 128)
        made = np.concatenate([made, ones], -1)
    return (made.astype(np.int8),)

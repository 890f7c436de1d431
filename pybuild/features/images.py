"""The front of a net that sees: a camera's bytes to pixels, and the same in numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, fitting
from pybuild.ir.graph import Graph, Node, Quant, Tensor, verify
from pybuild.ops.sensors.image import FORMATS, image, layer_of

LINES, IMAGE = "lines", "image"
# real = (q + 128) / 255: what a colour is, from 0 to 1
PIXELS = Quant((1 / 255,), (-128,))
Numbers = float | Sequence[float]


class Images:
    """A graph that takes a frame, line by line or whole, and gives a net's picture.

    graph   input `lines` uint8[1, height, width, bytes], output `image` int8[1, h, w,
            channels], real = (q + 128) / 255. pybuild.build(images.graph) compiles it
    mean, std  of each colour, from 0 to 1: a net is given (colour - mean) / std
    """

    def __init__(
        self, graph: Graph, mean: tuple[float, ...], std: tuple[float, ...]
    ) -> None:
        self.graph, self.mean, self.std = graph, mean, std
        self.frame = graph.tensor(LINES).shape[1:]
        self.shape = graph.tensor(IMAGE).shape[1:]

    def __repr__(self) -> str:
        node = self.graph.nodes[0]
        camera = "x".join(map(str, self.frame[1::-1]))
        height, width, channels = self.shape
        made = f"{width}x{height}, {channels} channels"
        return f"Images({node.attrs['format']} {camera} -> {made})"

    def __call__(self, frames: Any) -> Array:
        """Pictures of whole frames, with the bits of the device.

        frames  uint8[.., height, width, bytes], or the bytes of each line flat
        Shapes  int8[.., h, w, channels]
        Errors  BuildError for another type or shape
        """
        given = np.asarray(frames)
        lines, size = self.frame[0], math.prod(self.frame[1:])
        flat = given.shape[-2:] == (lines, size)
        if given.dtype != np.uint8 or not (flat or given.shape[-3:] == self.frame):
            what = f"frames are {given.dtype.name}{list(given.shape)}"
            raise BuildError(self.graph.name, what, f"uint8[.., {lines}, {size}]")
        before = given.shape[: -2 if flat else -3]
        node, made = self.graph.nodes[0], list[Array]()
        for frame in given.reshape(-1, 1, *self.frame):
            made += image(node, self.graph, [frame])
        whole = np.concatenate(made) if made else np.zeros((0, *self.shape), np.int8)
        return whole.reshape(*before, *self.shape)

    def real(self, frames: Any) -> Array:
        """The same as the real numbers that a net is trained on: (colour - mean) / std,
        float32[.., h, w, channels]; a channel of ones stays.
        """
        colours = (self(frames).astype(np.float32) + 128) / 255
        count = len(self.mean)
        told = (colours[..., :count] - self.mean) / self.std
        made = np.concatenate([told, colours[..., count:]], -1)
        return made.astype(np.float32)

    @property
    def plain(self) -> Images:
        """The same for a net that takes colours as they are, see pybuild.normalised."""
        return Images(self.graph, (0.0,) * len(self.mean), (1.0,) * len(self.mean))

    def for_net(self, quant: Quant | None) -> Graph:
        """The same graph, whose output is in the integers of a net's input: by a table
        of each colour where these are others than the colour's own.

        Rounding  to nearest in float64, ties to even; held within int8
        """
        quant = quant or PIXELS
        values = np.arange(256) / 255
        table = np.stack(
            [
                np.clip(
                    np.rint((values - mean) / std / quant.scale[0])
                    + quant.zero_point[0], -128, 127,
                )
                for mean, std in zip(self.mean, self.std, strict=True)
            ]
        ).astype(np.int8)  # fmt: skip
        if (table == np.arange(-128, 128)).all():
            return self.graph
        (node,) = self.graph.nodes
        tensor = Tensor("colours", table.shape, DType.INT8)
        image = self.graph.tensor(IMAGE)
        return Graph(
            self.graph.name, self.graph.source,
            (Node(node.op, node.name, (LINES, "colours"), node.outputs, node.attrs),),
            {**self.graph.tensors, "colours": tensor,
             IMAGE: Tensor(IMAGE, image.shape, DType.INT8, quant)},
            (LINES,), (IMAGE,), {"colours": table},
        )  # fmt: skip


def images(
    format: str,
    width: int,
    height: int,
    size: Sequence[int],
    *,
    crop: Sequence[int] | None = None,
    resize: str = "bilinear",
    colours: int = 3,
    ones: bool = False,
    mean: Numbers = 0.0,
    std: Numbers = 1.0,
    name: str = "camera",
) -> Images:
    """A camera's frames as pictures of a net, in integers.

    format   "rgb565" and others of pybuild.ops.sensors.image.FORMATS
    size     (height, width) of the picture; crop: (top, left, height, width) of the
             frame, None: all of it
    resize   "bilinear": between the nearest pixels, "box": the mean of all
    colours  3, or 1: grey
    ones     a fourth channel that is 1 everywhere, see pybuild.normalised
    mean, std  of all colours or of each, where a colour is from 0 to 1
    Units    pixels of the camera; bayer_rggb: a cell of 2x2 makes one pixel before
             `size`, bayer_rggb_full: four
    Errors   BuildError for what does not fit
    """
    if format not in FORMATS:
        what = f"the format '{format}' does not exist"
        raise BuildError(name, what, fitting(format, FORMATS))
    shape = (1, height, width, FORMATS[format].bytes)
    part = tuple(int(n) for n in crop or (0, 0, height, width))
    goal = tuple(int(n) for n in size)
    mean, std = (_each(name, n, colours) for n in (mean, std))
    if len(part) != 4 or len(goal) != 2 or min(*part, *goal, *shape) < 0:
        raise BuildError(name, f"crop {part}, size {goal}", "4 and 2 numbers of pixels")
    known = colours == 3 or (colours == 1 and not ones)
    if min(goal) < 1 or min(std) <= 0 or not known:
        what = f"size {goal}, std {std}, {colours} colours, ones {ones}"
        raise BuildError(name, what, "sizes from 1, std above 0, 1 or 3 colours")
    depth = colours + ones
    attrs = {"format": format, "crop": part, "size": goal, "resize": resize}
    node = Node("image", IMAGE, (LINES,), (IMAGE,), {**attrs, "depth": depth})
    made = Tensor(IMAGE, (1, *goal, depth), DType.INT8, PIXELS)
    tensors = {LINES: Tensor(LINES, shape, DType.UINT8), IMAGE: made}
    graph = Graph(name, name, (node,), tensors, (LINES,), (IMAGE,), {})
    layer_of(node, graph)
    verify(graph)
    return Images(graph, mean, std)


def _each(name: str, given: Numbers, colours: int) -> tuple[float, ...]:
    row = given if isinstance(given, Sequence) else (given,) * colours
    numbers = tuple(map(float, row))
    if len(numbers) != colours or not all(map(math.isfinite, numbers)):
        raise BuildError(name, f"{numbers} of {colours} colours")
    return numbers

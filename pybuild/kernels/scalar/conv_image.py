"""Convolutions of which a call makes all rows, on cores that multiply one by one: taps
on padding are not products. For small images, of whose windows padding is a good part.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import RowAccess
from pybuild.kernels.layers.image import Image, image_of, whole_images
from pybuild.kernels.scalar.conv_layer import MOST_PRODUCTS, Layer
from pybuild.targets.target import Target

_TURNS = (8, 7, 6, 5, 4, 3, 2, 1)  # taps in one
_GAINS = 0.95  # of a row a call
_COPIED = 3  # instructions of a byte that is copied into the patch


def image_layer(
    usual: Layer, node: Node, graph: Graph, target: Target, most: tuple[int, int]
) -> tuple[Layer, tuple[RowAccess, RowAccess], tuple[int, int]] | None:
    """The block that fits best, what it writes and reads, and images and bands; None:
    it takes as much as what rows take, or no turn divides a row of a window.

    most  estimated instructions of all rows of an image, and bytes of their scratch
    """
    w = usual.window
    image = image_of(node, graph)
    (spent, scratch), padded = most, w.padded or image.padded(w.kernel_h)
    across = Image(w.width, w.out_width, w.stride_w, w.left)
    met = min(*image.inside(w.kernel_h), *across.inside(w.kernel_w)) > 0
    if not (padded and met) or w.groups > 1 or w.dilated or usual.unsigned:
        return None
    layers = []
    for channels, pixels in target.sums:
        one = replace(usual, channels=channels, pixels=pixels, apart=False, image=image)
        taps = w.channels if one.skips_columns else w.run
        able = [n for n in _TURNS if taps % n == 0]
        able = [n for n in able if n * channels * pixels <= MOST_PRODUCTS]
        if channels <= w.group_outputs and pixels <= w.out_width and able:
            layers.append(replace(one, turn=able[0]))
    layers = [one for one in layers if one.scratch <= scratch]
    best = min(layers, key=cost, default=None)
    if best is None or cost(best) > _GAINS * spent:
        return None
    images = graph.tensor(node.output).shape[0]
    return best, whole_images(node, graph), (images, 1)


def cost(layer: Layer) -> int:
    """Estimated instructions of an image: of taps that lie in it, ends, the patch."""
    w, image = layer.window, layer.image
    assert image is not None
    blocks = -(-w.out_width // layer.pixels)
    rows, columns = sum(image.inside(w.kernel_h)), blocks * w.kernel_w
    if layer.across is not None:
        columns = sum(layer.across.inside(w.kernel_w))
    taps, products = rows * columns * w.channels, layer.channels * layer.pixels
    tap = layer.channels + layer.pixels + 2 * products
    ends = image.out_height * blocks * (16 * products + 8 * layer.channels + 20)
    summed = layer.blocks * (taps * tap + 4 * taps // layer.unrolled + ends)
    return summed + _COPIED * taps * layer.pixels

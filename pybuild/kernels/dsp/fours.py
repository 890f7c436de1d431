"""int8 and int16 depthwise convolution, four channels side by side (SMLABB).

A word holds two channels of a pixel: what is widened costs no packing, so a window
that slides by two, rows of a few pixels and int16 take less than with two columns a
word (depthwise.py).
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.dsp.fours_code import kernel
from pybuild.kernels.dsp.fours_end import FourEnds, four_tables, row_words
from pybuild.kernels.dsp.fours_layer import Layer
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.epilogues.by_channel import exact_share, exact_tables
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.depthwise import GROUP, MOST_SCRATCH, UNROLLED
from pybuild.kernels.layers.image import image_of, whole_images
from pybuild.kernels.layers.known_sums import ended_sums
from pybuild.kernels.layers.sums16 import sums16, takes_int16
from pybuild.kernels.layers.weights import block_starts, kernels_of, takes_pairs
from pybuild.targets.target import Target

_MOST = 2**31 - 1
# instructions of the ends of four channels, by the words of their rows
_END = {2: 22, 3: 42, 4: 36}


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [C, taps] as words: of each four channels, of each tap, their bytes; of
    int16 the second two of them between, as its pixels have them."""
    if layer.across:
        rows, columns = layer.window.kernel_w, layer.window.kernel_h
        turned = kernels.reshape(len(kernels), rows, columns).transpose(0, 2, 1)
        kernels = turned.reshape(kernels.shape)
    groups = [kernels[s:][:GROUP] for s in block_starts(len(kernels), GROUP)]
    fours = np.stack(groups).transpose(0, 2, 1).astype(np.int8)
    if layer.elem is DType.INT16:
        fours = fours[:, :, (0, 2, 1, 3)]
    words = np.ascontiguousarray(fours).view("<i4").reshape(-1)
    order = "of each four channels, of each tap: a word of their bytes"
    return Packed("weights", words, order=order)


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one of whole images."""
    del rows
    w = window
    if w.channels < GROUP or w.out_channels > w.channels or w.dilation_h > 1:
        return []
    kernels = kernels_of(node, graph)
    ended = _ended(node, graph, target, kernels)
    if ended is None:
        return []
    epilogue, bias, x_zero = ended
    image, (out, source) = image_of(node, graph), whole_images(node, graph)
    # a sum that is centred is that of an image of zero points where it is to be added
    added = x_zero * kernels.sum(1, dtype=np.int64)
    found = []
    for whole in (False, True):
        layer = Layer(window, epilogue, x_zero, image, whole).shorter
        if not (_takes_less(layer) if whole else _in_ring(layer)):
            continue
        if whole and layer.scratch > MOST_SCRATCH:
            continue
        ends = _ends(epilogue, bias + added if layer.centred else bias)
        k = kernel(layer)
        found.append(
            Candidate(
                func=k.finish(),
                args=tuple(k.values),
                outputs=(out,),
                inputs=(source,),
                constants=(pack(layer, kernels), *ends),
                images=calls[0],
                bands=1,
                scratch=layer.scratch,
                cost=calls[0] * _cost(layer),
                rare=exact_share(epilogue),
            )
        )
    return found


def _ended(
    node: Node, graph: Graph, target: Target, kernels: Array
) -> tuple[FourEnds, Array, int] | None:
    """How sums end, the bias of each channel, and the zero point of the input; None:
    sums may not be of words.

    Shapes  kernels [C, taps]
    """
    most = int(np.abs(kernels.astype(np.int64)).sum(1).max())
    if takes_int16(node, graph):
        if "dsp" not in target.features or most << 15 > _MOST:
            return None
        wide, bias, x_zero = sums16(node, graph, kernels, target)
        return None if DType.of(bias) is not DType.INT32 else (wide, bias, x_zero)
    if not takes_pairs(node, graph, target) or 256 * 256 * most > _MOST:
        return None
    sums, epilogue = ended_sums(node, graph, kernels)
    return epilogue, sums.bias, sums.made.x_zero


def _ends(epilogue: FourEnds, bias: Array) -> tuple[Packed, ...]:
    ends = four_tables(epilogue, bias)
    return ends if isinstance(epilogue, End16) else ends + exact_tables(epilogue, bias)


def _takes_less(layer: Layer) -> bool:
    """True if an image may take less than with two columns a word: not where such words
    are shared by all pixels of a short row at once."""
    at_once = layer.window.stride_w == 1 and layer.window.out_width in (4, 5)
    return layer.elem is DType.INT16 or layer.across or not at_once


def _in_ring(layer: Layer) -> bool:
    """True if a ring of rows takes less than with two columns a word."""
    return layer.elem is DType.INT16 or layer.taps > UNROLLED


def _cost(layer: Layer) -> int:
    """Estimated instructions of an image: of each four channels, of their weights,
    of rows that are widened, and of outputs."""
    w, image = layer.window, layer.image
    read = image.out_height * image.stride_h if not layer.whole else layer.rows
    row, line, twice = (12, 14, 1) if layer.whole else (50, 60, 2)
    widened = read * (6 * w.columns + row)
    cheap = isinstance(layer.epilogue, Affine)
    end = _END[row_words(layer.epilogue) if cheap else 2]
    made = image.out_height * (line + w.out_width * (6 * layer.taps + end))
    weights = 60 + 5 * twice * layer.taps
    return -(-w.channels // GROUP) * (weights + widened + made)

"""Pictures of a camera joined in front of a net, decisions behind it: one graph."""

from __future__ import annotations

from dataclasses import replace

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.features.chain import Joining
from pybuild.features.decision import Decision
from pybuild.features.images import IMAGE, LINES, PIXELS, Images
from pybuild.features.normalise import folded
from pybuild.ir.graph import Graph, Quant, Tensor


def with_camera(images: Images, net: Graph, decision: Decision | None = None) -> Graph:
    """One graph: a frame is a run.

    net     one input: a picture, int8, uint8 or float32, colours first or last; of
            float32 with mean and std these are folded into its weights
    Errors  BuildError where they do not fit
    """
    if len(net.inputs) != 1:
        what = f"has {len(net.inputs)} inputs, a camera is one"
        raise BuildError(net.source, what, "a net with one input")
    plain = not any(images.mean) and set(images.std) == {1.0}
    if net.tensor(net.inputs[0]).dtype is DType.FLOAT32 and not plain:
        net = folded(net, images.mean, images.std)
    want, joining = net.tensor(net.inputs[0]), Joining(net)
    is_float = want.dtype is DType.FLOAT32
    front = images.graph if is_float else images.for_net(_quant(net, want))
    joining.tensors |= front.tensors
    joining.constants |= front.constants
    joining.nodes += front.nodes
    joining.names[want.name] = _input(joining, net, want)
    outputs = tuple(joining.add(net))
    if decision is not None:
        outputs = (*joining.decided(outputs, decision), *outputs)
    return joining.graph(outputs, LINES)


def _quant(net: Graph, want: Tensor) -> Quant:
    """The quantisation of an int8 picture that fits the net's input."""
    match want.dtype:
        case DType.INT8:
            return want.quant or PIXELS
        case DType.UINT8:
            quant = want.quant or Quant(PIXELS.scale, (0,))
            return Quant(quant.scale, (quant.zero_point[0] - 128,))
    what = f"input '{want.name}' is {want.dtype.value}"
    raise BuildError(net.source, what, "int8, uint8 or float32")


def _input(joining: Joining, net: Graph, want: Tensor) -> str:
    """The picture as the net's input has it, under its name."""
    made, have = IMAGE, joining.tensors[IMAGE]
    if want.dtype is DType.FLOAT32:
        like = replace(have, dtype=DType.FLOAT32, quant=None)
        made = joining.op("dequantize", "real", (made,), like)
    elif want.dtype is DType.UINT8:
        like = replace(have, dtype=DType.UINT8, quant=want.quant)
        made = joining.op("quantize", "unsigned", (made,), like)
    have = joining.tensors[made]
    _, height, width, channels = have.shape
    plain = tuple(n for n in want.shape if n != 1)
    if want.shape[-3:] == (channels, height, width) != have.shape[1:]:
        like = replace(have, shape=(1, channels, height, width))
        made = joining.op("transpose", "turned", (made,), like, perm=(0, 3, 1, 2))
    elif plain != tuple(n for n in have.shape if n != 1) and plain != (have.size,):
        what = f"input '{want.name}' is {list(want.shape)}, pictures are "
        raise BuildError(net.source, f"{what}{list(have.shape)}", _hint(want, have))
    like = replace(want, quant=joining.tensors[made].quant or want.quant)
    return joining.op("reshape", want.name, (made,), like)


def _hint(want: Tensor, have: Tensor) -> str:
    if want.shape[-1] == 4 and have.shape[-1] == 3:
        return "images(..., ones=True): the net has a channel of ones"
    return "size=(height, width) and colours= of the net"

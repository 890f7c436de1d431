"""Conv and pools: NCHW in the file, NHWC in the graph, with a transpose on each side. A
pass folds the transposes. One spatial axis becomes two, the second of size 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.reader.op import Op
from pybuild.ir.graph import Attr
from pybuild.ops.shape import backwards
from pybuild.records import dataclass

Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """A window that slides over rows and columns; pads are top, left, bottom, right."""

    kernel: Pair
    strides: Pair
    dilations: Pair
    pads: tuple[int, int, int, int]


def window(op: Op, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> Window:
    """The window of a node over an input with these spatial sizes."""
    rank = len(sizes)
    ones = (1,) * rank
    strides = op.integers("strides", ones)
    dilations = op.integers("dilations", ones)
    pads = op.integers("pads", (0,) * (2 * rank))
    named = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    for name, values in named.items():
        if len(values) != rank or min(values) < 1:
            what = f"{name} {list(values)} do not fit {rank} spatial axes"
            raise op.invalid(what)
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    auto = str(op.attrs.get("auto_pad", "NOTSET"))
    if auto != "NOTSET":
        pads = _auto_pads(op, auto, sizes, strides, reach)
    if len(pads) != 2 * rank or min(pads) < 0:
        raise op.invalid(f"pads {list(pads)} are not supported", "use a Slice")
    if op.integer("ceil_mode", 0):
        pads = _ceil_pads(sizes, strides, reach, pads)
    before, after = pads[:rank], pads[rank:]
    if rank == 1:
        return Window(
            (kernel[0], 1), (strides[0], 1), (dilations[0], 1),
            (before[0], 0, after[0], 0),
        )  # fmt: skip
    return Window(
        (kernel[0], kernel[1]), (strides[0], strides[1]),
        (dilations[0], dilations[1]), (*before, *after),  # type: ignore[arg-type]
    )  # fmt: skip


@dataclass(frozen=True)
class TransposedWindow:
    """A window that slides over an input with zeros inserted between its rows.

    around  rows of zeros before and after the input, for each axis; negative: cut off
            that many rows of the expanded input
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    around: tuple[Pair, ...]


def transposed_window(
    op: Op, sizes: tuple[int, ...], kernel: tuple[int, ...]
) -> TransposedWindow:
    """Return the window of a ConvTranspose for these spatial input sizes.

    Errors  BuildError if its output would be empty
    """
    rank = len(sizes)
    ones, zeros = (1,) * rank, (0,) * rank
    strides, dilations = op.integers("strides", ones), op.integers("dilations", ones)
    more = op.integers("output_padding", zeros)
    flat = op.integers("pads", (*zeros, *zeros))
    auto = str(op.attrs.get("auto_pad", "NOTSET"))
    wanted = op.integers("output_shape", ())[-rank:]
    if not wanted and auto.startswith("SAME"):
        wanted = tuple(s * t for s, t in zip(sizes, strides, strict=True))
    around, full = [], []
    for i in range(rank):
        pads = flat[i], flat[rank + i]
        reach = (kernel[i] - 1) * dilations[i]
        whole = strides[i] * (sizes[i] - 1) + more[i] + reach + 1
        if wanted:
            pads = _pads_for(whole - wanted[i], auto)
        around.append((reach - pads[0], reach - pads[1] + more[i]))
        full.append(whole - sum(pads))
    if min(full) < 1:
        what = f"nothing is left of its output: it would be {full} in size"
        raise op.invalid(what, "smaller pads")
    return TransposedWindow(strides, dilations, tuple(around))


def _pads_for(total: int, auto: str) -> Pair:
    """Divide the rows to be cut off into those before and those after."""
    if total < 0:  # what is more than there is comes last, as ONNX Runtime has it
        return 0, total
    half = total // 2
    upper = auto == "SAME_UPPER"
    return (half, total - half) if upper else (total - half, half)


def _auto_pads(
    op: Op,
    auto: str,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    reach: tuple[int, ...],
) -> tuple[int, ...]:
    if auto == "VALID":
        return (0,) * (2 * len(sizes))
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise op.invalid(f"auto_pad {auto} does not exist")
    before, after = [], []
    for size, stride, span in zip(sizes, strides, reach, strict=True):
        total = max((math.ceil(size / stride) - 1) * stride + span - size, 0)
        less, more = total // 2, total - total // 2
        before.append(less if auto == "SAME_UPPER" else more)
        after.append(more if auto == "SAME_UPPER" else less)
    return (*before, *after)


def _ceil_pads(
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    reach: tuple[int, ...],
    pads: tuple[int, ...],
) -> tuple[int, ...]:
    """Express ceil_mode as more padding at the end; a window must start on input or on
    padding before it."""
    rank = len(sizes)
    after = []
    for i, (size, stride, span) in enumerate(zip(sizes, strides, reach, strict=True)):
        room = size + pads[i] + pads[rank + i] - span
        count = math.ceil(room / stride) + 1
        if (count - 1) * stride >= size + pads[i]:
            count -= 1
        missing = (count - 1) * stride - room
        after.append(pads[rank + i] + max(missing, 0))
    return (*pads[:rank], *after)


def to_rows(draft: Draft, op: Op, x: str) -> str:
    """x[N,C,H,W] or x[N,C,L] as [N,H,W,C]; L is H."""
    shape = draft.tensor(x).shape
    name = draft.fresh(f"{x}.nhwc")
    if len(shape) == 4:
        return draft.emit("transpose", name, [x], name, {"perm": (0, 2, 3, 1)})
    if len(shape) != 3:
        what = f"its input has shape {list(shape)}: only one or two spatial axes "
        raise op.invalid(what + "are supported")
    draft.emit("transpose", name, [x], name, {"perm": (0, 2, 1)})
    rows = draft.fresh(f"{x}.rows")
    n, c, length = shape
    dtype = draft.tensor(x).dtype
    return draft.emit(
        "reshape", rows, [name], rows, shape=(n, length, 1, c), dtype=dtype
    )


def from_rows(draft: Draft, op: Op, made: str, rank: int) -> None:
    """Set the node's output from [N,H,W,C], transposed back to the file's order."""
    out = op.output
    if rank == 4:
        draft.emit("transpose", out, [made], out, {"perm": (0, 3, 1, 2)})
        return
    tensor = draft.tensor(made)
    n, length, _, c = tensor.shape
    name = draft.fresh(f"{out}.nlc")
    draft.emit("reshape", name, [made], name, shape=(n, length, c), dtype=tensor.dtype)
    draft.emit("transpose", out, [name], out, {"perm": (0, 2, 1)})


def arranged_conv(draft: Draft, op: Op, x: str) -> tuple[str, dict[str, Attr], str]:
    """Return conv2d, or depthwise_conv2d if every group is one channel, with its
    attributes and its weights in the order it needs."""
    w = op.input(1)
    shape, weights = draft.tensor(x).shape, draft.shape(w)
    rank, group = len(shape), op.integer("group", 1)
    if rank not in (3, 4) or len(weights) != rank:
        what = f"input {list(shape)} and weights {list(weights)}: only one or two "
        raise op.invalid(what + "spatial axes are supported")
    outs, depth = weights[:2]
    moves = window(op, shape[2:], op.integers("kernel_shape", weights[2:]))
    if op.integers("kernel_shape", weights[2:]) != weights[2:]:
        raise op.invalid(f"kernel_shape does not fit weights {list(weights)}")
    attrs: dict[str, Attr] = {
        "strides": moves.strides, "dilations": moves.dilations, "pads": moves.pads,
    }  # fmt: skip
    spatial = tuple(range(2, rank))
    perm: tuple[int, ...]
    target: tuple[int, ...]
    if group > 1 and group == shape[1] and depth == 1 and outs % group == 0:
        kind, perm, target = "depthwise_conv2d", (*spatial, 0, 1), (*moves.kernel, outs)
    else:
        kind, perm, target = "conv2d", (0, *spatial, 1), (outs, *moves.kernel, depth)
        attrs["groups"] = group
    return kind, attrs, draft.arranged(op, w, perm, target, "weight")


def conv(draft: Draft, op: Op) -> None:
    """Emit Conv as a layer over [N,H,W,C]."""
    x, bias = op.input(0), op.input(2)
    kind, attrs, kernel = arranged_conv(draft, op, x)
    rows = to_rows(draft, op, x)
    inputs = [rows, kernel, bias] if bias else [rows, kernel]
    made = draft.emit(kind, op.name, inputs, draft.fresh(f"{op.output}.nhwc"), attrs)
    from_rows(draft, op, made, len(draft.tensor(x).shape))


def conv_transpose(draft: Draft, op: Op) -> None:
    """Emit ConvTranspose as a convolution with reversed filters over the input with
    zeros inserted between its rows and columns."""
    x, w, bias = op.input(0), op.input(1), op.input(2)
    shape, weights = draft.tensor(x).shape, draft.shape(w)
    rank, group = len(shape), op.integer("group", 1)
    if rank not in (3, 4) or len(weights) != rank:
        raise op.invalid("only one or two spatial axes are supported")
    given = transposed_window(op, shape[2:], weights[2:])
    depth, outs = weights[:2]
    spatial = tuple(range(2, rank))
    kernel = (*weights[2:], 1)[:2]
    attrs: dict[str, Attr] = {
        "strides": (1, 1), "dilations": (*given.dilations, 1)[:2],
        "input_dilations": (*given.strides, 1)[:2],
    }  # fmt: skip
    if group == 1:
        kind, perm, target = "conv2d", (1, *spatial, 0), (outs, *kernel, depth)
        attrs["groups"], window_axes = 1, (1, 2)
    elif group == depth and outs == 1:
        kind, perm, target = "depthwise_conv2d", (*spatial, 0, 1), (*kernel, depth)
        window_axes = (0, 1)
    else:
        raise op.invalid("groups of several channels are not supported")
    name = draft.arranged(op, w, perm, target, "weight")
    name = _reversed(draft, name, window_axes)
    (top, bottom), (left, right) = (*given.around, (0, 0))[:2]
    attrs["pads"] = (top, left, bottom, right)
    rows = to_rows(draft, op, x)
    inputs = [rows, name, bias] if bias else [rows, name]
    made = draft.emit(kind, op.name, inputs, draft.fresh(f"{op.output}.nhwc"), attrs)
    from_rows(draft, op, made, rank)


def _reversed(draft: Draft, name: str, axes: Sequence[int]) -> str:
    """Return arranged weights reversed along some axes; their scales follow."""
    whole = draft.sources.get(name, name)
    tensor = draft.tensor(whole)
    made, attrs = draft.fresh(f"{whole}.reversed"), backwards(tensor.shape, axes)
    draft.emit("slice", made, [whole], made, attrs, quant=tensor.quant)
    return draft.as_read(name, made, "reversed")


def pool(draft: Draft, op: Op, added: bool = False) -> None:
    """AveragePool, MaxPool.

    added  whether count_include_pad counts the padding that ceil_mode adds
    """
    x = op.input(0)
    shape = draft.tensor(x).shape
    moves = window(op, shape[2:], op.integers("kernel_shape", ()))
    if max(moves.dilations) > 1:
        raise op.invalid(f"dilations {list(moves.dilations)} are not supported")
    if len([name for name in op.outputs if name]) > 1:
        raise op.invalid("the output of indices is not supported")
    attrs: dict[str, object] = {
        "kernel": moves.kernel, "strides": moves.strides, "pads": moves.pads,
    }  # fmt: skip
    kind = "max_pool2d" if op.kind == "MaxPool" else "avg_pool2d"
    if kind == "avg_pool2d":
        include = bool(op.integer("count_include_pad", 0)) and any(moves.pads)
        if include and op.integer("ceil_mode", 0) and not added:
            raise op.invalid("count_include_pad with ceil_mode is not supported")
        attrs["count_include_pad"] = include
    rows = to_rows(draft, op, x)
    made = draft.emit(kind, op.name, [rows], draft.fresh(f"{op.output}.nhwc"), attrs)
    from_rows(draft, op, made, len(shape))


def global_average(draft: Draft, op: Op) -> None:
    """GlobalAveragePool: the mean over the spatial axes."""
    axes = tuple(range(2, len(draft.tensor(op.input(0)).shape)))
    attrs = {"axes": axes, "keepdims": True}
    draft.emit("mean", op.name, [op.input(0)], op.output, attrs)


def global_max(draft: Draft, op: Op) -> None:
    """GlobalMaxPool: a max pool with a window as large as the input."""
    shape = draft.tensor(op.input(0)).shape
    rows = to_rows(draft, op, op.input(0))
    kernel = draft.tensor(rows).shape[1:3]
    attrs = {"kernel": kernel, "strides": (1, 1), "pads": (0, 0, 0, 0)}
    made = draft.fresh(f"{op.output}.nhwc")
    draft.emit("max_pool2d", op.name, [rows], made, attrs)
    from_rows(draft, op, made, len(shape))

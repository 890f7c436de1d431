"""The signature of each operator: how many inputs, which attributes of which kind.

For graphs that come from outside as they are; whether the values make sense together
is for infer() of the operator's family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field

from pybuild.dtype import DType
from pybuild.ir.graph import Attr, Node
from pybuild.ops.base.function import CALL, Function
from pybuild.records import dataclass

ROUNDINGS = ("double", "away", "single", "even", "wide")
# how quantize_dynamic finds a scale and a zero point
RANGE_RULES = ("symmetric", "asymmetric", "onnx", "torch")
ANY_NUMBER = 1 << 30


@dataclass(frozen=True)
class Kind:
    """The kind of value of an attribute; `text` completes "must be ..."."""

    text: str
    fits: Callable[[Attr], bool]


@dataclass(frozen=True)
class Signature:
    """Inputs from `least` to `most`; attributes that must or may be there.

    packed  inputs that kernels arrange for themselves before any run: constants or
            parameters, never computed
    elementwise  an element of the output is a function of that element of each input:
                 passes move the operator, and look through it (UNARY, BINARY)
    """

    least: int
    most: int
    required: Mapping[str, Kind] = field(default_factory=dict)
    optional: Mapping[str, Kind] = field(default_factory=dict)
    packed: tuple[int, ...] = ()
    elementwise: bool = False


def _is_int(value: Attr) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Attr) -> bool:
    return _is_int(value) or (isinstance(value, float) and not math.isnan(value))


def _are_ints(value: Attr) -> bool:
    return isinstance(value, tuple) and all(_is_int(v) for v in value)


def _is_clamp(value: Attr) -> bool:
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    return all(v is None or _is_number(v) for v in value)


def _are_pairs(value: Attr) -> bool:
    if not isinstance(value, tuple):
        return False
    return all(_are_ints(pair) and len(pair) == 2 and min(pair) >= 0 for pair in value)


def _ints(count: int, least: int) -> Kind:
    text = f"{count} integers from {least}"
    return Kind(text, lambda v: _are_ints(v) and len(v) == count and min(v) >= least)


_INT = Kind("an integer from 0", lambda v: _is_int(v) and v >= 0)
_COUNT = Kind("an integer from 1", lambda v: _is_int(v) and v >= 1)
_NUMBER = Kind("a number", _is_number)
_FLAG = Kind("true or false", lambda v: isinstance(v, bool))
_INTS = Kind("a list of integers", _are_ints)
_PAIRS = Kind("a list of pairs of integers from 0", _are_pairs)
_CLAMP = Kind("two numbers or nulls", _is_clamp)
_ROUNDING = Kind(
    f"one of {', '.join(ROUNDINGS)}",
    lambda v: isinstance(v, str) and v in ROUNDINGS,
)

_FUNCTION = Kind("a function of a library", lambda v: isinstance(v, Function))

_TYPE = Kind("a type", lambda v: v in {kind.value for kind in DType})
_TEXT = Kind("a name", lambda v: isinstance(v, str))
_RANGE_RULE = Kind(
    f"one of {', '.join(RANGE_RULES)}",
    lambda v: isinstance(v, str) and v in RANGE_RULES,
)
_WAYS = Kind(
    "a list of names or pairs of integers",
    lambda v: (
        isinstance(v, tuple)
        and all(isinstance(w, str) or (_are_ints(w) and len(w) == 2) for w in v)
    ),
)
_CLAMPED = {"clamp": _CLAMP}
_WINDOW = {"strides": _ints(2, 1), "pads": _ints(4, 0), **_CLAMPED}
_CONV = {
    **_WINDOW, "dilations": _ints(2, 1), "input_dilations": _ints(2, 1),
    "pads": _ints(4, -(2**31)),
}  # fmt: skip
_SUMMED = {name: kind for name, kind in _CONV.items() if name != "clamp"}
_KERNEL = {"kernel": _ints(2, 1)}
_SIMULATED = {"simulated": _FLAG}
_WEIGHTS = (1, 2)

IGNORE_NAN = "ignore_nan"
# of a quantize that reads an input: it is done when the input is set, before a run
WHEN_SET = "when_set"
# what passes add to any node: a rounding rule; the channels left of the output; that no
# number is NaN
_OF_PASSES = {"rounding": _ROUNDING, "channels": _INTS, IGNORE_NAN: _FLAG}

SIGNATURES: dict[str, Signature] = {
    "conv2d": Signature(2, 3, {}, {**_CONV, "groups": _COUNT}, _WEIGHTS),
    "depthwise_conv2d": Signature(2, 3, {}, _CONV, _WEIGHTS),
    "dense": Signature(2, 3, {}, _CLAMPED, _WEIGHTS),
    # int32 sums of products of int8, and what stands before and behind them
    "quantize_dynamic": Signature(
        1,
        1,
        {"batches": _COUNT, "rule": _RANGE_RULE},
        {"pads": _ints(4, 0), "eps": _NUMBER},
    ),
    "conv2d_sums": Signature(2, 3, {}, _SUMMED | {"groups": _COUNT}, (1,)),
    "depthwise_conv2d_sums": Signature(2, 2, {}, _SUMMED, (1,)),
    "dense_sums": Signature(2, 2, packed=(1,)),
    "scale_sums": Signature(
        3, 6, {"sums_first": _FLAG}, {**_CLAMPED, "axis": _INT}, (2, 3, 5)
    ),
    "add": Signature(2, 2, {}, {**_CLAMPED, "exact": _FLAG}, elementwise=True),
    "sub": Signature(2, 2, {}, {**_CLAMPED, "exact": _FLAG}, elementwise=True),
    "mul": Signature(2, 2, {}, _CLAMPED, elementwise=True),
    # neither rises nor falls with x alone: no pass knows its range
    "prelu": Signature(2, 2),
    "avg_pool2d": Signature(1, 1, _KERNEL, {**_WINDOW, "count_include_pad": _FLAG}),
    "max_pool2d": Signature(1, 1, _KERNEL, _WINDOW),
    "resize_bilinear": Signature(
        1, 1, {"sizes": _ints(2, 1), "corners": _FLAG, "half": _FLAG}
    ),
    "mean": Signature(1, 1, {"axes": _INTS, "keepdims": _FLAG}),
    "softmax": Signature(1, 1, {"axis": _INT, "beta": _NUMBER}),
    "attention": Signature(4, 4, {"scale": _NUMBER}, {"across": _FLAG}),
    "logistic": Signature(1, 1, elementwise=True),
    "tanh": Signature(1, 1, elementwise=True),
    "clip": Signature(1, 1, {}, {**_CLAMPED, "wide": _FLAG}, elementwise=True),
    "leaky_relu": Signature(
        1, 1, {"alpha": _NUMBER}, {"wide": _FLAG}, elementwise=True
    ),
    "pad": Signature(1, 1, {"pads": _PAIRS}, {"value": _NUMBER}),
    "concat": Signature(1, ANY_NUMBER, {"axis": _INT}, _CLAMPED),
    "shift": Signature(2, 2, {"axis": _INT}),
    "reshape": Signature(1, 1),
    "transpose": Signature(1, 1, {"perm": _INTS}),
    "slice": Signature(1, 1, {"begin": _INTS, "end": _INTS, "strides": _INTS}),
    "quantize": Signature(1, 1, {}, {**_SIMULATED, "fixed": _FLAG, WHEN_SET: _FLAG}),
    "dequantize": Signature(1, 1, {}, _SIMULATED),
    "copy": Signature(1, 1),
    "assign": Signature(1, 1),
    "map": Signature(1, 3, {"fn": _TEXT}, {"to": _TYPE, "shape": _INTS}),
    "reduce": Signature(1, 1, {"fn": _TEXT, "axis": _INT}, {"wide": _FLAG}),
    "arg_reduce": Signature(1, 1, {"fn": _TEXT, "axis": _INT, "last": _FLAG}),
    "cumulate": Signature(
        1, 1, {"fn": _TEXT, "axis": _INT, "exclusive": _FLAG, "reverse": _FLAG}
    ),
    "gather": Signature(2, 2, {"axis": _INT}),
    "lookup": Signature(2, 2),
    "scatter": Signature(3, 3, {"join": _TEXT}, {"axis": _INT}),
    "top_k": Signature(1, 1, {"k": _COUNT, "largest": _FLAG}),
    "distinct": Signature(1, 1, {"sorted": _FLAG}),
    "roi_align": Signature(
        3,
        3,
        {"mode": _TEXT, "size": _ints(2, 1), "samples": _INT, "scale": _NUMBER}
        | {"centred": _FLAG},
    ),
    "places": Signature(1, 1, {"count": _COUNT}),
    "lstm": Signature(
        15,
        15,
        {"time_major": _FLAG, "cell_clip": _NUMBER},
        {"hidden_scale": _NUMBER, "hidden_zero": _NUMBER, "reference": _TEXT}
        | {"activation": _TEXT},
        tuple(range(3, 15)),
    ),
    "svdf": Signature(4, 5, {"rank": _COUNT}, _CLAMPED, (2, 3, 4)),
    "suppress": Signature(
        2, 2, {"count": _COUNT, "score": _NUMBER, "overlap": _NUMBER}
    ),
    "matmul": Signature(2, 2, {}, {"transpose_b": _FLAG}),
    "norm": Signature(1, 3, {"epsilon": _NUMBER, "centred": _FLAG}, packed=_WEIGHTS),
    "group_norm": Signature(
        1,
        3,
        {"epsilon": _NUMBER, "centred": _FLAG, "view": _ints(4, 1)},
        _CLAMPED,
    ),
    "conv": Signature(
        2, 2, {"strides": _INTS, "dilations": _INTS, "pads": _PAIRS, "groups": _COUNT}
    ),
    "auto_scale": Signature(1, 1),
    "best_above": Signature(1, 1, {"least": _NUMBER, "ignore": _INTS}),
    "hysteresis": Signature(2, 2, {"high": _NUMBER, "low": _NUMBER, "ignore": _INTS}),
    "moving_average": Signature(2, 2),
    "refractory": Signature(2, 2, {"runs": _INT}),
    "energy": Signature(1, 1, {"start": _INT, "end": _INT}),
    "filter_bank": Signature(6, 6),
    "filter_bank_log": Signature(1, 1, {"correction_bits": _INT, "scale": _INT}),
    "pcan": Signature(3, 3, {"snr_shift": _INT}),
    "image": Signature(
        1,
        2,
        {"format": _TEXT, "crop": _ints(4, 0), "size": _ints(2, 1), "resize": _TEXT}
        | {"depth": _COUNT},
    ),
    "repeat": Signature(
        1,
        ANY_NUMBER,
        {"body": _TEXT, "turns": _COUNT, "reads": _WAYS, "makes": _WAYS},
    ),
    "rfft": Signature(1, 1, {"length": _COUNT, "inverse": _FLAG}, {"halving": _FLAG}),
    "spectral_subtraction": Signature(
        2,
        2,
        {
            "smoothing": _ints(2, 0),
            "one_minus_smoothing": _ints(2, 0),
            "min_signal_remaining": _INT,
            "smoothing_bits": _INT,
            "bits": _INT,
            "clamping": _FLAG,
        },
    ),
    "square_root": Signature(2, 2),
    "window": Signature(2, 2, {"shift": _INT}),
    CALL: Signature(0, ANY_NUMBER, {"function": _FUNCTION, "flat": _FLAG}),
}

# of one input, and of two
UNARY = tuple(
    name for name, one in SIGNATURES.items() if one.elementwise and one.most == 1
)
BINARY = tuple(
    name for name, one in SIGNATURES.items() if one.elementwise and one.most == 2
)


def misfits(node: Node) -> list[str]:
    """The problems in the form of a node of a known operator; [] if there are none."""
    signature = SIGNATURES[node.op]
    found = []
    count = len(node.inputs)
    if not signature.least <= count <= signature.most:
        found.append(f"has {count} inputs, not {_range(signature)}")
    found += [f"has no attribute '{k}'" for k in signature.required - node.attrs.keys()]
    known = {**signature.required, **signature.optional, **_OF_PASSES}
    for name in sorted(node.attrs):
        kind, value = known.get(name), node.attrs[name]
        if kind is None:
            allowed = ", ".join(
                sorted(known.keys() - {"channels", IGNORE_NAN, WHEN_SET})
            )
            found.append(f"has an attribute '{name}'; known are {allowed}")
        elif not kind.fits(value):
            found.append(f"'{name}' is {value!r}, it must be {kind.text}")
    return found


def _range(signature: Signature) -> str:
    least, most = signature.least, signature.most
    if most == ANY_NUMBER:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"

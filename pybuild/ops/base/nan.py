"""The treatment of NaN by each operator: one table, which the pages and tests read.

A new operator has no line here, and a test says so.
"""

from __future__ import annotations

PROPAGATES = "a result is NaN if an element that it is made of is NaN"
MOVES = "elements are handed on as they are"
WHOLE = "has no floats"
CHOSEN = "one of the operands is passed on; the other one may be NaN"
COMPARES = "NaN is not less than, greater than or equal to any number"
INSIDE = "as the operators of its body"
BY_FUNCTION = "as FUNCTION_RULES says of its function"

# operator of the Graph IR -> what it does
RULES: dict[str, str] = {
    "conv2d": PROPAGATES,
    "depthwise_conv2d": PROPAGATES,
    "dense": PROPAGATES,
    "add": PROPAGATES,
    "sub": PROPAGATES,
    "mul": PROPAGATES,
    "prelu": PROPAGATES,
    "avg_pool2d": PROPAGATES,
    "max_pool2d": PROPAGATES,
    "resize_bilinear": PROPAGATES,
    "mean": PROPAGATES,
    "softmax": PROPAGATES,
    "attention": PROPAGATES,
    "logistic": PROPAGATES,
    "tanh": PROPAGATES,
    "clip": PROPAGATES,
    "leaky_relu": PROPAGATES,
    "pad": MOVES,
    "concat": PROPAGATES,
    "shift": MOVES,
    "reshape": MOVES,
    "transpose": MOVES,
    "slice": MOVES,
    "quantize": "NaN is real 0, the zero point; infinity is the end of the type",
    "dequantize": WHOLE,
    "copy": MOVES,
    "assign": MOVES,
    "map": BY_FUNCTION,
    "reduce": PROPAGATES,
    "arg_reduce": "the place of the first NaN (or the last), if there is one",
    "cumulate": PROPAGATES,
    "gather": MOVES,
    "lookup": MOVES,
    "scatter": PROPAGATES,
    "svdf": PROPAGATES,
    "top_k": "NaN is greater than any number",
    "distinct": "NaN is greater than any number, and equal to NaN",
    "roi_align": PROPAGATES,
    "places": WHOLE,
    "lstm": PROPAGATES,
    "suppress": "a box whose score is NaN is never taken",
    "matmul": PROPAGATES,
    "conv": PROPAGATES,
    "quantize_dynamic": "a batch in which a number is NaN or infinite is NaN",
    "conv2d_sums": WHOLE,
    "dense_sums": WHOLE,
    "depthwise_conv2d_sums": WHOLE,
    "scale_sums": PROPAGATES,
    "norm": PROPAGATES,
    "group_norm": PROPAGATES,
    "image": WHOLE,
    "rfft": WHOLE,
    "auto_scale": WHOLE,
    "energy": WHOLE,
    "filter_bank": WHOLE,
    "filter_bank_log": WHOLE,
    "pcan": WHOLE,
    "spectral_subtraction": WHOLE,
    "square_root": WHOLE,
    "window": WHOLE,
    "moving_average": PROPAGATES,
    "best_above": "no class, -1, if a score is NaN",
    "hysteresis": "no class, -1, if a score is NaN",
    "refractory": WHOLE,
    "call": "whatever your function does",
    "repeat": INSIDE,
}

# function of map -> what it does; others: PROPAGATES
FUNCTION_RULES: dict[str, str] = {
    "and": WHOLE,
    "bit_and": WHOLE,
    "bit_not": WHOLE,
    "bit_or": WHOLE,
    "bit_xor": WHOLE,
    "bits": MOVES,
    "cast": "to an integer: 0; to bool: true; to another float: NaN",
    "copy": MOVES,
    "equal": COMPARES,
    "fixed_log": WHOLE,
    "is_infinite": "false",
    "is_nan": "true",
    "less": COMPARES,
    "less_or_equal": COMPARES,
    "not": WHOLE,
    "or": WHOLE,
    "power": "NaN, except for x to the power of 0 and 1 to the power of x, which are 1",
    "requantize": WHOLE,
    "requantize_once": WHOLE,
    "shift_left": WHOLE,
    "shift_right": WHOLE,
    "where": CHOSEN,
    "xor": WHOLE,
}


def rule_of(op: str, function: str = "") -> str:
    """The rule of an operator, or of a function of map."""
    return FUNCTION_RULES.get(function, PROPAGATES) if op == "map" else RULES[op]

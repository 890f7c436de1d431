"""Mutations of what is known of channels that never change, for mutate.py."""

_FILE = "tests/passes/test_constant_channels.py"
_NETS = f"{_FILE} --deselect={_FILE}::test_many_random_nets"
_MAPS = "pybuild/passes/channels/maps.py"
_RANGES = "pybuild/passes/channels/ranges.py"
_PASS = "pybuild/passes/channels/constant.py"

CHANNELS = (
    (
        "the channels of a part that is joined",
        _MAPS,
        "begin += x.shape[-1]",
        "begin += x.shape[-1] - 1",
        _NETS,
    ),
    (
        "the channel of a flattened element",
        _MAPS,
        "return at % x.shape[-1]",
        "return at // (len(at) // x.shape[-1])",
        _NETS,
    ),
    (
        "the outputs of a channel of a depthwise layer",
        _MAPS,
        "np.arange(y.shape[-1]) // multiplier",
        "np.arange(y.shape[-1]) % xs[0].shape[-1]",
        _NETS,
    ),
    (
        "where a slice of fewer channels begins",
        _MAPS,
        "np.searchsorted(x_kept, begin[-1])",
        "begin[-1]",
        _NETS,
    ),
    (
        "what a product of two ranges reaches",
        _RANGES,
        "product(*((x.low, x.high) for x in xs))",
        "zip(*((x.low, x.high) for x in xs))",
        _NETS,
    ),
    (
        "what is padded without being the channel's value",
        _RANGES,
        "np.minimum(low, fill), np.maximum(high, fill)",
        "low, high",
        _NETS,
    ),
    (
        "taps beside the input",
        _RANGES,
        "inside = (at >= 0) & (at < x[axis + 1])",
        "inside = (at >= 0) | (at < x[axis + 1])",
        _NETS,
    ),
    (
        "sums of weights below zero",
        _RANGES,
        "both = up @ low + down @ high, up @ high + down @ low",
        "both = up @ low + down @ low, up @ high + down @ high",
        _NETS,
    ),
    (
        "constants that add less at a border",
        _PASS,
        "found[:, others] = more.any(0)",
        "found[:, others] = False",
        _NETS,
    ),
    (
        "what one output of several needs",
        _PASS,
        "needed[x[wants[needed[y]].any(0)]] = True",
        "needed[x] |= wants[needed[y]].any(0)",
        _NETS,
    ),
    (
        "channels that stay and can change",
        _PASS,
        "if not more.any():",
        "if more is more:",
        _NETS,
    ),
    (
        "what a dropped channel adds",
        _PASS,
        "x.constant & ~needed, x.low - zero, 0)",
        "x.constant & ~needed, x.low, 0)",
        _NETS,
    ),
    (
        "one channel that meets all others",
        _PASS,
        "bool((maps[index] == ABSENT).all())",
        "False",
        _NETS,
    ),
)

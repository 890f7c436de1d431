"""Mutations of quantising, for mutate.py: its five fields."""

_UNIT = "tests/unit/test_quantise.py tests/unit/test_quantise_parts.py"
_FAILING = "tests/failing/test_failing.py"

QUANTISE = (
    (
        "zero as one of the steps",
        "pybuild/quantisation/ranges.py",
        "whole = {name: (min(o.low, 0.0), max(o.high, 0.0))",
        "whole = {name: (o.low, o.high)",
        _UNIT,
    ),
    (
        "the magnitude of a percentile",
        "pybuild/quantisation/ranges.py",
        "total[-1] * percentile / 100",
        "total[-1] * percentile / 99",
        _UNIT,
    ),
    (
        "zeros in an entropy",
        "pybuild/quantisation/ranges.py",
        "np.histogram(size[size > 0], BINS",
        "np.histogram(size, BINS",
        _UNIT,
    ),
    (
        "one scale for each output channel",
        "pybuild/quantisation/rewrite.py",
        "np.maximum(magnitudes(w, axis) / 127, 1e-30)",
        "np.maximum(magnitudes(w, axis) * 0 + np.abs(w).max() / 127, 1e-30)",
        _UNIT,
    ),
    (
        "a bias that fits int32",
        "pybuild/quantisation/rewrite.py",
        "scale = np.maximum(scale, bias / (x_scale * _MOST_BIAS))",
        "pass",
        _UNIT,
    ),
    (
        "a softmax in a concatenation",
        "pybuild/quantisation/rewrite.py",
        "self.scheme.quant(output, dtype) != shares",
        "False",
        _UNIT,
    ),
    (
        "the mean error of the weights",
        "pybuild/quantisation/bias.py",
        "edit.constants[before].astype(np.float32) + shift",
        "edit.constants[before].astype(np.float32) - shift",
        _UNIT,
    ),
    (
        "a factor taken back by the layer that reads it",
        "pybuild/quantisation/equalise.py",
        "scaled = columns * factor.reshape(1, 1, -1)",
        "scaled = columns",
        _UNIT,
    ),
    (
        "an upper end that a factor would move",
        "pybuild/quantisation/equalise.py",
        "clamp_of(node) not in ((None, None), (0.0, None))",
        "clamp_of(node)[0] not in (None, 0.0)",
        _UNIT,
    ),
    (
        "equalising only where it helps",
        "pybuild/quantisation/quantise.py",
        "return min(drafts, key=error)",
        "return max(drafts, key=error)",
        _UNIT,
    ),
    (
        "layers that become int8 again",
        "pybuild/quantisation/mix.py",
        "chosen, wide, made = fewer, [*wide, *more], tried",
        "pass",
        _UNIT,
    ),
    (
        "a mean over the samples computed together",
        "pybuild/quantisation/execute.py",
        "and _near(together[name][index : index + 1], value)",
        "",
        _UNIT,
    ),
    (
        "values that are not finite",
        "pybuild/quantisation/samples.py",
        "    if bad:",
        "    if bad < 0:",
        _FAILING,
    ),
    (
        "labels beyond the classes",
        "pybuild/quantisation/samples.py",
        "(whole >= classes)",
        "(whole > classes)",
        _FAILING,
    ),
    (
        "int16 that what only moves keeps",
        "pybuild/quantisation/scheme.py",
        "wides.add(node.output)",
        "pass",
        _UNIT,
    ),
)

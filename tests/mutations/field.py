"""Mutations of what nets of the field needed, for mutate.py."""

_PHASES = "pybuild/passes/phases.py"
_TEST = "tests/passes/test_phases.py"

FIELD = (
    (
        "the axis of a bias of old converters",
        "pybuild/frontends/tflite/reader/scales.py",
        "flat.axis if len(flat.shape) > 1 else 0",
        "flat.axis",
        "tests/frontends/tflite/test_old_converters.py -k axis",
    ),
    (
        "the bits of a softmax to int16",
        "pybuild/kernels/portable/softmax.py",
        "else (25, None)",
        "else (26, None)",
        "tests/frontends/tflite/test_old_converters.py -k softmax",
    ),
    (
        "what is carried to a layer",
        "pybuild/verify/carried.py",
        "ours[name] = np.asarray(have.get(name, a))",
        "ours[name] = np.asarray(want.get(name, a))",
        "tests/verify/test_carried.py",
    ),
    (
        "the price of rows",
        "pybuild/plan/choice.py",
        "        if over <= 0:",
        "        if over <= 9:",
        "tests/plan/test_price_of_rows.py -k dear",
    ),
    (
        "bytes of a piece that nobody else has",
        "pybuild/select/choose.py",
        "if min(before, before + by) == 0:",
        "if before == 0:",
        "tests/select/test_growth.py -k come_to",
    ),
    (
        "the row under a phase's first tap",
        _PHASES,
        "at = [(phase + k * dilation - begin, k)",
        "at = [(phase + k * dilation - start, k)",
        _TEST,
    ),
    (
        "the taps of a phase",
        _PHASES,
        "for n, k in at if n % stride == 0]",
        "for n, k in at if n % stride == stride - 1]",
        _TEST,
    ),
    (
        "rows between the taps of a dilated phase",
        _PHASES,
        "gap = met[1][0] - met[0][0] if",
        "gap = 1 if",
        _TEST,
    ),
    (
        "phases that meet nothing",
        _PHASES,
        "value = some if taps else np.zeros_like(some)",
        "value = some",
        _TEST,
    ),
    (
        "a border that is not zero",
        _PHASES,
        'if node.op == "pad" and not _of_zeros(node, graph):',
        'if node.op == "pad" and _of_zeros(node, graph) is None:',
        _TEST,
    ),
    (
        "windows that stand at one place",
        _PHASES,
        "groupby(columns, key=lambda c: c.place)",
        "groupby(columns, key=lambda c: c.gap)",
        _TEST,
    ),
    (
        "a shift that is part of saturating",
        "crt/include/crt/inline.h",
        "__builtin_arm_ssat(x, 8)",
        "__builtin_arm_ssat(x, 7)",
        "tests/kernels/test_intrin.py -k cortex_m4",
    ),
)

"""Mutations of what nets of the field needed, for mutate.py."""

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
)

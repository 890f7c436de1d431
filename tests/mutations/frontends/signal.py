"""Mutations of the signal operators, for mutate.py: its five fields."""

_OPS, _KERNELS = "pybuild/ops", "pybuild/kernels/portable"
_FRONT = "pybuild/frontends/tflite/operators/signal.py"
_TEST = "tests/frontends/tflite/signal/test_signal.py"
_ALL = f"{_TEST}::test_every_integer_is_that_of_micro"

SIGNAL = (
    (
        "the rounding of a stage's division",
        f"{_KERNELS}/fft.py",
        "value + (1 << (self.bits - 1))",
        "value + (1 << (self.bits - 2))",
        f"{_ALL}[rfft_int16_64]",
    ),
    (
        "which way a quarter turns",
        f"{_KERNELS}/fft.py",
        "forth, back = back, forth",
        "forth, back = forth, back",
        f"{_ALL}[irfft_int16_64]",
    ),
    (
        "what is stored wraps",
        f"{_OPS}/sensors/fft.py",
        "return x.astype(self.dtype).astype(np.int64)",
        "return x.astype(np.int64)",
        f"{_ALL}[irfft_int16_8]",
    ),
    (
        "the largest number of silence",
        f"{_KERNELS}/signal.py",
        "select(most < 1, const(0), 15 - used)",
        "select(most < 0, const(0), 15 - used)",
        f"{_ALL}[auto_scale]",
    ),
    (
        "what a band leaves to the next",
        f"{_KERNELS}/signal.py",
        "k.assign(left, other)",
        "k.assign(left, mine)",
        f"{_ALL}[filter_bank]",
    ),
    (
        "a root is the nearest",
        f"{_KERNELS}/signal.py",
        "up = select(root < rest, root + 1, root)",
        "up = root",
        f"{_ALL}[square_root]",
    ),
    (
        "noise is held under its signal only where it is asked for",
        f"{_KERNELS}/signal.py",
        'held if node.attrs["clamping"] else new',
        "held",
        f"{_ALL}[subtraction]",
    ),
    (
        "the first run that has a whole frame",
        _FRONT,
        "missing = 0 if prefill else whole // step - 1",
        "missing = 0 if prefill else whole // step",
        f"{_ALL}[framer_late]",
    ),
    (
        "the frame that stands left of the first",
        _FRONT,
        'flow.map("where", begun, kept, repeated)',
        'flow.map("where", begun, kept, kept)',
        f"{_ALL}[stacker]",
    ),
    (
        "channels read within their input",
        f"{_OPS}/signal.py",
        "low < 0 or any(outside)",
        "low < 0",
        f"{_TEST}::test_a_channel_outside_its_input_is_refused",
    ),
)

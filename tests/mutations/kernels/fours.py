"""Mutations of depthwise kernels of four channels side by side, for mutate.py."""

_TEST = "tests/kernels/dsp/test_fours.py"
_FAR = "tests/kernels/dsp/test_far_strides.py"

FOURS = (
    (
        "which half of a word is which channel",
        "pybuild/kernels/dsp/fours_sums.py",
        "((0, 2), 1) if",
        "((0, 1), 2) if",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "the order of int16 weights",
        "pybuild/kernels/dsp/fours.py",
        "fours[:, :, (0, 2, 1, 3)]",
        "fours[:, :, (0, 1, 2, 3)]",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "rows between the windows of four channels",
        "pybuild/kernels/dsp/fours_layer.py",
        "new = min(self.image.stride_h, rows)",
        "new = self.image.stride_h",
        f"{_FAR}::test_by_llvm",
    ),
    (
        "rows between the windows of a channel",
        "pybuild/kernels/dsp/depthwise_code.py",
        "coming = min(image.stride_h, w.kernel_h)",
        "coming = image.stride_h",
        f"{_FAR}::test_by_llvm",
    ),
    (
        "padding behind the columns of a row",
        "pybuild/kernels/dsp/fours_layer.py",
        "self.window.columns - self.window.left - self.inside",
        "self.window.columns - self.window.left - self.inside - 1",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "rows that are widened at once",
        "pybuild/kernels/dsp/fours_layer.py",
        "min(self.image.height, self._under - self.image.top)",
        "min(self.image.height, self._under - self.image.top - 1)",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "the weights of an image that is taken across",
        "pybuild/kernels/dsp/fours.py",
        "transpose(0, 2, 1)\n        kernels",
        "transpose(0, 1, 2)\n        kernels",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "rows of a window below an image",
        "pybuild/kernels/dsp/fours_sums.py",
        'minimum(above + known["height"], layer.window.kernel_h)',
        "minimum(above + layer.window.kernel_h, layer.window.kernel_h)",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "taps of rows above an image",
        "pybuild/kernels/dsp/fours_sums.py",
        "offset(taps, first * layer.row_words)",
        "offset(taps, 0 * layer.row_words)",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "columns of a window that are no products",
        "pybuild/kernels/dsp/fours_layer.py",
        "column = (first + i) * w.stride_w",
        "column = i * w.stride_w",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "a zero point that bytes are widened without",
        "pybuild/kernels/dsp/fours.py",
        "bias + added if layer.centred else bias",
        "bias",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "pixels behind the last three",
        "pybuild/kernels/dsp/fours_sums.py",
        "self._block(layer.rest, x, taps, to)",
        "self._block(1, x, taps, to)",
        f"{_TEST}::test_by_llvm",
    ),
    (
        "weights of pairs that gcc keeps on the stack",
        "pybuild/kernels/dsp/depthwise_sums.py",
        "[IN_ORDER(first), *",
        "[first, *",
        "tests/perf/test_any_layer.py::test_gcc_keeps_up_with_llvm",
    ),
    (
        "weights that gcc keeps on the stack",
        "pybuild/kernels/dsp/fours_sums.py",
        "k.assign(sums[0][0], IN_ORDER(sums[0][0]))",
        "k.assign(sums[0][0], sums[0][0])",
        "tests/perf/test_any_layer.py::test_gcc_keeps_up_with_llvm",
    ),
    (
        "the price of two words at once",
        "pybuild/select/instructions.py",
        "before == (stored, name, index - 1)",
        "before == (stored, name, index)",
        f"{_TEST}::test_the_cheapest",
    ),
)

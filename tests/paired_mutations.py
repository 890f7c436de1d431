"""Mutations of kernels on pairs of int16 and on vectors, for mutate.py: its fields."""

_LAYERS = "tests/unit/test_vector_kernels.py::test_llvm_equals_numpy[balanced]"
_OPERATIONS = "tests/unit/test_vector_kernels.py::test_every_operation_by_llvm_and_c"
_BOARD = "tests/boards/test_vector_boards.py::test_random_layers"
_PAIRS = "tests/ops/test_backends.py::test_llvm[{}-int8-litert-cortex-m4]"
_DIRECT = "tests/unit/test_kernels.py::test_less_scratch_gives_the_same_bytes"

PAIRED = (
    (
        "the bytes that a last vector has twice",
        "pybuild/kernels/conv_mve_code.py",
        "order += [t if t >= whole else -1 for t in range(back, self.taps)]",
        "order += list(range(back, self.taps))",
        _LAYERS,
    ),
    (
        "two windows of which the second leaves the row",
        "pybuild/kernels/window.py",
        "room = self.width - span - self.stride * (pixels - 1) - x0",
        "room = self.width - span - x0",
        _LAYERS,
    ),
    (
        "the bias of a layer on vectors",
        "pybuild/kernels/conv_mve.py",
        "start = bias.astype(np.int64) << 8",
        "start = (bias.astype(np.int64) << 8) + 255",
        _LAYERS,
    ),
    (
        "the columns of a depthwise window on vectors",
        "pybuild/kernels/depthwise_mve.py",
        "made[layer.lead + kx :: SIDE,",
        "made[kx :: SIDE,",
        _LAYERS,
    ),
    (
        "the padding behind a woven row",
        "pybuild/kernels/depthwise_mve_code.py",
        "return max(last - w.left - w.width, 0)",
        "return max(last - w.left - w.width - 1, 0)",
        _LAYERS,
    ),
    (
        "the offset of negative sums in vectors",
        "pybuild/kernels/vectors.py",
        "((_V >> _all(i32(31))) & _T)",
        "((_V >> _all(i32(20))) & _T)",
        _OPERATIONS,
    ),
    (
        "a gather without instructions for it",
        "crt/include/crt/vector.h",
        "from[bytes.lane[i] / 4]",
        "from[bytes.lane[i] / 4 + (i == 3)]",
        _OPERATIONS,
    ),
    (
        "the shift of a Cortex-M55",
        "crt/include/crt/vector.h",
        "vshlq_r_s32(v, -shift)",
        "vrshlq_n_s32(v, -shift)",
        f"{_BOARD}[gcc-c]",
    ),
    (
        "one of four stores of a Cortex-M55",
        "pybuild/emit/llvm.py",
        "for stage in range(intrin.stages):",
        "for stage in range(intrin.stages - 1):",
        f"{_BOARD}[gcc-obj]",
    ),
    (
        "two channels in a lane",
        "pybuild/kernels/conv_dsp.py",
        "both = 256 * lanes[first] + lanes[first + 1]",
        "both = 256 * lanes[first] + np.abs(lanes[first + 1])",
        _PAIRS.format("conv-pointwise"),
    ),
    (
        "the bias of a pair's second channel",
        "pybuild/kernels/conv_dsp.py",
        "[made.offsets[b] + 256 * wide_bias[b], made.multipliers[b]]",
        "[made.offsets[b] + 255 * wide_bias[b], made.multipliers[b]]",
        _PAIRS.format("conv-wide_same_3x3"),
    ),
    (
        "the bytes that a last word has twice",
        "pybuild/kernels/conv_dsp_layer.py",
        "lanes += [last + 1 if last + 1 >= done else -1, last + 3]",
        "lanes += [last + 1, last + 3]",
        _PAIRS.format("conv-runs_of_6_odd_outputs"),
    ),
    (
        "bytes that are widened as they are read",
        "pybuild/kernels/conv_dsp_code.py",
        "(ODD_BYTES if tap % 2 else EVEN_BYTES)(self.word)",
        "EVEN_BYTES(self.word)",
        _DIRECT,
    ),
    (
        "where the next word of a row is",
        "pybuild/kernels/conv_dsp_code.py",
        "step = 2 if self.layer.direct else self.layer.pixels",
        "step = self.layer.pixels",
        _DIRECT,
    ),
    (
        "output channels behind the last full block",
        "pybuild/kernels/conv_dsp_layer.py",
        "return channels - channels % (2 * self.blocks)",
        "return -(-channels // 8) * 8 if channels > 6 else 0",
        _PAIRS.format("dense-seven_outputs"),
    ),
    (
        "the order of a group's depthwise channels",
        "pybuild/kernels/depthwise_dsp_code.py",
        "pack = LOW_HALVES if channel < 2 else HIGH_HALVES",
        "pack = HIGH_HALVES if channel % 2 else LOW_HALVES",
        _PAIRS.format("conv-depthwise_same_relu"),
    ),
    (
        "the new rows of a ring",
        "pybuild/kernels/depthwise_dsp_code.py",
        "new = start + maximum(rows - stride, 0)",
        "new = start + maximum(rows - stride + 1, 0)",
        _PAIRS.format("conv-depthwise_same_relu"),
    ),
)

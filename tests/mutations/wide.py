"""Mutations of int16 activations and of int4 weights, for mutate.py."""

_INT4 = "tests/frontends/tflite/test_tflite_int4.py"
_NUMPY = "tests/ops/test_litert.py -k int16"
_CODE = "tests/ops/test_backends.py::test_llvm -k int16"
_FAST = "tests/kernels/test_int16.py -k by_llvm"

WIDE = (
    (
        "sums that need 64 bits",
        "pybuild/kernels/layers/weights.py",
        "int(reach.max(initial=0)) <= _MOST",
        "int(reach.max(initial=0)) <= 4 * _MOST",
        "tests/kernels/test_int16.py",
    ),
    (
        "runs of taps whose sums leave 32 bits",
        "pybuild/kernels/layers/sums16.py",
        "if int(sums.max(initial=0)) <= MOST_WEIGHTS",
        "if int(sums.max(initial=0)) <= 2 * MOST_WEIGHTS",
        _FAST,
    ),
    (
        "sums that begin anew with each run",
        "pybuild/kernels/scalar/conv_code.py",
        "k.assign(acc, 0)",
        "k.assign(acc, acc)",
        _FAST,
    ),
    (
        "the last vector after runs",
        "pybuild/kernels/mve/conv_code.py",
        "steps = steps - 1 if layer.tail else steps\n        most",
        "steps = steps\n        most",
        _FAST,
    ),
    (
        "the upper half of a bias",
        "pybuild/kernels/epilogues/end16.py",
        "words = [lower.astype(np.int64), wide >> 32]",
        "words = [lower.astype(np.int64), wide >> 63]",
        _FAST,
    ),
    (
        "channels of which nothing is left",
        "pybuild/kernels/epilogues/end16.py",
        "if s <= 47 else (0, 31)",
        "if s <= 47 else (m, 31)",
        _FAST,
    ),
    (
        "the lower half of a sum on a core without high products",
        "pybuild/kernels/epilogues/end16.py",
        "low = (acc & 0xFFFF) * factor",
        "low = (acc & 0x7FFF) * factor",
        _FAST,
    ),
    (
        "shifts on vectors of a layer whose shifts are all 32 and less",
        "pybuild/kernels/epilogues/end16.py",
        "return words >> spare, 16 - spare",
        "return words >> spare, 15 - spare",
        _FAST,
    ),
    (
        "the lower part of an exact scale",
        "pybuild/kernels/epilogues/int16.py",
        "return whole >> PART, whole & ((1 << PART) - 1), shift",
        "return whole >> PART, 0, shift",
        "tests/kernels/test_int16.py",
    ),
    (
        "the bits of a multiplier for sums of 64 bits",
        "pybuild/ops/fixed_point/quant.py",
        "return min((multiplier + (1 << 15)) >> 16, 0x7FFF), shift",
        "return min(multiplier >> 16, 0x7FFF), shift",
        _NUMPY,
    ),
    (
        "a multiplier whose shift is 32",
        "pybuild/kernels/epilogues/int16.py",
        "multipliers, shifts = tuple(m << (32 - s)",
        "multipliers, shifts = tuple(m << (31 - s)",
        _CODE,
    ),
    (
        "the bytes of a weight word",
        "pybuild/kernels/layers/weights.py",
        "taps[:, :, (0, 2, 1, 3)]",
        "taps[:, :, (0, 1, 2, 3)]",
        _CODE,
    ),
    (
        "columns that are not in the row",
        "pybuild/kernels/dsp/conv16.py",
        "self._outside(to, ends[1], g.kernel_w)",
        "self._outside(to, ends[0], ends[0])",
        _CODE,
    ),
    (
        "the upper half of a byte of int4",
        "pybuild/frontends/tflite/reader/nibbles.py",
        "np.stack([data << 4, data & 0xF0], 1)",
        "np.stack([data & 0xF0, data << 4], 1)",
        _INT4,
    ),
    (
        "the last tap of an odd row of int4",
        "pybuild/kernels/portable/dense4.py",
        "load(at, row * (j + 1) - 1)",
        "load(at, row - 1)",
        _INT4,
    ),
    (
        "what size takes",
        "pybuild/kernels/table.py",
        "return [c for c in found if _halves(c)] or [",
        "return [c for c in found if not _halves(c)] or [",
        _INT4,
    ),
    (
        "a point of logistic's table",
        "pybuild/ops/act16.py",
        "    116, 135, 255,",
        "    116, 134, 255,",
        _NUMPY,
    ),
    (
        "between the points of exp",
        "pybuild/kernels/portable/softmax16.py",
        "(_V & 127) + 64)",
        "(_V & 127) + 63)",
        _CODE,
    ),
    (
        "the side of a curve",
        "pybuild/kernels/portable/act16.py",
        "select(d < 0, top - 1 - t, t - half)",
        "select(d < 0, top - t, t - half)",
        _CODE,
    ),
    (
        "scales that are powers of 2",
        "pybuild/frontends/tflite/operators/layers.py",
        'attrs["exact"] = True',
        'attrs["exact"] = False',
        _NUMPY,
    ),
)

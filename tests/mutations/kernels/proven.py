"""Mutations of ends that are checked at every sum, or proven, for mutate.py:
its fields."""

_FORMS = "tests/proofs/test_forms.py::{}"
_RULES = "tests/proofs/test_rules_proven.py::{}"
_HALVES = "tests/kernels/mve/test_half_vectors.py::test_by_llvm_and_c"
_ONE = "tests/kernels/dsp/test_one_factor.py::test_by_llvm_and_c[{}]"
_FEW = "tests/kernels/mve/test_few_channels.py::{}"
_EACH = _FORMS.format("test_each_form_at_every_sum")

PROVEN = (
    (
        "a shift beyond what the instruction that narrows has",
        "pybuild/kernels/base/vector_packs.py",
        "more = max(0, shift - _NARROWS)",
        "more = max(0, shift - 2 * _NARROWS)",
        "tests/perf/test_any_layer.py"
        "::test_sums_that_are_shifted_beyond_what_narrows_them",
    ),
    (
        "an offset that moves a step by one sum",
        "pybuild/kernels/epilogues/staircase.py",
        "most = edge - 1 - ((stairs.first - 1) << FRACTION)",
        "most = edge + 255 - ((stairs.first - 1) << FRACTION)",
        _EACH,
    ),
    (
        "a step of two parts that is reached by the sum before it",
        "pybuild/kernels/epilogues/affine_split.py",
        "most = wanted - 1 - ((first - 1) * multipliers[..., None] >> self.part)",
        "most = wanted - 1 - ((first - 2) * multipliers[..., None] >> self.part)",
        _EACH,
    ),
    (
        "a layer without any step is searched on",
        "pybuild/kernels/epilogues/affine_split.py",
        "if not few.size:",
        "if False:",
        "tests/kernels/test_affine_split.py::test_a_layer_whose_clamp_leaves_one_value",
    ),
    (
        "a shift before the rule itself is forgotten",
        "pybuild/kernels/epilogues/requantise.py",
        "left = tuple(max(s, 0) for s in bits)",
        "left = tuple(max(s - 1, 0) for s in bits)",
        _EACH,
    ),
    (
        "a form of two parts that no layer of the tests gets",
        "pybuild/kernels/epilogues/affine_split.py",
        "(None, limit), PARTS",
        "(None,), PARTS",
        _EACH,
    ),
    (
        "a value beside in the sum of two or of many",
        "pybuild/kernels/epilogues/affine_line.py",
        "((y + 1) << shift) - 1 - total",
        "((y + 1) << shift) + 9 - total",
        _FORMS.format("test_sums_of_two"),
    ),
    (
        "a tie below zero goes up",
        "pybuild/kernels/epilogues/requantise.py",
        "(_PRODUCT + _HALF - _bit(_PRODUCT < 0, INT64)) >> i64(_SHIFT)",
        "(_PRODUCT + _HALF - _bit(_PRODUCT < -1, INT64)) >> i64(_SHIFT)",
        _RULES.format("test_one_rounding"),
    ),
    (
        "a tie at an odd number stays",
        "pybuild/kernels/epilogues/requantise.py",
        "(_PRODUCT + (_HALF - 1) + ((_PRODUCT >> i64(_SHIFT)) & 1)) >> i64(_SHIFT)",
        "(_PRODUCT + (_HALF - 1) + (_PRODUCT & 1)) >> i64(_SHIFT)",
        _RULES.format("test_one_rounding"),
    ),
    (
        "the lower part of a factor of 53 bits, one bit off",
        "pybuild/kernels/epilogues/int16.py",
        "((_SIZE * i64(_LOW)) >> const(PART, INT64))",
        "((_SIZE * i64(_LOW)) >> const(PART + 1, INT64))",
        _RULES.format("test_a_factor_of_53_bits"),
    ),
    (
        "the lower half of a sum of int16, without its carry",
        "pybuild/kernels/epilogues/end16.py",
        "low = (acc & 0xFFFF) * factor",
        "low = (acc & 0xFFFE) * factor",
        _RULES.format("test_cheap_ends_of_int16"),
    ),
    (
        "half a unit of a cheap end of int16",
        "pybuild/kernels/epilogues/end16.py",
        'half = k.let("half", const(1) << shift - 1)',
        'half = k.let("half", const(1) << shift)',
        _RULES.format("test_cheap_ends_of_int16"),
    ),
    (
        "windows that end with eight bytes",
        "pybuild/kernels/mve/conv_layer.py",
        "few = 0 < self.taps % VECTOR <= HALF",
        "few = 0 < self.taps % VECTOR < HALF",
        _HALVES,
    ),
    (
        "where half a vector of a patch is",
        "pybuild/kernels/mve/conv_code.py",
        "return self.steps * self.step - self.step",
        "return self.steps * 8",
        _HALVES,
    ),
    (
        "how many pairs of taps are written out",
        "pybuild/kernels/layers/conv.py",
        "return len(self.order) // 2 if whole else self.unrolled",
        "return len(self.order) // 2 - 1 if whole else self.unrolled",
        "tests/kernels/dsp/test_long_turns.py",
    ),
    (
        "where a long turn of a single pixel goes on",
        "pybuild/kernels/mve/conv_code.py",
        "k.assign(x, offset(x, self.step * turn))",
        "k.assign(x, offset(x, self.step))",
        "tests/kernels/mve/test_long_turns.py",
    ),
    (
        "the weights of half a vector",
        "pybuild/kernels/mve/conv.py",
        "(blocks[:, one, whole:], layer.last)",
        "(blocks[:, one, whole:], 1)",
        _HALVES,
    ),
    (
        "which layers have one factor",
        "pybuild/kernels/epilogues/affine.py",
        "if (end.multipliers == first).all() else end",
        "if (end.multipliers >= 0).all() else end",
        _ONE.format("cortex-m4"),
    ),
    (
        "where the second of two channels ends, of one factor",
        "pybuild/kernels/dsp/conv_sums.py",
        "at = row_words(epilogue) * which",
        "at = 2 * which",
        _ONE.format("cortex-m4"),
    ),
    (
        "the table of four channels with one factor",
        "pybuild/kernels/mve/epilogue.py",
        "return 8 if epilogue.joint is None else 4",
        "return 8",
        _ONE.format("cortex-m55"),
    ),
    (
        "how many pairs of taps a turn leaves over",
        "pybuild/kernels/layers/conv.py",
        "return next((u for u in _UNUSUAL if pairs % u == 0), 0)",
        "return _UNUSUAL[0]",
        "tests/kernels/dsp/test_exact_turns.py::test_by_llvm_and_c",
    ),
    (
        "how few bytes a pixel has",
        "pybuild/kernels/mve/conv_code.py",
        "FIRST16(x, self.layer.few)",
        "FIRST16(x, self.layer.few - 1)",
        _FEW.format("test_on_a_core"),
    ),
)

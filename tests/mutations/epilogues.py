"""Mutations of sums that are the epilogues of layers, of epilogues by the rule itself,
of sums told apart, and of four pixels on vectors, for mutate.py: its five fields.
"""

_ENDS = "tests/passes/test_sums.py"
_LAYERS = "tests/kernels/test_vector_kernels.py::test_llvm_equals_numpy[balanced]"
_EIGHTS = "tests/kernels/test_vector_kernels.py::test_eight_pixels_equal_numpy"
_CORE = "tests/perf/test_any_layer.py::test_eight_pixels_on_a_core"
_PRICE = (
    "tests/perf/test_any_layer.py::test_layers_on_vectors_take_what_their_price_says"
)
_OUTSIDE = "tests/passes/test_outside.py"
_PIXELS = "tests/kernels/test_vector_rounds.py::test_an_end_of_pixels_is_its_rule"

ENDS = (
    (
        "a tensor that is read again is an end's",
        "pybuild/passes/sums.py",
        "len(readers[name]) > 1",
        "len(readers[name]) > 2",
        f"{_ENDS}::test_a_tensor_that_is_read_again_or_given_out_is_not_taken",
    ),
    (
        "a sum lies on what its layer still reads",
        "pybuild/kernels/operators/sums.py",
        "() if name in node.inputs[:-1] else",
        "() if not name else",
        f"{_ENDS}::test_kernels_equal_numpy",
    ),
    (
        "which operand of a difference is the layer's",
        "pybuild/kernels/operators/sums.py",
        "(made, other) if mine",
        "(made, other) if layer",
        f"{_ENDS}::test_kernels_equal_numpy",
    ),
    (
        "a layer's band lies on its working memory",
        "pybuild/kernels/operators/sums.py",
        "scratch=at + wrote.row_bytes,",
        "scratch=at + wrote.row_bytes - 4,",
        f"{_ENDS}::test_a_band_has_room",
    ),
)

_HARD = "tests/kernels/test_hard_channels.py::test_by_llvm"
_ROUNDED = "tests/kernels/dsp/test_rounded.py"
_STEPS = (
    "tests/kernels/test_affine.py::"
    "test_multipliers_that_real_numbers_allow_are_all_that_fit"
)

HARD = (
    (
        "the row of a channel that ends by the rule itself",
        "pybuild/kernels/epilogues/affine.py",
        "factors = np.where(missing, ~(rows * whole.size), form.multipliers)",
        "factors = np.where(missing, ~(rows * 1), form.multipliers)",
        _HARD,
    ),
    (
        "the bias of such a channel",
        "pybuild/kernels/epilogues/exact_end.py",
        'total = k.let("total", known["acc"] + load(known["row"], 0))',
        'total = k.let("total", known["acc"] + load(known["row"], 1))',
        _HARD,
    ),
    (
        "a sum that begins with the bias of the rule",
        "pybuild/kernels/epilogues/affine.py",
        "return np.where(self.multipliers < 0, 0, bias.astype(np.int64))",
        "return np.where(self.multipliers < 0, 1, bias.astype(np.int64))",
        _HARD,
    ),
    (
        "runs whose sums stay within 32 bits",
        "pybuild/kernels/dsp/conv.py",
        "if 256 * reach + _SPARE <= _MOST:",
        "if 200 * reach + _SPARE <= _MOST:",
        _HARD,
    ),
    (
        "the second channel's sum in that of a run",
        "pybuild/kernels/dsp/conv_sums.py",
        "k.assign(both, low)",
        "k.assign(both, 0)",
        _HARD,
    ),
    (
        "weights of -128 beside another channel's",
        "pybuild/kernels/dsp/conv.py",
        "if int(kernels.min(initial=0)) < -127:",
        "if int(kernels.min(initial=0)) < -128:",
        _HARD,
    ),
    (
        "steps of scales in float32",
        "pybuild/kernels/epilogues/staircase.py",
        "reals = np.rint(acc.astype(np.float32) * factors)",
        "reals = np.floor(acc.astype(np.float32) * factors)",
        _HARD,
    ),
    (
        "multipliers that two steps rule out",
        "pybuild/kernels/epilogues/staircase.py",
        "past = stairs.first[rows, one] - stairs.first[rows, other] + 1",
        "past = stairs.first[rows, one] - stairs.first[rows, other]",
        _STEPS,
    ),
    (
        "quotients of doubles that are not put right",
        "pybuild/kernels/epilogues/staircase.py",
        "    near += rest < 0\n",
        "",
        "tests/kernels/test_affine.py -k quotients",
    ),
    (
        "steps where only a real product reaches them",
        "pybuild/kernels/epilogues/staircase.py",
        "& ~rule.reached(first - 1, far, steps)",
        "",
        "tests/proofs/test_forms.py::test_each_form_at_every_sum",
    ),
    (
        "rows of channels of a core without high products",
        "pybuild/kernels/epilogues/affine_split.py",
        "uppers = np.where(missing, ~(rows * whole.size), form.uppers)",
        "uppers = np.where(missing, ~rows, form.uppers)",
        _HARD,
    ),
    (
        "what -1 below zero is added to",
        "pybuild/kernels/epilogues/affine_end.py",
        "self._held((rounded + (twice >> 31)) >> more >> 1)",
        "self._held(rounded >> more >> 1)",
        _HARD,
    ),
    (
        "half a step of the rule in few instructions",
        "pybuild/kernels/epilogues/rounded.py",
        "base = 2 * made.y_zero + 1",
        "base = 2 * made.y_zero",
        f"{_ROUNDED}::test_every_sum",
    ),
    (
        "a zero point that leaves 32 bits",
        "pybuild/kernels/epilogues/rounded.py",
        "abs(base) << right.clip(1) - 1 >= _MOST_OFFSET",
        "abs(base) << right.clip(1) - 2 >= _MOST_OFFSET",
        f"{_ROUNDED}::test_a_zero_point_of_many_half_steps",
    ),
    (
        "bits that the sums of an image are shifted by",
        "pybuild/kernels/epilogues/affine_end.py",
        "return 1 if isinstance(epilogue, Rounded) else FRACTION",
        "return 2 if isinstance(epilogue, Rounded) else FRACTION",
        _HARD,
    ),
    (
        "ties below zero of a rule that rounds them away",
        "pybuild/kernels/epilogues/rounded.py",
        "missing |= ~none & (-low * (mult & -mult) >= tie)",
        "missing |= ~none & (-low * (mult & -mult) >= 4 * tie)",
        f"{_ROUNDED}::test_every_sum",
    ),
    (
        "what is below the clamp's low end",
        "pybuild/kernels/epilogues/affine_end.py",
        "floor = epilogue.low + epilogue.raised + 128",
        "floor = epilogue.low + epilogue.raised + 127",
        _HARD,
    ),
)

_JOINED = "tests/kernels/test_vector_rounds.py::test_bias_and_shift_lie_in_one_word"

JOINED = (
    (
        "the bits of a shift below a bias",
        "pybuild/kernels/mve/exact.py",
        "low = self.factors[:, 1:] & ((1 << self.joined) - 1)",
        "low = self.factors[:, 1:] & ((1 << self.joined) - 2)",
        f"{_JOINED}[8-single]",
    ),
    (
        "a bias that leaves its bits",
        "pybuild/kernels/mve/exact.py",
        "half = 1 << (31 - bits)",
        "half = 1 << (32 - bits)",
        "tests/kernels/test_vector_rounds.py::"
        "test_words_are_joined_where_both_have_room",
    ),
    (
        "five bits as a byte",
        "pybuild/kernels/mve/pixel_epilogue.py",
        "word = word | FIVE_BELOW",
        "word = word | 0",
        f"{_JOINED}[5-single]",
    ),
    (
        "a low byte in C",
        "crt/include/crt/rounds.h",
        "return ((n & 255) ^ 128) - 128;",
        "return ((n & 255) ^ 128) - 127;",
        f"{_JOINED}[8-single]",
    ),
    (
        "where the second of two values begins",
        "pybuild/kernels/layers/few_values.py",
        "new = factor, shift, begin - step",
        "new = factor, shift, begin - under",
        "tests/bounds/test_few_values.py::test_channels_of_more_values_are_left_alone",
    ),
    (
        "channels at the low end of the clamp",
        "pybuild/kernels/layers/few_values.py",
        "length = _STEEP if top or low else",
        "length = _STEEP if top else",
        "tests/bounds/test_few_values.py",
    ),
)

PIXELS = (
    (
        "the tie below zero of four pixels",
        "pybuild/kernels/mve/pixel_epilogue.py",
        "return epilogue.low >= epilogue.y_zero",
        "return True",
        f"{_PIXELS}[double]",
    ),
    (
        "a channel's numbers in a table of vectors",
        "pybuild/kernels/mve/pixel_epilogue.py",
        "across, along = (1, 4) if self.turned",
        "across, along = (4, 1) if self.turned",
        f"{_PIXELS}[single]",
    ),
    (
        "the order in which four channels are packed",
        "pybuild/kernels/mve/depthwise_pixels.py",
        "_PAIRS = ((0, 2), (1, 3))",
        "_PAIRS = ((0, 1), (2, 3))",
        _LAYERS,
    ),
    (
        "the last four pixels of a row",
        "pybuild/kernels/mve/depthwise_pixels.py",
        'ox = k.let("pixel", minimum(ox, width - PIXELS))',
        'ox = k.let("pixel", minimum(ox, ox))',
        _LAYERS,
    ),
    (
        "the price of an end by the rule",
        "pybuild/select/instructions.py",
        '"crt_twice_down4": 4',
        '"crt_twice_down4": 1',
        f"{_PRICE}[55]",
    ),
    (
        "the last eight pixels of a row",
        "pybuild/kernels/mve/depthwise_pixels.py",
        "minimum(ox, width - 2 * PIXELS)",
        "minimum(ox, ox)",
        _EIGHTS,
    ),
    (
        "the second four of a row of six pixels",
        "pybuild/kernels/mve/depthwise_pixels.py",
        "channels * (width - PIXELS)",
        "channels * PIXELS",
        _EIGHTS,
    ),
    (
        "the channel that four pixels behind eight end with",
        "pybuild/kernels/mve/depthwise_pixels.py",
        "at = c * (self.finish.size // PIXELS)",
        "at = c * self.finish.size",
        _EIGHTS,
    ),
    (
        "where each of eight pixels is stored",
        "crt/include/crt/halves.h",
        "m * (i / 2) + n * (i % 2)",
        "m * (i / 2) + n",
        f"{_PIXELS}[single]",
    ),
    (
        "one less below zero, on the core",
        "pybuild/emit/kernels/llvm_declared.py",
        "<4 x i32> %h, <4 x i32> %h, i32 1)",
        "<4 x i32> %h, <4 x i32> %h, i32 0)",
        f"{_CORE}[75]",
    ),
    (
        "one less below zero, in C of the core",
        "crt/include/crt/packs.h",
        "vqdmlahq_n_s32(v, v, 1)",
        "vqdmlahq_n_s32(v, v, 0)",
        f"{_CORE}[75]",
    ),
    (
        "a vector of places reaches a byte each",
        "pybuild/bounds/walk.py",
        "size = to.bytes if each else",
        "size = 0 if each else",
        "tests/bounds/test_layers.py::"
        "test_a_byte_stored_in_a_place_of_its_own_is_noticed",
    ),
    (
        "numbers of a channel times 256",
        "crt/include/crt/packs.h",
        "v.lane[i] * 256 + n",
        "v.lane[i] * 255 + n",
        _LAYERS.replace("llvm_equals_numpy[balanced]", "c_equals_numpy[gcc]"),
    ),
    (
        "halves beyond int16 of C",
        "crt/include/crt/packs.h",
        "crt_max_int32(v.lane[i], INT16_MIN)",
        "v.lane[i]",
        f"{_PIXELS}[away]",
    ),
    (
        "padding beside the taps that are left",
        "pybuild/passes/outside.py",
        "around[i] -= taps[0] * gaps[i]",
        "around[i] -= taps[0]",
        _OUTSIDE,
    ),
    (
        "taps that meet data in a later window only",
        "pybuild/passes/outside.py",
        "o * stride + k * gap - pads[0] for o in range(count)",
        "o * stride + k * gap - pads[0] for o in range(1)",
        _OUTSIDE,
    ),
    (
        "the second half of a window of seven columns",
        "pybuild/kernels/mve/depthwise_pixels.py",
        'half = self.given["gap"] * (3 * on)',
        'half = self.given["gap"] * (4 * on)',
        _LAYERS,
    ),
    (
        "where the right half of a window of seven columns begins",
        "pybuild/kernels/mve/depthwise_pixels.py",
        "if n % len(offsets) == 0:",
        "if n == 0:",
        _LAYERS,
    ),
    (
        "vectors of padding beside a row",
        "pybuild/kernels/mve/conv_patches.py",
        "k.store(to, count - step, zeros)",
        "k.store(to, count - step, zeros) if known < 0 else None",
        "tests/kernels/mve/test_few_channels.py",
    ),
    (
        "the channels of each pass, three pixels at a time",
        "pybuild/kernels/mve/conv_layer.py",
        "return (0, 2), (1, 3)",
        "return (0, 1), (2, 3)",
        _LAYERS,
    ),
    (
        "where the third of three pixels is",
        "pybuild/kernels/mve/conv_code.py",
        'offset(sources[-1], given["pitch"])',
        'offset(sources[0], given["pitch"])',
        _LAYERS,
    ),
    (
        "the name of layers of which some channels end by the rule",
        "pybuild/kernels/epilogues/affine_end.py",
        'f"some_{epilogue.exact.key}" if',
        "epilogue.exact.key if",
        "tests/perf/test_names.py",
    ),
)

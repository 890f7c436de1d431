"""Mutations of kernels without vectors, for mutate.py."""

_ORDER = "tests/emit/test_llvm_order.py"
_SPLIT = "tests/kernels/test_affine_split.py"
_DSP = "tests/ops/test_backends.py::test_llvm -k depthwise_stride2_9"
_KERNELS = "tests/kernels/test_block_kernels.py -k equals_numpy"
_CONVERT = "tests/kernels/test_convert.py -k llvm"
_SMALL = "tests/kernels/test_block_kernels.py -k small_layers"
_PAIRS = "tests/kernels/test_block_kernels.py::test_two_sums_in_a_word_are_two_sums"
_FITS = "tests/kernels/test_block_kernels.py::test_what_fits_half_a_word"
_FLOATS = "tests/kernels/test_float_kernels.py::test_llvm_equals_plain_kernels"

_ROWS = "tests/kernels/test_row_kernels.py -k over_by_llvm"
_DEAR = "tests/kernels/test_row_kernels.py -k no_dearer"
_FAIR = "tests/plan/test_price_of_rows.py -k few_pixels"
_SOFTMAX = "tests/kernels/test_kernels.py::test_llvm_equals_numpy"

_BLOCKS = "tests/kernels/test_kernels.py -k many_bytes"

SCALAR = (
    (
        "where LLVM adds a product",
        "pybuild/emit/kernels/llvm_order.py",
        'kind is INT32 and "order" in features',
        'kind is INT32 and "sums" in features',
        _ORDER,
    ),
    (
        "what padding beside a row adds",
        "pybuild/kernels/scalar/depthwise_rows.py",
        "np.delete(taps, within, axis=1)",
        "np.delete(taps, within[:-1], axis=1)",
        _KERNELS,
    ),
    (
        "the column that a window reads next",
        "pybuild/kernels/scalar/depthwise_rows.py",
        "self.channels * (column - before)",
        "self.channels * (column - first)",
        _KERNELS,
    ),
    (
        "rows of windows that are read where they lie",
        "pybuild/kernels/scalar/depthwise_rows.py",
        "if window.out_width > pixels or",
        "if window.out_width > 1 or",
        _DEAR,
    ),
    (
        "taps of a turn where pixels are left over",
        "pybuild/kernels/scalar/conv_layer.py",
        "apart=False, turn=self.unrolled)",
        "apart=False, turn=1)",
        _ROWS,
    ),
    (
        "pixels left over that are copied before their sums",
        "pybuild/kernels/scalar/conv_layer.py",
        "not (self.apart or self.turn)",
        "not self.apart",
        _ROWS,
    ),
    (
        "pixels left over as a block of their own",
        "pybuild/kernels/scalar/conv.py",
        "cost(apart) < _APART * cost(one)",
        "cost(apart) < 0.5 * cost(one)",
        _FAIR,
    ),
    (
        "the last bytes of a row that is moved in blocks",
        "pybuild/kernels/portable/shape.py",
        'k.let("last", size - self.bytes)',
        'k.let("last", size - self.bytes - 1)',
        _BLOCKS,
    ),
    (
        "words at any address on a Cortex-M3",
        "pybuild/targets/target.py",
        '_WORDS = _MULTIPLY | {"words"}',
        "_WORDS = _MULTIPLY",
        _BLOCKS,
    ),
    (
        "the border after the last block",
        "pybuild/kernels/portable/shape.py",
        "by.fill(k, count, odd, ",
        "by.fill(k, count, False, ",
        _BLOCKS,
    ),
    (
        "where a maximum by bytes starts",
        "pybuild/kernels/dsp/pool.py",
        "const(-0x7F7F7F80)",
        "const(0)",
        _BLOCKS,
    ),
    (
        "the greater of each two bytes",
        "pybuild/kernels/base/intrin.py",
        "_greater(24) * (1 << 24)",
        "_greater(16) * (1 << 24)",
        _BLOCKS,
    ),
    (
        "shares of softmax of which nothing is left",
        "pybuild/kernels/portable/softmax.py",
        "minimum(const(first) - spare, 31)",
        "minimum(const(first) - spare, 30)",
        _SOFTMAX,
    ),
    (
        "powers of softmax of which nothing is left",
        "pybuild/kernels/portable/softmax.py",
        "_LEFT = 2048",
        "_LEFT = 8192",
        "tests/ops/test_softmax_tables.py",
    ),
    (
        "the last power of a short table",
        "pybuild/kernels/portable/softmax.py",
        "powers[0] = steps.more",
        "powers[0] += 1 << 24",
        _SOFTMAX,
    ),
    (
        "half a step of a share",
        "pybuild/kernels/portable/softmax.py",
        "(1 + 2 * to.low)) >> 1",
        "(0 + 2 * to.low)) >> 1",
        _SOFTMAX,
    ),
    (
        "half a step of a share in quantised ONNX",
        "pybuild/kernels/portable/softmax.py",
        "const(1) << (shift - 33)",
        "const(1) << (shift - 34)",
        _SOFTMAX,
    ),
    (
        "where accumulators are held",
        "pybuild/kernels/epilogues/affine_split.py",
        "limit = int(np.abs(steps).max(initial=0)) + 1",
        "limit = int(np.abs(steps).max(initial=0)) - 900",
        _SPLIT,
    ),
    (
        "a multiplier that few steps let through",
        "pybuild/kernels/epilogues/affine_split.py",
        "able = _left(rooms).any(1)",
        "able = _left(rooms).all(1)",
        _SPLIT + " -k beside_the_nearest",
    ),
    (
        "parts that are given up early",
        "pybuild/kernels/epilogues/affine_split.py",
        "int(search.missing[hard].sum()) >= fewest[0]",
        "int(search.missing[hard].sum()) >= 0",
        _SPLIT + " -k beside_the_nearest",
    ),
    (
        "the room of an offset",
        "pybuild/kernels/epilogues/affine_split.py",
        "most = wanted - 1 - (",
        "most = wanted + 200000 - (",
        _SPLIT,
    ),
    (
        "the lower part of a multiplier",
        "pybuild/kernels/epilogues/by_channel.py",
        "((acc * lower) >> epilogue.part)",
        "((acc * lower) >> (epilogue.part + 2))",
        _KERNELS,
    ),
    (
        "what storing pixels as uint8 adds",
        "pybuild/kernels/scalar/conv.py",
        "wide = wide - HALF * kernels",
        "wide = wide - (HALF - 1) * kernels",
        _KERNELS,
    ),
    (
        "numbers that are none, by thresholds",
        "pybuild/kernels/portable/convert.py",
        "select(const(_INFINITY) < size, const(0), at)",
        "select(const(_INFINITY + 2) < size, at, at)",
        _CONVERT,
    ),
    (
        "the first step of a search",
        "pybuild/kernels/portable/convert.py",
        "levels + 1 - first)",
        "levels - first)",
        _CONVERT,
    ),
    (
        "the least number of a level",
        "pybuild/kernels/portable/convert.py",
        "return most.astype(np.int32)",
        "return (most + (most > 1 << 24)).astype(np.int32)",
        _CONVERT,
    ),
    (
        "blocks of channels that four do not divide",
        "pybuild/kernels/scalar/conv.py",
        "if window.group_outputs % least == 0:",
        "if window.out_channels:",
        _SMALL,
    ),
    (
        "turns of taps that four do not divide",
        "pybuild/kernels/scalar/conv_layer.py",
        "return min((usual, *whole)",
        "return min((usual, usual)",
        _SMALL,
    ),
    (
        "what an end without high products takes",
        "pybuild/kernels/portable/conv.py",
        "else 78) if slow",
        "else 24) if slow",
        _SMALL,
    ),
    (
        "layers of less than a word on a core with pairs",
        "pybuild/kernels/scalar/conv.py",
        "features and kernels.shape[1] >= WORD:",
        "features and kernels.shape[1] >= 1:",
        _SMALL,
    ),
    (
        "the sign of the lower of two sums in a word",
        "pybuild/kernels/scalar/conv_code.py",
        "upper = [(a - b) >> 16 for",
        "upper = [a >> 16 for",
        _PAIRS,
    ),
    (
        "sums that fit half a word",
        "pybuild/kernels/scalar/conv.py",
        "(255 * up, 255 * down, 128 * (up + down))",
        "(128 * (up + down),)",
        _FITS,
    ),
    (
        "channels that are computed twice",
        "pybuild/kernels/layers/weights.py",
        "return [min(c, channels - size)",
        "return [c % max(1, channels - size + 1)",
        _KERNELS,
    ),
    (
        "the odd channels of a word of weights",
        "pybuild/kernels/dsp/depthwise_code.py",
        "i32(word & mask)",
        "i32(word & (mask | 255))",
        _DSP,
    ),
    (
        "the outputs of a depthwise channel",
        "pybuild/kernels/dsp/depthwise.py",
        "[made[s * multiplier :][:group] for s in starts]",
        "[made[s:][:group] for s in starts]",
        _DSP.replace("stride2_9", "multiplier_2"),
    ),
    (
        "the first weights of a ring",
        "pybuild/kernels/dsp/depthwise_code.py",
        "select(less < 0, more, less)",
        "select(less < 1, more, less)",
        _DSP.replace("stride2_9", "same_relu"),
    ),
    (
        "the last column and the padding in its word",
        "pybuild/kernels/dsp/depthwise_code.py",
        "self._store(to, done * step, self._column(x, channels), fill, plane)",
        "self._store(to, done * step, self._column(x, channels), (const(0),) * 2, "
        "plane)",
        _DSP.replace("stride2_9", "multiplier_2"),
    ),
    (
        "margins of copied channels",
        "pybuild/kernels/scalar/depthwise_code.py",
        "return HALF if self.line_elem is UINT8 else 0",
        "return HALF if self.line_elem is UINT8 else 1",
        _KERNELS,
    ),
    (
        "float channels that are computed twice",
        "pybuild/kernels/layers/weights.py",
        "return [min(c, channels - size)",
        "return [c % max(1, channels - size + 1)",
        _FLOATS,
    ),
    (
        "float columns outside the row",
        "pybuild/kernels/portable/conv_float_code.py",
        "const(0.0, FLOAT32) if x is None",
        "const(1.0, FLOAT32) if x is None",
        _FLOATS,
    ),
    (
        "the last block of float pixels",
        "pybuild/kernels/portable/conv_float_code.py",
        'ox = k.let("ox", minimum(block, g.out_width - n))',
        'ox = k.let("ox", minimum(block, g.out_width - n + 1))',
        _FLOATS,
    ),
    (
        "turns of a float window",
        "pybuild/kernels/portable/conv_float_code.py",
        'k.arg("turns", layer.taps // layer.unrolled)',
        'k.arg("turns", layer.taps // layer.unrolled - 1)',
        _FLOATS,
    ),
    (
        "words that are no neighbours by one instruction",
        "pybuild/emit/kernels/llvm_order.py",
        "name == again and high == low + 1",
        "name == again and high > low",
        f"{_ORDER}::test_words_beside_each_other_are_loaded_by_one_instruction",
    ),
    (
        "sums that stay in their registers",
        "pybuild/emit/kernels/llvm_order.py",
        'sums[name] = ""',
        "del last",
        _ORDER,
    ),
    (
        "loops whose sums LLVM places",
        "pybuild/emit/kernels/llvm_order.py",
        "if any(isinstance(stmt, For) for stmt in statements(loop.body)):",
        "if not loop.body:",
        _ORDER,
    ),
    (
        "the order of loads on RISC-V",
        "pybuild/targets/llvm.py",
        '("order",)',
        "()",
        _ORDER,
    ),
)

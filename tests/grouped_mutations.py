"""Mutations of kernels for groups of channels, and for two tensors four elements at a
time, for mutate.py: its fields."""

_OPERATOR = "tests/ops/test_backends.py::test_llvm[{}]"
_FOURS = "tests/unit/test_kernels.py::test_sums_and_products_four_at_a_time[all]"
_MEANS = "tests/unit/test_kernels.py::test_means_in_sums_of_16_bits"
_GROUPS = "tests/unit/test_grouped_kernels.py::test_llvm_equals_numpy[all]"

_ALIKE = "tests/unit/test_constant_args.py"
_CASE = "tests/ops/test_backends.py::test_llvm[{}-int8-litert-cortex-m4]"

GROUPED = (
    (
        "groups that are computed in place",
        "pybuild/kernels/conv.py",
        "if window.groups == 1:  # all",
        "if window.groups:  # all",
        _OPERATOR.format("conv-groups_pointwise-int8-litert-generic"),
    ),
    (
        "groups computed as one, beside zeros",
        "pybuild/kernels/conv_dsp.py",
        "wider[at, :, at // outputs % times] = taps",
        "wider[at, :, at % times] = taps",
        _GROUPS,
    ),
    (
        "the taps of an output channel that is alone",
        "pybuild/kernels/conv_dsp.py",
        "words = (lanes[:, 1::2] << 16) + (lanes[:, 0::2] & 0xFFFF)",
        "words = (lanes[:, 0::2] << 16) + (lanes[:, 1::2] & 0xFFFF)",
        _GROUPS.replace("all", "some"),
    ),
    (
        "the end of an output channel that is alone",
        "pybuild/kernels/conv_dsp_code.py",
        'scaled = corrected(k.let("scaled", total * 256), plus, minus[0])',
        'scaled = corrected(k.let("scaled", total * 256), plus, plus)',
        _GROUPS.replace("all", "some"),
    ),
    (
        "the first channel of the next group",
        "pybuild/kernels/conv_dsp_code.py",
        "k.assign(first, first + self.inputs)",
        "k.assign(first, first + self.outputs)",
        _GROUPS,
    ),
    (
        "the ends of a group's pairs",
        "pybuild/kernels/conv_dsp.py",
        "return [start + c for start in groups for c in of_group]",
        "return [c for start in groups for c in of_group]",
        _GROUPS,
    ),
    (
        "the bias of a group of int16",
        "pybuild/kernels/conv16.py",
        "channel = self.base + channel",
        "channel = channel + 0",
        _GROUPS,
    ),
    (
        "the taps of a word of a depthwise layer of int16",
        "pybuild/kernels/weights.py",
        "taps[:, :, (0, 2, 1, 3)]",
        "taps[:, :, (0, 1, 2, 3)]",
        _GROUPS,
    ),
    (
        "the zero point of a factor",
        "pybuild/kernels/eltwise_dsp.py",
        'k.arg("b_zeros", _twice(-made.b_zero))',
        'k.arg("b_zeros", _twice(-made.b_zero + 1))',
        _FOURS,
    ),
    (
        "ties of a sum that fall away from zero",
        "pybuild/kernels/affine_add.py",
        "yield round(a + a * 2.0**-bits), round(b + b * 2.0**-bits)",
        "yield round(a - a * 2.0**-bits), round(b - b * 2.0**-bits)",
        "tests/unit/test_affine_add.py",
    ),
    (
        "ties of a sum to even",
        "pybuild/kernels/requant.py",
        "- 1 + ((_X >> _SHIFT) & 1)))",
        "- 1 + ((_X >> _SHIFT) & 0)))",
        _FOURS,
    ),
    (
        "the lower end of a sum's clamp",
        "pybuild/kernels/eltwise_dsp.py",
        "clamp = _Clamp(made.low + 128,",
        "clamp = _Clamp(made.low + 127,",
        _FOURS,
    ),
    (
        "the products of one that stays",
        "pybuild/kernels/eltwise_dsp.py",
        "return MLA_HIGH_LOW(b, a, const(0))",
        "return MLA_HIGH_LOW(a, b, const(0))",
        _FOURS,
    ),
    (
        "elements behind the last four",
        "pybuild/kernels/eltwise_loops.py",
        'with k.loop("j", size, start) as j:',
        'with k.loop("j", size - 1, start) as j:',
        _FOURS,
    ),
    (
        "the cells of a window at the edge of an average",
        "pybuild/kernels/pool.py",
        'begin = k.let("begin", places[0] + wide[0] * channels)',
        'begin = k.let("begin", places[0])',
        "tests/unit/test_kernels.py::test_averages_of_fewer_cells_at_the_edges",
    ),
    (
        "the sum of a lane in the high half",
        "pybuild/kernels/pool_fours.py",
        "*(pair >> 16 for pair in totals)",
        "*(pair >> 17 for pair in totals)",
        "tests/unit/test_kernels.py::test_averages_of_fewer_cells_at_the_edges",
    ),
    (
        "where the next mean begins",
        "pybuild/kernels/reduce.py",
        "channels, channels, 1, count, count)",
        "channels, channels, 1, count, 1)",
        _MEANS,
    ),
    (
        "the start of a mean on pairs",
        "pybuild/kernels/reduce.py",
        "start=lambda _: start,",
        "start=lambda _: const(0),",
        _MEANS,
    ),
    (
        "what kernels give a part that they share",
        "pybuild/kernels/constant_args.py",
        "if len(taken) > 1:",
        "if len(taken) > 2:",
        _ALIKE,
    ),
    (
        "names of parts of other constants",
        "pybuild/kernels/specialise.py",
        'words = (str(fixed[p].value) if p in fixed else "x" for p in numbers)',
        "words = (str(fixed[p].value) for p in numbers if p in fixed)",
        _ALIKE,
    ),
    (
        "code that a layer needs",
        "pybuild/kernels/specialise.py",
        "found += inner if holds else otherwise",
        "found += otherwise",
        _ALIKE,
    ),
    (
        "two columns behind whole groups",
        "pybuild/kernels/depthwise_dsp_sums.py",
        "self._sum(2, x, weights, ends, y)",
        "self._sum(1, x, weights, ends, y)",
        _CASE.format("conv-depthwise_stride2_9_channels"),
    ),
    (
        "the last row of weights, once more where it is",
        "pybuild/kernels/depthwise_dsp_code.py",
        "select(equal(row, rows - 1), const(0), rows * layer.row_words)",
        "select(equal(row, rows - 1), const(1), rows * layer.row_words)",
        _CASE.format("conv-depthwise_same_relu"),
    ),
    (
        "a pixel that a row leaves over",
        "pybuild/kernels/conv_dsp_code.py",
        'k.arg("left_over", self.layer.window.out_width % n)',
        'k.arg("left_over", 0 * n)',
        _CASE.format("conv-odd_row_of_24_outputs"),
    ),
    (
        "rows of several images that are one row each",
        "pybuild/emit/assemble.py",
        "if alone and images == 1:",
        "if alone:",
        "tests/unit/test_row_tables.py",
    ),
    (
        "ways to meet rows that a table has once",
        "pybuild/emit/assemble.py",
        "self.rows.setdefault(rows, len(self.rows))",
        "self.rows.setdefault(rows, 0)",
        "tests/unit/test_row_tables.py",
    ),
    (
        "parts of one name in a model",
        "pybuild/emit/assemble.py",
        "verify_parts(func for func, _ in self.kernels.values())",
        "pass",
        _ALIKE,
    ),
    (
        "parts of one name in an image",
        "pybuild/emit/pool.py",
        "verify_parts(func for func, _ in kernels)",
        "pass",
        _ALIKE,
    ),
)

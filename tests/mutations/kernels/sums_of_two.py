"""Mutations of element-wise kernels that end by their own rule, for mutate.py: its
fields."""

_SUMS = "tests/kernels/test_sums_of_two.py::test_equals_numpy"

SUMS_OF_TWO = (
    (
        "the smaller scale of a sum by its own rule",
        "pybuild/kernels/epilogues/exact_add.py",
        "unit = 1 << (made.left + scaling.left)",
        "unit = 1 << made.left",
        f"{_SUMS}[INT8-cortex-m55]",
    ),
    (
        "what a rule rounded twice takes from values below zero",
        "pybuild/kernels/dsp/eltwise_exact.py",
        "return (high + (value >> 31)) >> right",
        "return high >> right",
        f"{_SUMS}[INT16-cortex-m4]",
    ),
    (
        "the side below zero of a prelu on vectors",
        "pybuild/kernels/mve/eltwise_exact.py",
        "negative = MORE4(x, positive, const(-1))",
        "negative = MORE4(x, positive, const(0))",
        f"{_SUMS}[INT8-cortex-m55]",
    ),
    (
        "the side below zero of a prelu on pairs",
        "pybuild/kernels/dsp/eltwise_exact.py",
        "negative(minimum(x, 0) * slope)",
        "negative(x * slope)",
        f"{_SUMS}[INT8-cortex-m4]",
    ),
    (
        "the bits that LLVM's saturation holds",
        "pybuild/kernels/base/intrin.py",
        "trail=(8,),",
        "trail=(9,),",
        "tests/kernels/test_intrin.py::test_llvm_on_a_cortex_m4",
    ),
    (
        "the sign of a product of int16 on pairs",
        "pybuild/kernels/dsp/eltwise_exact.py",
        "held((high - (twice >> 31)) >> right)",
        "held((high + (twice >> 31)) >> right)",
        f"{_SUMS}[INT16-cortex-m4]",
    ),
    (
        "which column a resized value leans to",
        "pybuild/kernels/any_type/resize.py",
        'k.let("weight1", right * _ONE - both)',
        'k.let("weight1", down * _ONE - both)',
        "tests/ops/test_backends.py::test_llvm"
        "[pool-resize_bilinear_from_corners-int8-litert-cortex-m4]",
    ),
    (
        "what an average of fewer cells is multiplied by",
        "pybuild/kernels/layers/pool_sums.py",
        'factor = k.let("factor", load(table, cells * 2))',
        'factor = k.let("factor", load(table, cells * 2 - 2))',
        "tests/kernels/test_kernels.py::test_averages_of_fewer_cells_at_the_edges",
    ),
    (
        "which sums have a kernel on vectors",
        "pybuild/kernels/mve/eltwise.py",
        "exact = dtype in (INT8, INT16)",
        "exact = dtype is INT8",
        "tests/perf/test_any_operator.py::test_an_operator_is_right_and_fast"
        "[add_int16-cortex-m55]",
    ),
    (
        "rows of a sum that are added on vectors",
        "pybuild/kernels/portable/row_sums.py",
        'total = k.let("total", words_at(before, c))',
        'total = k.let("total", words_at(before))',
        "tests/kernels/mve/test_row_sums.py",
    ),
    (
        "maxima of rows on vectors",
        "pybuild/kernels/portable/row_sums.py",
        'MAX4 if _kind(name) == "maxima" else PLUS4',
        'PLUS4 if _kind(name) == "maxima" else MAX4',
        "tests/kernels/mve/test_row_sums.py",
    ),
    (
        "pixels of a row whose sums are 16 bits",
        "pybuild/kernels/portable/row_sums.py",
        "_MOST_PIXELS = 32767 // 128",
        "_MOST_PIXELS = 2 * 32767 // 128",
        "tests/kernels/mve/test_row_sums.py",
    ),
    (
        "channels of a pair of sums",
        "pybuild/kernels/portable/row_sums.py",
        "enumerate((*low, *(pair >> 16 for pair in pairs)))",
        "enumerate((*(pair >> 16 for pair in pairs), *low))",
        "tests/kernels/mve/test_row_sums.py",
    ),
)

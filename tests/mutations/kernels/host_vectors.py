"""Mutations of kernels on this machine's vectors, for mutate.py: its fields."""

_WIDE = "tests/kernels/wide/test_wide_kernels.py"
_FLOATS = "tests/kernels/wide/test_wide_floats.py::test_llvm_sums_in_order"
_DEPTHWISE = f"{_FLOATS.split('::')[0]}::test_depthwise_sums_in_order_by_llvm"
_LAYERS = f"{_WIDE}::test_llvm_equals_numpy[none]"

HOST_VECTORS = (
    (
        "what inputs without a sign are more",
        "pybuild/kernels/wide/conv.py",
        "starts = sums.bias - _SIGN * kernels.astype(np.int64).sum(1)",
        "starts = sums.bias - (_SIGN - 1) * kernels.astype(np.int64).sum(1)",
        _LAYERS,
    ),
    (
        "padding beside a copied row",
        "pybuild/kernels/wide/conv_code.py",
        'k.arg("right", w.right) * g.channels',
        'k.arg("right", w.right - 1) * g.channels',
        _LAYERS,
    ),
    (
        "pairs of products without an instruction",
        "pybuild/emit/kernels/llvm_wide.py",
        '"<32 x i32> %p", "b", range(1, 2',
        '"<32 x i32> %p", "b", range(0, 2',
        _LAYERS,
    ),
    (
        "the odd taps of each lane, by pairs of products",
        "pybuild/emit/kernels/llvm_wide.py",
        'f"%wo = ashr {_SHORT}',
        'f"%wo = lshr {_SHORT}',
        f"{_WIDE}::test_llvm_equals_numpy[avx2]",
    ),
    (
        "the product without a sign in C",
        "crt/include/crt/wide.h",
        "(uint8_t)left[j]",
        "left[j]",
        f"{_WIDE}::test_c_equals_numpy",
    ),
    (
        "zeros beside a copied row of floats",
        "pybuild/kernels/wide/float_code.py",
        'k.arg("right", w.right) * g.channels',
        'k.arg("right", w.right - 1) * g.channels',
        _FLOATS,
    ),
    (
        "outputs whose window is all in a row of floats",
        "pybuild/kernels/wide/float_depthwise.py",
        "begin = min(-(-w.left // w.stride_w), w.out_width)",
        "begin = min(w.left // w.stride_w, w.out_width)",
        _DEPTHWISE,
    ),
    (
        "where windows of floats leave the row again",
        "pybuild/kernels/wide/float_depthwise.py",
        "(w.width + w.left - w.span) // w.stride_w + 1",
        "(w.width + w.left - w.span) // w.stride_w + 2",
        _DEPTHWISE,
    ),
    (
        "what a float is multiplied with",
        "pybuild/emit/kernels/llvm_wide.py",
        "%p = fmul {_F} %all, %w",
        "%p = fmul {_F} %w, %w",
        _FLOATS,
    ),
    (
        "the greatest value of a float",
        "pybuild/emit/kernels/llvm_wide.py",
        "%c = fcmp olt {_F} %all, %v",
        "%c = fcmp olt {_F} %v, %all",
        _FLOATS,
    ),
)

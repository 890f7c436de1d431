"""Mutations that bring back faults once found by random graphs and damaged files, for
mutate.py: its five fields."""

_PUSH = "tests/regression/test_push_faults.py"
_LIMITS = "tests/regression/test_table_limits.py"

FAULTS = (
    (
        "a ratio that float32 does not hold",
        "pybuild/ops/quant.py",
        "if scale == math.inf:",
        "if scale == -1:",
        "tests/regression/test_far_scales.py",
    ),
    (
        "scales whose sum no fraction fits",
        "pybuild/ops/eltwise.py",
        "if not bits:",
        "if bits > 30:",
        "tests/regression/test_far_scales.py",
    ),
    (
        "a slice that goes back from before the first",
        "pybuild/frontends/onnx/eltwise.py",
        "slice(max(start, -size) if step < 0 else start, end, step)",
        "slice(start, end, step)",
        "tests/regression/test_slices_back.py",
    ),
    (
        "a table's name is given to a tensor",
        "pybuild/emit/assemble.py",
        '"operands", "rows", "links",',
        '"operands", "links",',
        "tests/unit/test_names.py",
    ),
    (
        "variables that nothing reads",
        "pybuild/loop_verify.py",
        "case Let(var) if var.name not in names:",
        "case Let(var) if var.name == '':",
        "tests/regression/test_unused_names.py",
    ),
    (
        "parameters of a part that nothing reads",
        "pybuild/kernels/specialise.py",
        "left = {p: v for p, v in left.items() if p.name in names}",
        "left = {p: v for p, v in left.items() if names}",
        "tests/regression/test_unused_names.py",
    ),
    (
        "sums that are scaled beyond int32",
        "pybuild/ops/conv.py",
        'made.rounding in ("single", "away") and',
        'made.rounding in ("single",) and',
        "tests/regression/test_far_scales.py",
    ),
    (
        "padding that the step table cannot hold",
        "pybuild/emit/limits.py",
        "(max((abs(a.pad) for a in accesses), default=0), _HALF_SIGNED,",
        "(max((abs(a.pad) for a in accesses), default=0), _HALF,",
        _LIMITS,
    ),
    (
        "more inputs than a step counts",
        "pybuild/emit/limits.py",
        "checks.append((count, _BYTE,",
        "checks.append((count, _HALF,",
        _LIMITS,
    ),
    (
        "more rows ahead than a link counts",
        "pybuild/plan/lockstep.py",
        "access.window <= _MOST_BANDS for",
        "access.window > 0 for",
        _LIMITS,
    ),
    (
        "rows pushed to a stage that reads none of them",
        "pybuild/plan/lockstep.py",
        "if node.op == PUSH and step + 1 not in waited:",
        "if node.op == 'none':",
        _PUSH,
    ),
    (
        "a part of an input, pushed",
        "pybuild/plan/push.py",
        "if images * rows * size != graph.tensor(name).bytes:",
        "if not size:",
        _PUSH,
    ),
    (
        "no stages as the fewest bytes",
        "pybuild/plan/push.py",
        "if not found.steps:",
        "if found.steps is None:",
        _PUSH,
    ),
    (
        "a lazy output as a ring",
        "pybuild/plan/cuts.py",
        "return name in self.fixed",
        "return False",
        "tests/regression/test_lazy_rows.py",
    ),
    (
        "what LLVM makes of statements side by side",
        "pybuild/emit/llvm_passes.py",
        "_LAST_GOOD_SLP = 20",
        "_LAST_GOOD_SLP = 22",
        "tests/regression/test_vectoriser.py",
    ),
    (
        "pieces of nothing",
        "pybuild/plan/pieces.py",
        "if not block.bytes or not parts",
        "if not parts",
        "tests/regression/test_empty_tensors.py",
    ),
    (
        "rows on a board that are longer than its memory",
        "crt/src/calls.c",
        "if (bytes <= left && bytes",
        "if (bytes",
        "tests/crt/test_crt.py::test_calls[test_calls.c-gcc-]",
    ),
)

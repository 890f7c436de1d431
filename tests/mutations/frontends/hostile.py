"""Mutations of what bounds and quotes hostile files, for mutate.py: its five fields."""

_BUDGET = "tests/attacks/test_budget.py"
_NAMES = "tests/attacks/test_hostile_names.py"
_REFUSED = f"{_BUDGET}::test_much_is_refused"

HOSTILE = (
    (
        "turns of a loop without nodes cost nothing",
        "pybuild/frontends/onnx/load.py",
        "draft.budget.take_nodes(1 + len(graph.node))",
        "draft.budget.take_nodes(len(graph.node))",
        f"{_REFUSED}[loops_of_nothing]",
    ),
    (
        "functions are counted once, however often they are called",
        "pybuild/frontends/onnx/reader/asked.py",
        "sum(sizes.get(_key(node), 1) for node in nodes)",
        "sum(1 for node in nodes)",
        f"{_BUDGET}::test_functions_are_counted_before_they_are_written_out",
    ),
    (
        "what a packed file grows to",
        "pybuild/params/files.py",
        "Budget(source, len(data)).take_archive(packed)",
        "Budget(source, len(data))",
        f"{_BUDGET}::test_packed_files_are_no_bombs",
    ),
    (
        "a crt.toml that is nested deep",
        "pybuild/project/read.py",
        "    except RecursionError:\n        raise UsageError(str(path)",
        "    except MemoryError:\n        raise UsageError(str(path)",
        f"{_BUDGET}::test_deep_nesting_is_an_error",
    ),
    (
        "a name that ends a comment of C",
        "pybuild/emit/kernels/c.py",
        '("*/", "* /")',
        '("*/ /", "* /")',
        f"{_NAMES}::test_c_compiles_and_make_and_cmake_do_nothing_else",
    ),
    (
        "a name as an element of a drawing",
        "pybuild/package/curve_svg.py",
        "<title>{escape(curve.title)}:",
        "<title>{curve.title}:",
        f"{_NAMES}::test_a_drawing_is_xml",
    ),
    (
        "letters of an equation that are none",
        "pybuild/frontends/onnx/reader/asked.py",
        'if node.op_type == "Einsum" and not',
        'if node.op_type == "einsum" and not',
        "tests/regression/test_fuzzed_files.py",
    ),
    (
        "rows of a resize without limit",
        "pybuild/frontends/tflite/operators/products.py",
        "if many or max(sizes) > MOST_RESIZED:",
        "if many:",
        "tests/regression/test_fuzzed_files.py::test_resized_to_many_rows",
    ),
    (
        "an operator of a scalar that needs an axis",
        "pybuild/frontends/tflite/model.py",
        "except IndexError as error:",
        "except KeyError as error:",
        "tests/regression/test_fuzzed_files.py::test_rows_of_a_scalar",
    ),
    (
        "fewer axes of a batch than none",
        "pybuild/frontends/tflite/operators/moves.py",
        "if not 0 <= batch <= axis or",
        "if not -(1 << 31) <= batch <= axis or",
        "tests/regression/test_fuzzed_files.py",
    ),
    (
        "a piece for each row that there is",
        "pybuild/frontends/tflite/operators/moves.py",
        "[1] * len(call.flat.outputs), True",
        "[1] * min(x.shape[axis], 99), True",
        "tests/regression/test_fuzzed_files.py",
    ),
    (
        "an image resized without limit",
        "pybuild/frontends/onnx/operators/resize.py",
        "out * shape[axis] > _MOST_WEIGHTS",
        "out > _MOST_WEIGHTS",
        "tests/regression/test_fuzzed_files.py",
    ),
)

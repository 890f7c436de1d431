"""Mutations of what `--optimise size` chooses from, for mutate.py: its fields."""

_SMALL = "tests/unit/test_small_kernels.py::{}"

SMALL = (
    (
        "a last pixel alone, of a kernel of little code",
        "pybuild/kernels/conv_small_code.py",
        "minimum(self.out_width - 1 - ox, 1)",
        "minimum(self.out_width - ox, 1)",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "two or three output channels, of a kernel of little code",
        "pybuild/kernels/conv_small_code.py",
        "return min(2, self.window.out_channels - 2)",
        "return 2",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "a last word that reaches back",
        "pybuild/kernels/conv_small_code.py",
        "new = at <= byte < self.run",
        "new = byte < self.run",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "what stands for a column outside, of a kernel of little code",
        "pybuild/kernels/conv_small_code.py",
        "self.x_zero & 0xFF",
        "0",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "pieces shorter than a word",
        "pybuild/kernels/conv_small_code.py",
        "self.inside - self.run - first) < 0",
        "self.inside - 1 - first) < 0",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "a line that is no whole words",
        "pybuild/kernels/small_lines.py",
        "last, last & (WORD - 1), WORD",
        "last, WORD, WORD",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "signed ends by a kernel without",
        "pybuild/kernels/small_end.py",
        "(False, True) if ending.below is None else (True,)",
        "(False, True)",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "numbers that have no room in half an argument",
        "pybuild/kernels/conv_small.py",
        "have_room(layer.arguments) and",
        "layer.arguments and",
        _SMALL.format("test_two_numbers_in_an_argument_have_room"),
    ),
    (
        "taps behind a depthwise window",
        "pybuild/kernels/depthwise_small.py",
        "whole[..., : w.kernel_w] = kernels",
        "whole[..., -w.kernel_w :] = kernels",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "channels of a depthwise layer that are no fours",
        "pybuild/kernels/depthwise_small.py",
        "minimum(group, channels - GROUP)",
        "group",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "rows below an image, by a kernel of little code",
        "pybuild/kernels/depthwise_small.py",
        "const(0) <= minimum(row, height - 1 - row)",
        "const(0) <= row",
        _SMALL.format("test_llvm_equals_numpy"),
    ),
    (
        "tables count where code is to be little",
        "pybuild/kernels/choose.py",
        "size += sum(o.tables for o in tried.values())",
        "size += 0",
        _SMALL.format("test_tables_count_where_code_is_to_be_little"),
    ),
    (
        "layers of one other kernel",
        "pybuild/kernels/choose.py",
        "if len(theirs) > 1 else ()",
        "if len(theirs) > 9 else ()",
        _SMALL.format("test_a_kernel_takes_the_layers_of_one_other"),
    ),
    (
        "operands that steps share",
        "pybuild/emit/runs.py",
        'self._runs.add([replace(o, comment="") for o in run])',
        "self._runs.add(run)",
        _SMALL.format("test_steps_share_operands_whatever_lies_there"),
    ),
)

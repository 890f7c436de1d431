"""Mutations of what is printed as assembly, and of ends of pixels in pairs, for
mutate.py: its fields."""

_BLOCKS = "tests/emit/test_c_blocks.py"
_MEANT = f"{_BLOCKS}::test_assembly_is_what_the_loops_mean[-O2]"
_LAYERS = "tests/kernels/test_vector_kernels.py::test_llvm_equals_numpy[balanced]"
_TEXT = "pybuild/emit/kernels/block_text.py"
_STATEMENTS = "pybuild/emit/kernels/c_blocks.py"
_VECTORS = "pybuild/emit/kernels/vector_registers.py"

BLOCKS = (
    (
        "a pointer that moves shares no register with one that stays",
        _TEXT,
        '"+&" * moved',
        '"+" * moved',
        _MEANT,
    ),
    (
        "turns of a loop in assembly",
        _TEXT,
        "crt_turns({count}, {loop.step})",
        "crt_turns({count}, 1)",
        _MEANT,
    ),
    (
        "a last turn that is not whole",
        "crt/include/crt/inline.h",
        "(count + step - 1) / step",
        "count / step",
        _MEANT,
    ),
    (
        "a sum that goes on in assembly",
        _STATEMENTS,
        "begins = total not in self._in and total in self._begun",
        "begins = total not in self._in",
        _MEANT,
    ),
    (
        "a sum whose register the next takes is read no more",
        _STATEMENTS,
        "if begins and self._idle and total not in self.block.after:",
        "if begins and self._idle:",
        _MEANT,
    ),
    (
        "a pointer that moves and loads nothing",
        _STATEMENTS,
        "isinstance(x.type, PointerType) and x not in self.pointers for x in moved",
        "False for x in moved",
        f"{_BLOCKS}::test_a_pointer_that_moves_without_a_load_is_no_block",
    ),
    (
        "how far a load moves its pointer",
        _STATEMENTS,
        "nexts = [at for _, at in of_pointer[1:]] + [total]",
        "nexts = [at for _, at in of_pointer[1:]] + [of_pointer[-1][1]]",
        _MEANT,
    ),
    (
        "a vector that is loaded from elsewhere",
        _STATEMENTS,
        "Place(x, behind.get(x, 0) + _size(x, index))",
        "Place(x, _size(x, index))",
        _MEANT,
    ),
    (
        "a vector that is kept in a register that another needs",
        _VECTORS,
        "self._free.append(self._kept.pop(far))",
        "self._free.append(self._kept[far])",
        _MEANT,
    ),
    (
        "a vector that is loaded again",
        _VECTORS,
        "there = place in self._kept",
        "there = False",
        f"{_BLOCKS}::test_a_vector_that_is_loaded_again_is_kept",
    ),
    (
        "lanes of sums that are packed",
        _STATEMENTS,
        '"crt_odd4": ((3, 1, 1, 2),)',
        '"crt_odd4": ((3, 1, 2, 1),)',
        _MEANT,
    ),
    (
        "where two pixels are stored together",
        "pybuild/kernels/mve/conv_code.py",
        "PLACES8(1, out_channels)",
        "PLACES8(out_channels, 1)",
        _LAYERS,
    ),
    (
        "limits of two pixels that are tighter than int8",
        "pybuild/kernels/mve/epilogue.py",
        "limits = (self.low, self.high) if self.epilogue.clamped else None",
        "limits = None",
        _LAYERS,
    ),
    (
        "limits of two pixels that end by the rule",
        "pybuild/kernels/mve/exact.py",
        "limits = (low + zero, high + zero) if",
        "limits = (low, high) if",
        _LAYERS,
    ),
)

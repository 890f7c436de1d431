"""LLVM's passes over a module, for hosts and for objects. Knows no kernel."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

# whether statements side by side may become vectors: LLVM 22.1 fills lanes that lack
# an operation with copies, and loses the high halves of sums of two int16 in a word; of
# products that are scaled by a power of two it keeps 16 bits. Of 21 nothing is known
_LAST_GOOD_SLP = 20
_NARROW = frozenset({"i8", "i16"})


def optimise(parsed: Any, machine: Any, host: bool) -> None:
    """Optimises as LLVM does at its highest level.

    host  has a vector unit: loops are unrolled, too (without one code grows threefold
          and gains nothing), and floats side by side become vectors
    """
    good = llvm.llvm_version_info[0] <= _LAST_GOOD_SLP
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = host
    options.loop_vectorization = True
    options.slp_vectorization = good or (host and not _has_narrow(parsed))
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    try:
        passes.run(parsed, builder)
    finally:
        # llvmlite 0.50 frees none: ObjectRef's own _dispose, which does nothing, goes
        # before NewPassManager's
        if not passes.closed:
            NewPassManager._dispose(passes)
            passes.detach()


def _has_narrow(parsed: Any) -> bool:
    """True if anything is computed in less than 32 bits."""
    return any(
        str(one.type) in _NARROW
        for function in parsed.functions
        for block in function.blocks
        for one in block.instructions
    )

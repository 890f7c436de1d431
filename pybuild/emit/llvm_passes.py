"""LLVM's passes over a module, for hosts and for objects. Knows no kernel."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

# whether statements side by side may become vectors: LLVM 22.1 fills lanes that lack
# an operation with copies, and loses the high halves of sums of two int16 in a word; of
# products that are scaled by a power of two it keeps 16 bits. Of 21 nothing is known
_LAST_GOOD_SLP = 20


def optimise(parsed: Any, machine: Any, unroll: bool) -> None:
    """All that LLVM does at its highest level.

    unroll  loops, too: where there is no vector unit, code grows threefold and gains
            nothing
    """
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = unroll
    options.loop_vectorization = True
    options.slp_vectorization = llvm.llvm_version_info[0] <= _LAST_GOOD_SLP
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)

"""LLVM's passes over a module, for hosts and for objects. Knows no kernel."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm


def optimise(parsed: Any, machine: Any, unroll: bool) -> None:
    """All that LLVM does at its highest level.

    unroll  loops, too: where there is no vector unit, code grows threefold and gains
            nothing
    """
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = unroll
    options.loop_vectorization = True
    options.slp_vectorization = _has_good_slp()
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)


@functools.cache
def _has_good_slp() -> bool:
    """Whether statements side by side may become vectors.

    LLVM 22.1 fills lanes that lack an operation with copies, and loses the high halves
    of sums of two int16 in a word: it is told not to. Earlier versions do no such
    thing; of others nothing is known, not even whether they have the option.
    """
    version: int = llvm.llvm_version_info[0]
    if version == 22:
        llvm.set_option("pybuild", "-slp-copyable-elements=false")
    return version == 22 or version < 21

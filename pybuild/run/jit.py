"""LLVM IR to machine code with llvmlite: in memory for the host, objects for MCUs."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

from pybuild.emit.model_llvm import module
from pybuild.emit.tables import Tables
from pybuild.install import host_library
from pybuild.plan.plan import Plan
from pybuild.run.native import Net


@functools.cache
def _ready() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _host() -> Any:
    """The processor this runs on, all its features included; an engine eats it."""
    _ready()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )


def _optimise(parsed: Any, machine: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)


class Jit:
    """A model in memory; `model` is the address of its struct crt_model.

    Owner   keep the object as long as anything uses the model
    """

    def __init__(self, tables: Tables) -> None:
        machine = _host()
        text = module(tables, machine.triple, str(machine.target_data))
        parsed = llvm.parse_assembly(text)
        parsed.verify()
        _optimise(parsed, machine)
        self._engine = llvm.create_mcjit_compiler(parsed, machine)
        self._engine.finalize_object()
        self.model = int(self._engine.get_global_value_address(f"{tables.name}_model"))


def jit_net(plan: Plan, tables: Tables) -> Net:
    """An instance of a model compiled in memory for this machine."""
    jit = Jit(tables)
    return Net(plan, host_library(), jit.model, jit)

"""How LLVM is told of each processor: triple, CPU, features. Knows no kernel.

The data layout, and with it pointer bytes and alignment, is LLVM's own of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.errors import BuildError
from pybuild.targets.target import target_named


@dataclass(frozen=True)
class Llvm:
    """A processor for LLVM.

    triple    of four parts: of three, LLVM takes hf for soft float, silently. The GNU
              environment makes kernels call memset as C does, no __aeabi_memclr8
    features  everything that tells this core from others of its name
    abi       of the calling convention where the triple does not say it
    keeps     what LLVM must leave as kernels are written: "order" of loads where they
              say so, or "steps" of pointers in loops that are unrolled already
    """

    triple: str
    cpu: str
    features: str = ""
    abi: str = ""
    keeps: tuple[str, ...] = ()

    @property
    def has(self) -> frozenset[str]:
        """What kernels are printed for."""
        features = self.features.replace("+", "").split(",")
        return frozenset([*features, *self.keeps])


# kernels hold no double: single precision runs on either FPU of a Cortex-M7
LLVM = {
    "cortex-m0": Llvm("thumbv6m-unknown-none-gnueabi", "cortex-m0", keeps=("steps",)),
    "cortex-m3": Llvm("thumbv7m-unknown-none-gnueabi", "cortex-m3", keeps=("steps",)),
    "cortex-m4": Llvm(
        "thumbv7em-unknown-none-gnueabihf",
        "cortex-m4",
        "+dsp,+vfp4d16sp",
        keeps=("steps",),
    ),
    "cortex-m7": Llvm(
        "thumbv7em-unknown-none-gnueabihf",
        "cortex-m7",
        "+dsp,+fp-armv8d16sp,-fp64",
        keeps=("steps",),
    ),
    "cortex-m33": Llvm(
        "thumbv8m.main-unknown-none-gnueabihf",
        "cortex-m33",
        "+dsp,+fp-armv8d16sp",
        keeps=("steps",),
    ),
    "cortex-m55": Llvm(
        "thumbv8.1m.main-unknown-none-gnueabihf",
        "cortex-m55",
        "+dsp,+fp-armv8d16,+mve,+mve.fp",
    ),
    "rv32imc": Llvm(
        "riscv32-unknown-none-elf", "generic-rv32", "+m,+c", "ilp32", ("order",)
    ),
}


def llvm_named(target: str) -> Llvm:
    """The facts of a target.

    Errors  BuildError for an unknown one, and one that no object is made for
    """
    target_named(target)
    if target not in LLVM:
        what = f"objects are not made for the target '{target}'"
        raise BuildError("--emit obj", what, f"--target {', '.join(LLVM)}")
    return LLVM[target]

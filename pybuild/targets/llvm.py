"""LLVM's names for each processor: triple, CPU, features. Knows no kernel.

The data layout, and with it pointer bytes and alignment, is LLVM's own of these.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.errors import BuildError
from pybuild.records import dataclass
from pybuild.targets.names import core_of, target_named


@dataclass(frozen=True)
class Llvm:
    """A processor for LLVM.

    triple    of four parts: of three, LLVM takes hf for soft float, silently. The GNU
              environment makes kernels call memset as C does, no __aeabi_memclr8
    features  everything that tells this core from others of its name
    abi       of the calling convention where the triple does not say it
    keeps     what LLVM must leave as kernels are written: "order" of loads where they
              say so, and of sums of products in loops that are unrolled already, or
              "steps" of pointers in such loops
    """

    triple: str
    cpu: str
    features: str = ""
    abi: str = ""
    keeps: tuple[str, ...] = ()

    @property
    def arch(self) -> str:
        """The architecture, as in targets/core.py."""
        return "arm" if self.triple.startswith("thumb") else "riscv"

    @property
    def is_linux(self) -> bool:
        """True if an operating system loads its programs, anywhere in memory."""
        return "-linux" in self.triple

    @property
    def has(self) -> frozenset[str]:
        """The features that kernels are printed for."""
        features = self.features.replace("+", "").split(",")
        return frozenset([*features, *self.keeps])


# kernels hold no double: single precision runs on either FPU of a Cortex-M7
LLVM = {
    "cortex-m0": Llvm(
        "thumbv6m-unknown-none-gnueabi", "cortex-m0", keeps=("steps", "order")
    ),
    "cortex-m3": Llvm(
        "thumbv7m-unknown-none-gnueabi", "cortex-m3", keeps=("steps", "order")
    ),
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

_RV32 = LLVM["rv32imc"]
LLVM |= {
    name: replace(
        _RV32, features=f"+m,+c,{more},+zvl128b", abi=abi, keeps=("order", "rvv")
    )
    for name, more, abi in (
        ("rv32imcv", "+v", "ilp32d"),
        ("rv32imc_zve32x", "+zve32x", "ilp32"),
    )
}
LLVM["rv64gcv"] = Llvm(
    "riscv64-unknown-linux-gnu", "generic-rv64", "+64bit,+m,+a,+f,+d,+c,+v", "lp64d",
    ("order", "rvv"),
)  # fmt: skip
# the same code generators with what these cores have more, or less
_NEAR = {
    "cortex-m0plus": replace(LLVM["cortex-m0"], cpu="cortex-m0plus"),
    "cortex-m23": replace(
        LLVM["cortex-m0"], triple="thumbv8m.base-unknown-none-gnueabi", cpu="cortex-m23"
    ),
    "cortex-m33-nodsp": replace(
        LLVM["cortex-m3"],
        triple="thumbv8m.main-unknown-none-gnueabi",
        cpu="cortex-m33",
        features="-dsp,-fp-armv8d16sp",
    ),
    **{n: replace(LLVM["cortex-m55"], cpu=n) for n in ("cortex-m52", "cortex-m85")},
    "rv32i": replace(_RV32, features=""),
    "rv32im": replace(_RV32, features="+m"),
    "rv32imac": replace(_RV32, features="+m,+a,+c"),
    "rv32imac_zba_zbb": replace(_RV32, features="+m,+a,+c,+zba,+zbb"),
    "rv32ec": replace(_RV32, features="+e,+c", abi="ilp32e"),
    "rv32emc": replace(_RV32, features="+e,+m,+c", abi="ilp32e"),
}


def llvm_named(target: str) -> Llvm:
    """The facts of a target.

    Errors  BuildError for an unknown one, and one that no object is made for
    """
    target_named(target)
    core = core_of(target)
    known = LLVM | _NEAR
    name = core.name if core and target not in known else target
    if name not in known:
        what = f"objects are not made for the target '{target}'"
        raise BuildError("--emit obj", what, f"--target {', '.join(known)}")
    return known[name]

"""What a kernel may use on the machine it is compiled for: facts, no choices."""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.errors import BuildError


@dataclass(frozen=True)
class Target:
    """A processor as kernels and the planner see it.

    triple, cpu, features  as LLVM spells them; "" for any machine
    pointer_bytes          of the target's ABI
    int8_blocks, float_blocks  sums that its registers hold at once, largest first
    """

    name: str
    triple: str = ""
    cpu: str = ""
    features: str = ""
    pointer_bytes: int = 4
    int8_blocks: tuple[int, ...] = (4, 1)
    float_blocks: tuple[int, ...] = (8, 1)


TARGETS = {
    target.name: target
    for target in (
        Target("generic"),
        # vector registers: sums of 16 neighbouring channels side by side
        Target("host", "", "", "", 8, (16, 4, 1), (16, 8, 1)),
        Target("cortex-m0", "thumbv6m-unknown-none-eabi", "cortex-m0"),
        Target("cortex-m3", "thumbv7m-unknown-none-eabi", "cortex-m3"),
        Target("cortex-m4", "thumbv7em-unknown-none-eabihf", "cortex-m4"),
        Target("cortex-m7", "thumbv7em-unknown-none-eabihf", "cortex-m7"),
        Target("cortex-m33", "thumbv8m.main-unknown-none-eabihf", "cortex-m33"),
        Target("cortex-m55", "thumbv8.1m.main-unknown-none-eabihf", "cortex-m55"),
        Target("rv32imc", "riscv32-unknown-none-elf", "generic-rv32", "+m,+c"),
    )
}


def target_named(name: str) -> Target:
    """The target of that name.

    Errors  BuildError listing the known ones
    """
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise BuildError("--target", f"'{name}' is not known", f"one of {known}")
    return TARGETS[name]

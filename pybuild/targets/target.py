"""What a kernel may use on the machine it is compiled for: facts, no choices."""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.errors import BuildError


@dataclass(frozen=True)
class Target:
    """A processor as kernels and the planner see it.

    int8_blocks, float_blocks  sums that its registers hold at once, largest first
    features                   instructions beyond the plain ones:
                               "dsp": pairs of int16, words at any address
    operators  what it can compute; None: everything
    pace       time that one of a kernel's estimated instructions takes
    copy_pace, copy_start      time to move a byte to or from it, and to begin
    """

    name: str
    int8_blocks: tuple[int, ...] = (4, 1)
    float_blocks: tuple[int, ...] = (8, 1)
    features: frozenset[str] = frozenset()
    operators: frozenset[str] | None = None
    pace: float = 1.0
    copy_pace: float = 0.25
    copy_start: float = 100.0

    def can(self, op: str) -> bool:
        return self.operators is None or op in self.operators


# cores with 13 integer and 32 single-precision registers are all alike here
_CORES = (
    "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55",
    "rv32imc",
)  # fmt: skip
_DSP_CORES = ("cortex-m4", "cortex-m7", "cortex-m33")
TARGETS = {
    target.name: target
    for target in (
        Target("generic"),
        # vector registers: sums of 16 neighbouring channels side by side
        Target("host", (16, 4, 1), (16, 8, 1)),
        *(
            Target(name, features=frozenset({"dsp"} if name in _DSP_CORES else ()))
            for name in _CORES
        ),
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

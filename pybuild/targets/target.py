"""The features that a kernel may use on the machine it is compiled for: facts, no
choices."""

from __future__ import annotations

from pybuild.records import dataclass


@dataclass(frozen=True)
class Target:
    """A processor as kernels and the planner see it.

    float_blocks               sums that its registers hold at once, largest first
    sums                       (output channels, pixels) whose int8 sums are kept in
                               registers while single products are added; (): there
                               is not a kernel for it
    row_sums                   neighbouring pixels of one channel, likewise
    float_sums  (output channels, pixels) whose float sums are kept in registers; ():
                there is no kernel for it
    features                   instructions beyond the plain ones:
                               "dsp": pairs of int16
                               "words": those at any address
                               "mulhi": the high half of a product
                               "signed_bytes": loads of them near a pointer
                               "mve": vectors of 16 bytes
                               "wide": vectors of 16 words
                               "rvv": RISC-V's vectors, of any length
    float_calls                operations on floats are calls of functions
    operators  what it can compute; None: everything
    pace       time that one of a kernel's estimated instructions takes
    copy_pace, copy_start      time to move a byte to or from it, and to begin
    """

    name: str
    float_blocks: tuple[int, ...] = (8, 1)
    sums: tuple[tuple[int, int], ...] = ()
    row_sums: int = 0
    float_sums: tuple[tuple[int, int], ...] = ()
    features: frozenset[str] = frozenset()
    float_calls: bool = False
    operators: frozenset[str] | None = None
    pace: float = 1.0
    copy_pace: float = 0.25
    copy_start: float = 100.0

    def can(self, op: str) -> bool:
        return self.operators is None or op in self.operators


# Cortex-M have 13 integer registers, of which M0 computes in 8 only; RISC-V has 31
_PRODUCTS = ((4, 2), (4, 1))
_MULTIPLY = frozenset({"mulhi", "signed_bytes"})
_WORDS = _MULTIPLY | {"words"}
_DSP = _WORDS | {"dsp"}
_WIDE = (*((16, pixels) for pixels in (5, 4, 3, 2, 1)), (8, 6), (8, 4))
_RV32_SUMS = ((4, 4), (4, 3), (4, 2), (8, 1), (4, 1))
# 32 registers of single floats: sums, and what is loaded for them
_SINGLE = ((4, 5), (4, 4), (4, 3), (8, 2), (16, 1), (8, 1), (4, 1))
TARGETS = {
    target.name: target
    for target in (
        Target("generic", float_sums=((8, 4), (8, 3), (8, 2), (8, 1))),
        # vector registers: sums of 16 neighbouring channels side by side
        Target("host", (16, 8, 1), float_sums=_WIDE, features=frozenset({"wide"})),
        Target("cortex-m0", sums=((4, 1),), row_sums=3, float_calls=True),
        Target(
            "cortex-m3",
            sums=_PRODUCTS,
            row_sums=5,
            features=_WORDS,
            float_calls=True,
        ),
        *(
            Target(n, sums=_PRODUCTS, row_sums=5, float_sums=_SINGLE, features=_DSP)
            for n in ("cortex-m4", "cortex-m7", "cortex-m33")
        ),
        Target("cortex-m55", row_sums=5, features=_MULTIPLY | {"mve"}),
        Target(
            "rv32imc",
            sums=_RV32_SUMS,
            row_sums=6,
            features=_MULTIPLY,
            float_calls=True,
        ),
        # with vectors: V comes with a unit for floats, Zve32x without
        *(
            Target(
                name,
                sums=_RV32_SUMS,
                row_sums=6,
                features=_MULTIPLY | {"rvv"},
                float_calls=calls,
            )
            for name, calls in (
                ("rv32imcv", False),
                ("rv32imc_zve32x", True),
                ("rv64gcv", False),
            )
        ),
        # without a multiplier, or with 16 registers
        Target("rv32ec", sums=((4, 1),), row_sums=3, float_calls=True),
        Target("xtensa", sums=((4, 1),), row_sums=3, float_calls=True),
        # that with a unit for single floats
        Target("esp32", sums=((4, 1),), row_sums=3, float_sums=((4, 2), (4, 1))),
    )
}

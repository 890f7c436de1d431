"""Vectors of floats: how many lanes a target has, and what kernels do with them."""

from __future__ import annotations

from pybuild.ir.loop import FLOAT32, Expr, Intrin, Operand, VectorType, wide
from pybuild.kernels.base import floats, reals, wide_vectors
from pybuild.records import dataclass
from pybuild.targets.target import Target


@dataclass(frozen=True)
class RealVectors:
    """One kind of vectors.

    key           in names of kernels
    lanes         floats of a vector
    add_product   in each lane: v + x * w, rounded twice, of one x
    add_products  the same, of an x of each lane
    at_least      v, but no less than x; NaN stays. at_most  likewise
    unrolled      taps that may be written in one turn; of Helium's gcc moves loads
                  before them, and sums to memory
    shapes        (vectors of channels, pixels) whose sums, a vector of weights and a
                  product are in registers together
    half_shapes   the same of weights of float16, of which one load has two vectors; of
                  an odd number of vectors each has one; (): there is no kernel
    """

    key: str
    lanes: int
    add_product: Intrin
    add_products: Intrin
    at_least: Intrin
    at_most: Intrin
    unrolled: tuple[int, ...]
    shapes: tuple[tuple[int, int], ...]
    half_shapes: tuple[tuple[int, int], ...] = ()

    def at(self, pointer: Expr, index: Operand = 0) -> Expr:
        """A vector of floats in memory."""
        return wide(pointer, index, VectorType(FLOAT32, self.lanes))

    def clamped(self, value: Expr, low: Expr | None, high: Expr | None) -> Expr:
        """Floats held within what there is of both ends."""
        if low is not None:
            value = self.at_least(value, low)
        return value if high is None else self.at_most(value, high)


# the sixteen registers of half a vector that AVX2 has
WIDE = RealVectors(
    "wide", wide_vectors.LANES, wide_vectors.ADD_PRODUCT, wide_vectors.ADD_PRODUCTS,
    wide_vectors.AT_LEAST, wide_vectors.AT_MOST, (4, 3, 2, 1),
    (
        *((1, pixels) for pixels in (6, 5, 4, 3, 2, 1)),
        *((2, 3), (2, 2), (2, 1), (3, 2), (3, 1), (4, 1), (5, 1), (6, 1)),
    ),
)  # fmt: skip
# the eight registers of Helium
MVE = RealVectors(
    "mve", reals.LANES, floats.ADD_PRODUCT4, floats.ADD_PRODUCTS4, floats.AT_LEAST4,
    floats.AT_MOST4, (1,),
    (*((1, pixels) for pixels in (6, 5, 4, 3, 2, 1)), (2, 2), (2, 1), (3, 1)),
    (*((1, pixels) for pixels in (6, 5, 4, 3, 2, 1)), (2, 2), (2, 1), (4, 1)),
)  # fmt: skip


def real_vectors(target: Target) -> RealVectors | None:
    """Those of a target; None: it has none."""
    if wide_vectors.FEATURE in target.features:
        return WIDE
    return MVE if "mve" in target.features and not target.float_calls else None

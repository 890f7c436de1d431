"""Vectors of floats: how many lanes a target has, and what kernels do with them."""

from __future__ import annotations

from pybuild.ir.loop import FLOAT32, Expr, Intrin, Operand, VectorType, wide
from pybuild.kernels.base import floats, reals, wide_vectors
from pybuild.records import dataclass
from pybuild.targets.target import Target


@dataclass(frozen=True)
class RealVectors:
    """A kind of vectors of floats.

    key           in names of kernels
    lanes         floats per vector
    add_product   in each lane: v + x * w, rounded twice, with the same x for all lanes
    add_products  the same with an x for each lane
    at_least      the maximum of v and x; NaN stays. at_most likewise
    unrolled      the most taps in one iteration: Helium's gcc moves loads ahead of them
                  and spills sums
    shapes        (vectors of channels, pixels) whose sums fit in registers, with a
                  vector of weights and a product
    half_shapes   the same for float16 weights, of which one load gives two vectors;
                  with an odd number of vectors, each has its own load; (): there is no
                  kernel
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
        """Load a vector of floats from memory."""
        return wide(pointer, index, VectorType(FLOAT32, self.lanes))

    def clamped(self, value: Expr, low: Expr | None, high: Expr | None) -> Expr:
        """Clamp a vector of floats to the limits that are given."""
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
    """Return the vectors of a target; None if it has none."""
    if wide_vectors.FEATURE in target.features:
        return WIDE
    return MVE if "mve" in target.features and not target.float_calls else None

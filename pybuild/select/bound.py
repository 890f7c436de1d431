"""The lower limit of any kernel: instructions of a multiply-accumulate, counting
nothing else. A fact of the core; knows no kernel.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.select.core_prices import PRICES, Prices
from pybuild.targets.target import Target

# products that one instruction adds up, by bytes of an element
_VECTOR = {1: 16, 2: 8, 4: 4}
_FLOATS = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16)


def least_per_mac(target: Target, dtype: DType) -> float:
    """The fewest instructions per MAC of a layer with weights or operands of this type,
    each product on its own.

    Source  VMLADAVA.S8 and .S16 add up 16 and 8 products (Armv8.1-M), SMLAD two;
            floats are multiplied and added in two (docs/integers.md)
    """
    prices = PRICES.get(target.name, Prices())
    vector = _VECTOR.get(dtype.bytes, 1) if "mve" in target.features else 1
    if dtype in _FLOATS:
        return 2 * prices.real if target.float_calls else 2 / vector
    if vector > 1:
        return 1 / vector
    return prices.mac / 2 if "dsp" in target.features else prices.mac

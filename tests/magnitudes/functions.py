"""What functions of floats are in float64, and how far a result may be from that.

    FUNCTIONS["softplus"]: log(1 + exp(x)), within 2 units in the last place

The bounds stand in docs/operators.md: python -m tests.magnitudes.table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.magnitudes.grid import Bound

Real = Callable[[Any], Any]
# a subnormal number is not worth more code
TINY = 1.2e-38


_USUAL = Bound()


@dataclass(frozen=True)
class Function:
    """true   of float64
    bound  of float32; of float16 the nearest, or next to it where two are as near
    words  where the bound alone says too little
    """

    true: Real
    bound: Bound = _USUAL
    words: str = ""


def _erfc(x: Any) -> Any:
    return np.vectorize(math.erfc, otypes=[np.float64])(x)


def _logistic(x: Any) -> Any:
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1.0) / (1 + power)


def _softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def _mish(x: Any) -> Any:
    n = np.exp(np.minimum(x, 40))
    return x * (n * (n + 2) / (n * (n + 2) + 2))


def _gelu_tanh(x: Any) -> Any:
    return x * _logistic(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def held(low: float, high: float) -> Real:
    return lambda x: np.where(np.isnan(x), x, np.clip(x, low, high))


def below_zero(below: Real, above: Real = lambda x: x) -> Real:
    return lambda x: np.where(x < 0, below(x), above(x))


_EXACT = Bound(0.0)
_GELU = Bound(200.0, 2e-37)
FUNCTIONS: dict[str, Function] = {
    "abs": Function(np.abs, _EXACT),
    "acos": Function(np.arccos, Bound(3)),
    "acosh": Function(np.arccosh, Bound(3)),
    "asin": Function(np.arcsin),
    "asinh": Function(np.arcsinh, Bound(3)),
    "atan": Function(np.arctan),
    "atanh": Function(np.arctanh, Bound(3)),
    "ceil": Function(np.ceil, _EXACT),
    "copy": Function(lambda x: x, _EXACT),
    "cos": Function(np.cos),
    "cosh": Function(np.cosh, Bound(3)),
    "erf": Function(np.vectorize(math.erf, otypes=[np.float64])),
    "exp": Function(np.exp),
    "expm1": Function(np.expm1),
    "floor": Function(np.floor, _EXACT),
    "gelu": Function(lambda x: x * _erfc(-x * math.sqrt(0.5)) / 2, _GELU),
    "gelu_tanh": Function(_gelu_tanh, _GELU),
    "log": Function(np.log),
    "log1p": Function(np.log1p, Bound(3)),
    "logistic": Function(_logistic, Bound(2, TINY)),
    "mish": Function(_mish, Bound(4, TINY)),
    "negate": Function(np.negative, _EXACT),
    "round": Function(np.rint, _EXACT),
    "sigmoid": Function(_logistic, Bound(2, TINY)),
    "sign": Function(np.sign, _EXACT),
    "sin": Function(np.sin),
    "sinh": Function(np.sinh, Bound(4)),
    "softplus": Function(_softplus),
    "sqrt": Function(np.sqrt, Bound(1)),
    "tan": Function(np.tan, Bound(3)),
    "tanh": Function(np.tanh),
}

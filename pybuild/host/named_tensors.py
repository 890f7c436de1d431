"""The tensors of an instance by name or number, and arrays that fit them; wherever the
instance is.
"""

from __future__ import annotations

import abc
import operator
import sys
from collections.abc import Mapping
from typing import Any, NoReturn, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike

from pybuild.dtype import Array
from pybuild.host.abi import UnknownName
from pybuild.host.ndarray import is_held
from pybuild.ir.graph import Tensor, signature
from pybuild.ops.fixed_point.quant import quantized
from pybuild.package.grid import as_html
from pybuild.package.page import tensors_page

Key = str | SupportsIndex  # a number of Python's or numpy's
_WHOLE = 1 << 24  # beyond it, float32 has not every integer


def number_of(key: object) -> int | None:
    """A Python or numpy integer as an int; None: it is not an integer."""
    if isinstance(key, str):
        return None
    try:
        return operator.index(key)  # type: ignore[arg-type]
    except TypeError:
        return None


def index_of(key: Key, tensors: tuple[Tensor, ...], role: str) -> int:
    """The index of the tensor with this name, or this number.

    role    what they are, for the message; an "output" may be NAME:NUMBER, too, which
            is TVM's name of it
    Errors  UnknownName listing the known names
    """
    number = number_of(key)
    if number is not None:
        if not 0 <= number < len(tensors):
            raise UnknownName(f"{role} {number}: there are {len(tensors)}")
        return number
    for index, tensor in enumerate(tensors):
        if key == tensor.name:
            return index
    for index, tensor in enumerate(tensors):
        if role == "output" and key == f"{tensor.name}:{index}":
            return index
    known = ", ".join(repr(t.name) for t in tensors) or "none"
    raise UnknownName(f"{role} '{key}' is not known; there is {known}")


def fitting(tensor: Tensor, value: Any) -> Array:
    """The value in one piece; lists and numbers take the tensor's type.

    Errors  ValueError for another shape or type, or numbers that the type has not
    """
    array: Array = value if hasattr(value, "dtype") else _exact(tensor, value)
    array = np.asarray(array)
    if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
        want = f"{tensor.dtype.value}{list(tensor.shape)}"
        have = f"{array.dtype.name}{list(array.shape)}{_order(array)}"
        what = f"'{tensor.name}' is {want}, not {have}"
        raise ValueError(f"{what}{_hint(tensor, array)}")
    return np.ascontiguousarray(array)


def _order(array: Array) -> str:
    """Says the order of bytes, where that is not this machine's."""
    if array.dtype.isnative:
        return ""
    order = "big" if sys.byteorder == "little" else "little"
    return f" with bytes in {order}-endian order"


def in_place(tensor: Tensor, array: Any, written: bool = False) -> None:
    """Checks that runs can use an array where it is.

    Errors  ValueError for another shape or type, gaps, or one that cannot be written
    """
    fitting(tensor, array)
    if not array.flags.c_contiguous:
        raise ValueError(f"'{tensor.name}' must be contiguous")
    if written and not array.flags.writeable:
        raise ValueError(f"'{tensor.name}' must be writable")


def _exact(tensor: Tensor, value: Any) -> Array:
    """Numbers of Python in the tensor's type.

    Errors  ValueError where an integer is not that number any more
    """
    kind = tensor.dtype.numpy
    try:
        given = np.asarray(value)
        with np.errstate(over="ignore", invalid="ignore"):
            made: Array = given.astype(kind)
    except (TypeError, ValueError):  # of other objects, or rows of several lengths
        raise ValueError(f"'{tensor.name}': is not an array of numbers") from None
    if given.dtype.kind not in "biuf":
        raise ValueError(f"'{tensor.name}': is not an array of numbers")
    if given.dtype.kind == "f" and np.any(np.abs(given) > _WHOLE):
        given = np.asarray(value, object)  # integers between floats are rounded
        same = np.vectorize(lambda one: _is_kept(kind, one), otypes=[bool])(given)
    elif tensor.dtype.is_float:
        same = is_held(kind, given)
    else:
        same = made == given
    if not np.all(same):
        what = given[~same].reshape(-1)[0]
        said = f"'{tensor.name}' is {tensor.dtype.value}, {what} is not"
        raise ValueError(f"{said}{_hint(tensor, given)}")
    return given.astype(kind) if given.dtype == object else made


def _is_kept(kind: np.dtype[Any], value: Any) -> bool:
    """True if one number stays what it is; floats may be rounded to floats."""
    if kind.kind != "f":
        low, high = np.iinfo(kind.name).min, np.iinfo(kind.name).max
        return bool(np.isfinite(float(value)) and low <= value <= high) and (
            int(value) == value
        )
    return bool(np.all(is_held(kind, np.asarray(value))))


def _hint(tensor: Tensor, given: Array) -> str:
    """The hint for real numbers given to an integer model."""
    if tensor.quant is None or given.dtype.kind != "f":
        return ""
    return ". Hint: net.quantise(...) makes its integers of real numbers"


class Named(abc.ABC):
    """The part of an instance that hands values over by their names."""

    inputs: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    parameters: tuple[Tensor, ...] = ()

    @abc.abstractmethod
    def set_input(self, key: Key, value: Any) -> None: ...

    @abc.abstractmethod
    def get_output(self, key: Key) -> Array: ...

    @abc.abstractmethod
    def go(self) -> None:
        """Runs once on the inputs that are set."""

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled.

        Errors  TypeError: memory and code are in this process
        """
        what = "an instance is not pickled, its memory is in this process"
        raise TypeError(f"{what}: make one of the library there")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({signature(self.inputs, self.results)})"

    def _repr_html_(self) -> str:
        return as_html(tensors_page(self.inputs, self.results, self.parameters))

    def run(self, /, *values: Any, **inputs: Any) -> dict[str, Array]:
        """Sets the given inputs, runs once; copies of all outputs by name.

        net.run(image=photo), or net.run(photo) where there is one input

        values  the array of the only input, or a mapping of arrays
        inputs  arrays of an input's shape and type, or lists of such numbers; others
                stay as they are
        Errors  TypeError for an array where there are several inputs
        """
        match values:
            case ():
                pass
            case (Mapping() as given,) if not inputs:
                inputs = dict(given)
            case (value,) if len(self.inputs) == 1 and not inputs:
                inputs = {self.inputs[0].name: value}
            case _:
                names = ", ".join(tensor.name for tensor in self.inputs) or "none"
                raise TypeError(f"run() takes inputs by their names: {names}")
        for name, value in inputs.items():
            self.set_input(name, value)
        self.go()
        return self.outputs()

    def __call__(self, /, *values: Any, **inputs: Any) -> dict[str, Array]:
        return self.run(*values, **inputs)

    def outputs(self) -> dict[str, Array]:
        """Copies of all outputs of the last run by name."""
        return {t.name: self.get_output(i) for i, t in enumerate(self.results)}

    @overload
    def quantise(self, value: ArrayLike, /) -> Array: ...

    @overload
    def quantise(self, /, **inputs: ArrayLike) -> dict[str, Array]: ...

    def quantise(
        self, value: ArrayLike | None = None, /, **inputs: ArrayLike
    ) -> Array | dict[str, Array]:
        """Real numbers as the integers of an input; what is beyond them is the nearest.

        net.run(**net.quantise(image=photo)), or net.quantise(photo) of the only input

        Errors  UnknownName; ValueError for another shape, or what is not a number
        """
        if inputs or value is None:
            return {name: self._quantised(name, x) for name, x in inputs.items()}
        if len(self.inputs) != 1:
            names = ", ".join(tensor.name for tensor in self.inputs)
            raise ValueError(f"which input? name it: {names}")
        return self._quantised(0, value)

    def _quantised(self, key: Key, value: Any) -> Array:
        tensor = self.inputs[index_of(key, self.inputs, "input")]
        real = np.asarray(value, np.float64)
        if real.shape != tensor.shape:
            have = f"[{', '.join(map(str, real.shape))}]"
            raise ValueError(f"'{tensor.name}' is {list(tensor.shape)}, not {have}")
        if np.isnan(real).any():
            raise ValueError(f"'{tensor.name}' holds a value that is not a number")
        if tensor.quant is not None:
            return quantized(real, tensor, "even")
        if not tensor.dtype.is_float:
            real = np.clip(np.rint(real), tensor.dtype.low, tensor.dtype.high)
        return real.astype(tensor.dtype.numpy)

    @overload
    def dequantise(self, value: Mapping[str, ArrayLike], /) -> dict[str, Array]: ...

    @overload
    def dequantise(self, value: ArrayLike, /) -> Array: ...

    @overload
    def dequantise(self, /, **outputs: ArrayLike) -> dict[str, Array]: ...

    def dequantise(
        self,
        value: ArrayLike | Mapping[str, ArrayLike] | None = None,
        /,
        **outputs: ArrayLike,
    ) -> Array | dict[str, Array]:
        """The integers of an output as real numbers: float32.

        net.dequantise(net.run(...)) of all, or net.dequantise(scores) of the only
        output

        Errors  UnknownName
        """
        if isinstance(value, Mapping):
            return {name: self._real(name, x) for name, x in value.items()}
        if outputs or value is None:
            return {name: self._real(name, x) for name, x in outputs.items()}
        if len(self.results) != 1:
            names = ", ".join(tensor.name for tensor in self.results)
            raise ValueError(f"which output? name it: {names}")
        return self._real(0, value)

    def _real(self, key: Key, value: Any) -> Array:
        tensor = self.results[index_of(key, self.results, "output")]
        real = np.asarray(value, np.float64)
        if tensor.quant is not None:
            real = (real - tensor.zero_point) * tensor.scale
        return real.astype(np.float32)

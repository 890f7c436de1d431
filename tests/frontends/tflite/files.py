"""Files of one random operator: shapes, quantisation and values drawn by a seed.

Knows the format; not what an operator means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pybuild.dtype import Array
from tests.ops.tflite_writer import FileOperator, FileTensor, write

Shape = Sequence[int]
QUANTISED = ("int8", "uint8", "int16")
_NUMPY = {"float32": np.float32, "bool": np.bool_}


def packed4(values: Array) -> Array:
    """Two values from -8 to 7 in a byte, the lower half first."""
    return packed(values, 4)


def packed(values: Array, bits: int) -> Array:
    """Several values of so many bits in a byte, the first in the lowest bits."""
    flat = np.append(values.reshape(-1), [0] * (-values.size % (8 // bits)))
    parts = (flat.astype(np.int64) & ((1 << bits) - 1)).reshape(-1, 8 // bits)
    return (parts << np.arange(0, 8, bits)).sum(1).astype(np.uint8)


@dataclass
class One:
    """A model of one operator while it is drawn; `kind` is the type under test."""

    code: str
    kind: str
    rng: np.random.Generator
    tensors: list[FileTensor] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    bounds: dict[int, tuple[float, float]] = field(default_factory=dict)
    table: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    after: list[FileOperator] = field(default_factory=list)
    within: list[int] = field(default_factory=list)

    # ---- what is drawn --------------------------------------------------------

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def size(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def shape(self, low: int = 1, high: int = 4, most: int = 5) -> tuple[int, ...]:
        return tuple(self.size(1, most) for _ in range(self.size(low, high)))

    def flag(self) -> bool:
        return bool(self.rng.integers(2))

    def quant(self, kind: str, low: float = 0.01, high: float = 0.2) -> Any:
        """(scale, zero point) of a quantised type, else (). int16 has 128 times the
        steps.
        """
        if kind not in QUANTISED:
            return ()
        scale = float(np.float32(np.exp(self.rng.uniform(np.log(low), np.log(high)))))
        if kind == "int16":
            return scale / 128, 0
        zero = self.size(-60, 60) + (128 if kind == "uint8" else 0)
        return scale, zero

    def broadcast(self, shape: Shape) -> tuple[int, ...]:
        """A shape that broadcasts to this one."""
        if self.size(0, 2) == 0:
            return tuple(shape)
        made = [1 if self.size(0, 2) == 0 else d for d in shape]
        return tuple(made[self.size(0, len(made) - 1) if made else 0 :])

    def values(self, shape: Shape, kind: str, low: float, high: float) -> Array:
        if kind == "bool":
            return self.rng.integers(0, 2, shape).astype(np.bool_)
        if kind == "float32":
            return np.asarray(self.rng.uniform(low, high, shape), np.float32)
        return np.asarray(self.rng.integers(int(low), int(high) + 1, shape), kind)

    # ---- the file -------------------------------------------------------------

    def tensor(self, shape: Shape, kind: str, quant: Any, data: Any = None) -> int:
        scale, zero = ((quant[0],), (quant[1],)) if quant else ((), ())
        name = f"t{len(self.tensors)}"
        made = FileTensor(name, tuple(shape), kind.upper(), data, scale, zero)
        self.tensors.append(made)
        return len(self.tensors) - 1

    def span(self, kind: str) -> tuple[float, float]:
        return {
            "float32": (-4.0, 4.0), "bool": (0, 1), "int8": (-128, 127),
            "uint8": (0, 255), "int16": (-32768, 32767),
        }.get(kind, (-1000, 1000))  # fmt: skip

    def x(
        self, shape: Shape, kind: str | None = None, quant: Any = None,
        bounds: tuple[float, float] | None = None,
    ) -> int:  # fmt: skip
        """An input of the model and of the operator."""
        kind = kind or self.kind
        quant = self.quant(kind) if quant is None else quant
        index = self.tensor(shape, kind, quant)
        self.bounds[index] = bounds or self.span(kind)
        self.inputs.append(index)
        self.reads.append(index)
        return index

    def constant(self, value: Any, kind: str = "int32", quant: Any = ()) -> int:
        array = np.asarray(value, _NUMPY.get(kind, kind))
        index = self.tensor(array.shape, kind, quant, array)
        self.reads.append(index)
        return index

    def kept(self, shape: Shape, kind: str, quant: Any = ()) -> int:
        """A variable of the operator."""
        index = self.tensor(shape, kind, quant)
        self.tensors[index] = replace(self.tensors[index], variable=True)
        self.reads.append(index)
        return index

    def y(self, kind: str | None = None, quant: Any = None, shape: Shape = ()) -> int:
        kind = kind or self.kind
        index = self.tensor(shape, kind, self.quant(kind) if quant is None else quant)
        self.outputs.append(index)
        return index

    def with_options(self, table: str, **fields: Any) -> None:
        self.table, self.options = table, fields

    def bytes(self) -> bytes:
        made = self.after[0].inputs[-1:] if self.after else tuple(self.outputs)
        operator = FileOperator(
            self.code, tuple(self.reads), made, self.table, self.options,
            tuple(self.within),
        )  # fmt: skip
        return write(self.tensors, [operator, *self.after], self.inputs, self.outputs)

    def then(self, code: str, shape: Shape, table: str = "") -> None:
        """Another operator on a new input and what the first one makes."""
        (made,), reads = self.outputs, list(self.reads)
        self.outputs.clear()
        x = self.x(shape, "float32" if code == "BROADCAST_TO" else None)
        self.reads[:] = reads
        kind = self.tensors[x].kind.lower()
        self.after.append(FileOperator(code, (x, made), (self.y(kind),), table))

    def samples(self, count: int) -> list[dict[str, Array]]:
        """Values of the inputs by name."""
        made = []
        for _ in range(count):
            sample = {}
            for index in self.inputs:
                tensor = self.tensors[index]
                low, high = self.bounds[index]
                kind = tensor.kind.lower()
                sample[tensor.name] = self.values(tensor.shape, kind, low, high)
            made.append(sample)
        return made

"""log_mel: the graph from samples to the logarithm of mel bands, and its numpy twin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.features.tables import WEIGHT_BITS, gains, hann, mel_bands
from pybuild.ir.graph import Attr, Graph, Node, Quant, State, Tensor, verify
from pybuild.ops import OPERATORS
from pybuild.ops.fft import MOST
from pybuild.ops.interpret import interpret, kept

# the logarithm's unit: real = q / 64
_LOG_SCALE = 64
# of the noise that is subtracted, as TensorFlow Lite Micro's micro_speech has it
_NOISE: dict[str, Attr] = {
    "smoothing": (410, 983), "one_minus_smoothing": (15974, 15401),
    "min_signal_remaining": 819, "smoothing_bits": 10, "bits": 14, "clamping": False,
}  # fmt: skip
_GAIN_BITS, _SNR_BITS = 21, 12


class Features:
    """A graph that takes `hop` new samples a run and gives one row of features.

    graph   input `samples` int16[hop], output `features` int8[bands]; what it keeps
            (the window's rest, the noise) is state. pybuild.build(features.graph)
            compiles it
    scale   real = scale * (q - zero_point): the natural logarithm of each band
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.hop = graph.tensor("samples").size
        self.bands = graph.tensor("features").size
        quant = graph.tensor("features").quant
        assert quant is not None
        self.scale, self.zero_point = quant.scale[0], quant.zero_point[0]

    def __repr__(self) -> str:
        return f"Features({self.bands} bands, every {self.hop} samples)"

    def __call__(self, samples: Any) -> Array:
        """Rows of features of a whole recording, with the bits of the device.

        samples  int16[n], or [.., n]: recordings, each of which begins with silence
        Shapes   int8[.., n // hop, bands]; what is left over is dropped
        Errors   BuildError for other types
        """
        given = np.asarray(samples)
        if given.dtype != np.int16 or not given.ndim:
            what = f"samples are {given.dtype.name}{list(given.shape)}"
            raise BuildError(self.graph.name, what, "int16, the last axis is time")
        rows = given.reshape(-1, given.shape[-1])
        count = given.shape[-1] // self.hop
        made = np.zeros((len(rows), count, self.bands), np.int8)
        for row, target in zip(rows, made, strict=True):
            state: Mapping[str, Array] | None = None
            for i in range(count):
                frame = row[i * self.hop : (i + 1) * self.hop]
                values = interpret(self.graph, {"samples": frame}, state)
                state = kept(self.graph, values)
                target[i] = values["features"]
        return made.reshape(*given.shape[:-1], count, self.bands)


def log_mel(
    rate: int = 16000,
    window: int = 480,
    hop: int = 320,
    bands: int = 40,
    low: float = 125.0,
    high: float = 7500.0,
    *,
    subtract_noise: bool = True,
    gain: bool = True,
    scale: float | None = None,
    name: str = "log_mel",
) -> Features:
    """Features of the last `window` samples, each `hop` samples: the logarithm of mel
    bands, in integers from the first to the last step.

    rate            Hz; window, hop in samples; low, high: Hz, of the bands
    subtract_noise  what is there all the time is taken off each band
    gain            each band is divided by its noise (PCAN), so that how loud a
                    recording is matters less; needs subtract_noise
    scale           of the int8 output, whose zero point is -128; None: 10.4 / 255 with
                    gain, as micro_speech was trained, else 17 / 255: the loudest
    Errors          BuildError for numbers that make no sense, all of them at once
    """
    if scale is None:
        scale = (10.4 if gain else 17.0) / 255
    wrong = _wrong(rate, window, hop, bands, low, high, scale)
    if gain and not subtract_noise:
        wrong.append("gain needs subtract_noise")
    if wrong:
        raise BuildError(name, "; ".join(wrong))
    length = max(4, 1 << (window - 1).bit_length())
    draft = _Draft(name)
    x = draft.input("samples", (hop,))
    y = draft.framed(x, window)
    y = draft.op("window", [y, draft.constant("hann", hann(window))], shift=WEIGHT_BITS)
    y, bits = draft.ops("auto_scale", [y])
    y = draft.op("rfft", [y], length=length, inverse=False)
    made = mel_bands(rate, length, bands, low, high)
    y = draft.op("energy", [y], start=made.first, end=made.last)
    tables = [draft.constant(n, a) for n, a in made.tables().items()]
    y = draft.op("filter_bank", [y, *tables])
    y = draft.op("square_root", [y, bits])
    correction = length.bit_length() - 1 - WEIGHT_BITS // 2
    if subtract_noise:
        y, noise = draft.quiet(y)
        if gain:
            table = gains(0.95, 80.0, _GAIN_BITS, 10)
            shift = _GAIN_BITS - correction - _SNR_BITS
            y = draft.op(
                "pcan", [y, noise, draft.constant("gains", table)], snr_shift=shift
            )
    y = draft.op(
        "filter_bank_log", [y], correction_bits=max(correction, 0), scale=_LOG_SCALE,
        quant=Quant((1 / _LOG_SCALE,)),
    )  # fmt: skip
    draft.output(y, Quant((scale,), (-128,)))
    return Features(draft.graph())


def _wrong(
    rate: int, window: int, hop: int, bands: int, low: float, high: float, scale: float
) -> list[str]:
    """What makes no sense."""
    found = []
    if not 16 <= window <= MOST:
        found.append(f"window is {window} samples, not from 16 to {MOST}")
    if not 0 < hop <= window:
        found.append(f"hop is {hop} samples, not from 1 to the window's {window}")
    if not 0 <= low < high <= rate / 2:
        found.append(f"bands from {low} to {high} Hz, at a rate of {rate}")
    if not 1 <= bands <= 256:
        found.append(f"{bands} bands, not from 1 to 256")
    if not (scale > 0 and math.isfinite(scale)):
        found.append(f"scale is {scale}")
    return found


class _Draft:
    """Nodes and tensors, named by what makes them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.state: dict[str, State] = {}
        self.inputs: list[str] = []

    def input(self, name: str, shape: tuple[int, ...]) -> Tensor:
        self.inputs.append(name)
        return self._add(Tensor(name, shape, DType.INT16))

    def constant(self, name: str, value: Array) -> Tensor:
        self.constants[name] = value
        return self._add(Tensor(name, value.shape, DType.of(value)))

    def op(
        self, op: str, reads: Sequence[Tensor], quant: Quant | None = None,
        **attrs: Attr,
    ) -> Tensor:  # fmt: skip
        return self.ops(op, reads, quant, **attrs)[0]

    def ops(
        self, op: str, reads: Sequence[Tensor], quant: Quant | None = None,
        **attrs: Attr,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """All outputs of a node."""
        name, count = op, 1
        while name in self.tensors:
            count += 1
            name = f"{op}_{count}"
        node = Node(op, name, tuple(x.name for x in reads), (name,), attrs)
        types = OPERATORS[op].infer(node, self.graph(checked=False))
        names = [name, *(f"{name}_{i}" for i in range(1, len(types)))]
        made = [
            self._add(Tensor(n, shape, dtype, quant))
            for n, (shape, dtype) in zip(names, types, strict=True)
        ]
        self.nodes.append(Node(op, name, node.inputs, tuple(names), attrs))
        return tuple(made)

    def framed(self, x: Tensor, window: int) -> Tensor:
        """The window that ends with x: its rest is kept from the runs before."""
        held = window - x.size
        if not held:
            return x
        zeros = np.zeros(held, np.int16)
        before = self._add(Tensor("before", zeros.shape, DType.INT16))
        joined = self.op("concat", [before, x], axis=0)
        rest = self.op(
            "slice", [joined], begin=(x.size,), end=(window,), strides=(1,)
        )  # fmt: skip
        self.state[before.name] = State(rest.name, zeros)
        return joined

    def quiet(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x without its noise, and the noise, which is kept."""
        zeros = np.zeros(x.shape, np.uint32)
        before = self._add(Tensor("noise", zeros.shape, DType.UINT32))
        y, after = self.ops("spectral_subtraction", [x, before], **_NOISE)
        self.state[before.name] = State(after.name, zeros)
        return y, after

    def output(self, x: Tensor, quant: Quant) -> None:
        made = self._add(Tensor("features", x.shape, DType.INT8, quant))
        attrs: dict[str, Attr] = {"rounding": "double", "fixed": True}
        self.nodes.append(Node("quantize", "features", (x.name,), (made.name,), attrs))

    def graph(self, checked: bool = True) -> Graph:
        graph = Graph(
            self.name, self.name, tuple(self.nodes), dict(self.tensors),
            tuple(self.inputs), ("features",) if checked else (),
            dict(self.constants), state=dict(self.state),
            sampled="samples" if checked else "",
        )  # fmt: skip
        if checked:
            verify(graph)
        return graph

    def _add(self, tensor: Tensor) -> Tensor:
        self.tensors[tensor.name] = tensor
        return tensor

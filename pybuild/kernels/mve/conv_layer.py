"""The layer that conv_code.py writes kernels for: a convolution, and how the bytes of
its windows become vectors. Knows no weight and no node.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.kernels.base.builder import told
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.by_channel import columns
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.mve.epilogue import Epilogue, size_of
from pybuild.kernels.mve.exact import Exact
from pybuild.records import dataclass

VECTOR = 16  # bytes
HALF = 8  # that are widened where a window ends with so many or fewer
WRITTEN_OUT = 4  # steps, at most
_FAR = 1 << 15  # bytes that a half reaches
_HELD = 4  # vectors of pixels that stay in registers
_TURNS = (4, 3)  # steps
_LONG_TURNS = (8, 4)


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it.

    row  a call makes one row, which may be written over the one that it is made of
    threes     three pixels are done together, of two output channels and two: their
               sums, and no more, have registers that vectors are summed into
    elem       of inputs and outputs
    run_steps  whose sums are then added to those of 64 bits; 0: there are none
    int4       a byte has the weights of two output channels, 16 * a + b
    joint      all of these fit a byte; else a loses what is borrowed for b
    zero       is added to weights of nine bits, which makes uint8 of them; None: they
               have eight
    long       of a single pixel, turns of the loop over steps have `long_turn` of them
    """

    window: Window
    epilogue: Epilogue | End16 | Bare
    x_zero: int
    row: bool = False
    threes: bool = False
    elem: DType = DType.INT8
    run_steps: int = 0
    long: bool = False
    int4: bool = False
    joint: bool = False
    zero: int | None = None

    @property
    def step(self) -> int:
        """The number of values in a vector."""
        return VECTOR // self.elem.bytes

    @property
    def run(self) -> int:
        """The number of values of a row that are contiguous in the window."""
        return self.window.run

    @property
    def taps(self) -> int:
        return self.window.taps

    @property
    def group_outputs(self) -> int:
        return self.window.group_outputs

    @property
    def together(self) -> int:
        """Output channels that are summed together; fewer than four are ended one by
        one."""
        return min(4, self.group_outputs)

    @property
    def end_words(self) -> int:
        """Of the table of ends for these."""
        if isinstance(self.epilogue, End16 | Bare):
            return self.together * self.epilogue.size
        if self.together < 4 and not isinstance(self.epilogue, Exact):
            return self.together * columns(self.epilogue)
        return size_of(self.epilogue)

    @property
    def pixels(self) -> int:
        """The number of pixels of a row that are computed together."""
        return 3 if self.threes else min(2, self.window.out_width)

    @property
    def may_have_threes(self) -> bool:
        """Three pixels together may take fewer instructions than two: not where their
        vectors are held, nor where few steps from a patch are written out."""
        by_vectors = isinstance(self.epilogue, Exact | Affine) and not self.run_steps
        if not by_vectors or self.together < 4 or self.window.out_width in (1, 2, 4):
            return False
        return self.steps > 2 if self.direct else not self.written_out

    @property
    def ways(self) -> tuple[tuple[int, int], ...]:
        """How many pixels are done together, and how many there are to be done so."""
        width, n = self.window.out_width, self.pixels
        if not self.threes:
            return ((n, width - width % n), *([(1, width % n)] if width % n else []))
        twos = {0: 0, 1: 4, 2: 2}[width % n]
        return ((n, width - twos), *([(2, twos)] if twos else []))

    @property
    def passes(self) -> tuple[tuple[int, ...], ...]:
        """Output channels of a block that are summed together: of two passes they come
        to lie in each second lane."""
        if self.threes or self.by_twos:
            return (0, 2), (1, 3)
        return (tuple(range(self.together)),)

    @property
    def held(self) -> bool:
        """Vectors of pixels stay in registers while all channels are summed."""
        return self.steps * self.pixels <= _HELD

    @property
    def by_twos(self) -> bool:
        """Two pixels are done two channels and two, too: nothing is loaded again."""
        vectors = isinstance(self.epilogue, Exact | Affine) and not self.run_steps
        return vectors and self.held and self.pixels == 2 and self.together == 4

    @property
    def paired(self) -> bool:
        """The values of two pixels are stored by one instruction."""
        vectors = isinstance(self.epilogue, Exact | Affine) and self.together == 4
        near = self.window.out_channels < _FAR
        return vectors and self.elem is DType.INT8 and near

    @property
    def written_out(self) -> bool:
        return self.steps <= WRITTEN_OUT

    @property
    def turn(self) -> int:
        """Steps of a turn of the loop over them; the rest follows it. Two pixels take
        more with a rest."""
        if self.window.out_width == 1:
            return self.long_turn if self.long else 1
        if self.run_steps or self.written_out:
            return 1
        whole = self.whole_steps
        best = min(_TURNS, key=lambda turn: (whole % turn, -turn))
        return best if self.threes or whole % best == 0 else 1

    @property
    def long_turn(self) -> int:
        """Steps of a turn of a single pixel that leave none over; 1: none do, or there
        is not a loop."""
        if self.run_steps or self.written_out or self.window.out_width > 1:
            return 1
        fit = (turn for turn in _LONG_TURNS if self.whole_steps % turn == 0)
        return next(fit, 1)

    @property
    def half(self) -> bool:
        """The last vector of several, or the only one, is of eight bytes, widened: half
        of a whole one would be zeros."""
        few = 0 < self.taps % VECTOR <= HALF
        several = self.taps > VECTOR or self.taps == HALF
        return self.elem is DType.INT8 and few and several and not self.int4

    @property
    def last(self) -> int:
        """The number of values in the last vector."""
        return HALF if self.half else self.step

    @property
    def tail(self) -> bool:
        """The last vector reaches back into the one before."""
        return self.direct and self.steps > 1 and self.taps % self.last > 0

    @property
    def apart(self) -> bool:
        """The last vector is not loaded as the others are."""
        return self.half or self.tail

    @property
    def whole_steps(self) -> int:
        """The number of steps without a partial last one."""
        return self.steps - self.apart

    @property
    def direct(self) -> bool:
        """Vectors are loaded from the row itself."""
        w = self.window
        plain = w.pointwise and w.groups == 1
        return plain and (self.taps >= self.step or self.elem is DType.INT8)

    @property
    def few(self) -> int:
        """Bytes of a pixel that are read where they lie, and fill no vector."""
        filled = self.taps >= self.step or self.half
        return self.taps if self.direct and not filled else 0

    @property
    def copied(self) -> bool:
        """A row is copied before it is written over: not where a pixel is less than a
        vector, which is read once."""
        return self.row and self.direct and self.taps >= self.step

    @property
    def over(self) -> bool:
        """True if the rows that are read in place are overwritten."""
        return self.row and self.direct and not self.copied

    @property
    def steps(self) -> int:
        return -(-self.taps // self.step)

    @property
    def order(self) -> tuple[int, ...]:
        """The tap of every value that is multiplied; -1: its weight is 0."""
        whole = self.taps - self.taps % self.step
        order = list(range(whole))
        if self.tail:
            back = self.taps - self.last
            order += [t if t >= whole else -1 for t in range(back, self.taps)]
        elif self.taps % self.step:
            order += [*range(whole, self.taps)]
            order += [-1] * (-len(order) % self.last)
        return tuple(order)

    @property
    def scratch(self) -> int:
        """Bytes of the patch."""
        if self.direct:
            row = self.window.width * self.window.channels
            return -(-row // self.step) * VECTOR if self.copied else 0
        return self.pixels * self.steps * VECTOR

    @property
    def _turn_key(self) -> str:
        rest = self.whole_steps % self.turn
        return "" if self.turn == 1 else f"in{self.turn}" + f"and{rest}" * (rest > 0)

    @property
    def types(self) -> str:
        """The part of the key that depends on the types of values."""
        return "s16" if self.elem is DType.INT16 else ""

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "conv2d_mve" if self.pixels > 1 else "dense_mve",
            self.types,
            self._row_key,
            self.rest_key,
            w.key,
            "" if self.direct else form(self.run, self.step),
            form(w.group_channels, self.step) if w.padded else "",
            "columns" if not self.direct and w.by_taps else "",
            self.dot_key,
        )
        return "_".join(p for p in parts if p)

    @property
    def rest_key(self) -> str:
        """The part of the key for leftover pixels."""
        rest = self.window.out_width % self.pixels
        return "" if not rest else f"rest{rest}" if self.threes else "rest"

    @property
    def _row_key(self) -> str:
        size = self.window.width * self.window.channels
        if self.copied:
            return f"row_{form(size, self.step)}"
        return "over" if self.over else ""

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        kind = "convolution" if self.pixels > 1 else "fully connected layer"
        many = f"{self.pixels} pixels" if self.pixels > 1 else "a pixel"
        first = "read where they lie" if self.direct else "copied into the patch"
        nine = " x int8 less a zero point" * (self.zero is not None)
        return told(
            f"{kind}, {self.elem.value}{' x int4' * self.int4}{nine}, "
            f"int{64 if self.run_steps else 32} sums: "
            f"{self.window.words}",
            f"{many} at a time, {first}; then {self.together} output channels at a "
            f"time{', two and two' * (len(self.passes) > 1)}, {self.step} taps a vector"
            f"{', at last eight' * self.half}; weights "
            "forward, once for these pixels",
            self.epilogue.words,
        )

    @property
    def dot_doc(self) -> str:
        """The comment in the C of the sums."""
        int4 = " A byte has the weights of two channels, in its halves." * self.int4
        return (
            f"Sums of {self.together} output channels, {self.step} taps at a time, and "
            f"their epilogue; weights and epilogue forward.{int4}"
        )

    @property
    def dot_key(self) -> str:
        """The key that distinguishes the code of the sums of two layers."""
        odd = self.group_outputs % self.together
        parts = (
            self.types,
            f"of{self.together}" if self.together < 4 else "",
            f"by{self.steps}" if self.written_out else "",
            self._turn_key,
            "threes" if self.threes else "",
            "int4" if self.int4 else "",
            "joint" if self.joint else "",
            "w9" if self.zero is not None else "",
            "half" if self.half else "",
            f"first{self.few}" if self.few else "",
            "tail" if self.tail else "",
            "odd" if odd else "",
            "grouped" if self.window.groups > 1 else "",
            "runs" if self.run_steps else "",
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)


def form(count: int, step: int) -> str:
    """The way to copy so many values: in a loop of vectors, each of `step`, or
    unrolled."""
    if count < step:
        return f"run{count}"
    return "overlapping" if count % step else "vectors"

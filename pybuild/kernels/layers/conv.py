"""The layer for which dsp/conv_code.py writes kernels: a convolution, how many of its
pixels are computed together, and the order in which its taps are read. Knows no weight
and no node.
"""

from __future__ import annotations

from pybuild.kernels.base.builder import told
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.epilogues.affine_end import is_usual, kind, row_words
from pybuild.kernels.epilogues.exact import Exact
from pybuild.records import dataclass

UNROLLED = (8, 4)  # pairs of taps in one turn of the innermost loop
_UNUSUAL = (6, 5, 7)  # where those have so many more of zeros, as a share
_ZEROS = 0.03
_LONG = 32  # pairs that may be one turn, for more code
WRITTEN_OUT = 15  # bytes of a window's row, at most; 16 are shared with more
SUMS = 4  # pairs of output sums that the registers hold
_SHORT = 8  # pixels: of longer rows one left over is a small part
INT4_OUTPUTS = 4  # whose int4 weights one word holds
PIXELS = 2  # of a row, whose values one load reads
WORD = 4  # bytes that one load widens


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it; `pixels` of a row are done together.

    direct  for a pointwise layer: bytes are widened each time they are read, without a
            patch
    turn    pairs of taps per iteration, where the usual unrolling would process many
            zeros; 0: as usual
    runs    number of runs; after each, the sums of two channels in one word are
            separated, as a single run could leave 32 bits
    apart   words hold taps of a single channel, as for a lone channel: some weights are
            -128
    by_pairs  only two output channels are computed together: compact code
    long    all pairs of taps are unrolled into one iteration for full blocks of pixels
    int4    half a weight word holds the weights of four output channels
    zero    added to 9-bit weights to make them uint8; None: they have 8 bits
    """

    window: Window
    epilogue: Affine | Exact
    x_zero: int
    pixels: int = PIXELS
    direct: bool = False
    turn: int = 0
    runs: int = 1
    apart: bool = False
    by_pairs: bool = False
    long: bool = False
    int4: bool = False
    zero: int | None = None

    @property
    def centres(self) -> bool:
        """True if the zero point of the weights must be subtracted from the sums; the
        words of a lone channel have room for nine bits."""
        return self.zero is not None and not self.lone

    @property
    def counted(self) -> int:
        """Pairs of inputs that are summed per iteration for that correction."""
        return next(n for n in (4, 3, 2, 1) if len(self.lanes) // 2 % n == 0)

    @property
    def separate(self) -> bool:
        """True if the epilogue receives the sums of two channels separately."""
        return self.apart or self.int4

    @property
    def may_be_long(self) -> bool:
        """True if one iteration, of more pairs than usual, covers all taps without a
        loop."""
        usual = self.runs == 1 and not (self.lone or self.by_pairs)
        return usual and self.turns > 3 and len(self.order) // 2 <= _LONG

    @property
    def exact_turn(self) -> int:
        """Pairs of taps per iteration without a rest, where the usual unrolling would
        waste much: a 3x3 window of 3 channels has 15 pairs, one of 60 channels 30. 0:
        there is no such number."""
        pairs = len(self.lanes) // 2
        if -pairs % UNROLLED[-1] <= _ZEROS * pairs:
            return 0
        return next((u for u in _UNUSUAL if pairs % u == 0), 0)

    @property
    def may_be_direct(self) -> bool:
        """True if the loop can read words directly from the row."""
        w = self.window
        alone = w.pointwise and w.groups == 1 and w.channels % 8 == 0
        return alone and not self.centres

    @property
    def blocks(self) -> int:
        """Pairs of output channels computed together."""
        return 1 if self.by_pairs else SUMS // self.pixels

    @property
    def outputs(self) -> int:
        """Output channels of a group."""
        return self.window.group_outputs

    @property
    def lone(self) -> bool:
        """True if a group has one output channel: weight words then hold its taps
        alone."""
        return self.outputs == 1

    @property
    def pairs(self) -> int:
        """The number of pairs of output channels of a group; the last two channels, or
        of int4 weights the last four, may be computed twice."""
        if self.int4:
            return -(-self.outputs // INT4_OUTPUTS) * 2
        return (self.outputs + 1) // 2

    @property
    def group_words(self) -> int:
        """Words of weights of a group."""
        words = self.pairs * len(self.order) // 2
        return words // 2 if self.int4 else words * (2 if self.apart else 1)

    @property
    def odd(self) -> str:
        """The part of the key that depends on a leftover output channel."""
        if self.int4:
            return "odd" if self.outputs % INT4_OUTPUTS else ""
        return "lone" if self.lone else "odd" if self.outputs % 2 else ""

    @property
    def end_size(self) -> int:
        """Words of the epilogue table for each pair, or for a lone channel."""
        words = row_words(self.epilogue)
        if not self.lone:
            return 2 * words
        return words if isinstance(self.epilogue, Exact) else max(words, 3)

    @property
    def turns(self) -> int:
        return len(self.order) // 2 // self.unrolled

    @property
    def run_turns(self) -> int:
        """Iterations per run; the last run may have fewer."""
        return -(-self.turns // self.runs)

    @property
    def whole(self) -> int:
        """Output channels in full blocks; the others are computed in pairs, or in
        fours. It is 0 if blocks are no larger than these and channels are left over: a
        loop for the last one would repeat the same code."""
        left = self.outputs % (2 * self.blocks)
        return 0 if 2 * self.blocks == self.last and left else self.outputs - left

    @property
    def last(self) -> int:
        """Output channels computed together after the full blocks."""
        return INT4_OUTPUTS if self.int4 else 2

    @property
    def twice(self) -> bool:
        """True if the leftover pixel of each short row takes two blocks at a time: it
        then has as many sums as two pixels."""
        short = self.window.out_width % self.pixels and self.window.out_width < _SHORT
        return bool(short) and self.outputs % (4 * self.blocks) == 0

    @property
    def gathered(self) -> bool:
        """True if less than a word of a row is contiguous: windows are then copied byte
        by byte."""
        return self.window.run < WORD

    @property
    def written_rows(self) -> int:
        """Rows of a window inside the row whose widening is unrolled; 0: a loop."""
        w = self.window
        few = w.kernel_h <= 3 and w.run <= WRITTEN_OUT and w.dilation_h == 1
        whole = not (self.gathered or w.pointwise or w.by_taps or w.groups > 1)
        return w.kernel_h if few and whole else 0

    @property
    def run(self) -> int:
        """Bytes that are widened together: contiguous in the row, or in the copy."""
        return self.taps if self.gathered else self.window.run

    @property
    def taps(self) -> int:
        return self.window.taps

    @property
    def lanes(self) -> tuple[int, ...]:
        """The tap of every int16 that is written to the patch; -1: none."""
        lanes: list[int] = []
        for start in range(0, self.taps, self.run):
            lanes += [-1 if t < 0 else start + t for t in _lanes(self.run)]
        return tuple(lanes)

    @property
    def unrolled(self) -> int:
        """Pairs of taps per iteration: the most that leave no rest."""
        if self.turn:
            return self.turn
        pairs = len(self.lanes) // 2
        return next((u for u in UNROLLED if pairs % u == 0), UNROLLED[-1])

    def unrolled_of(self, pixels: int) -> int:
        """Return the same for blocks of so many pixels."""
        whole = self.long and pixels == self.pixels
        return len(self.order) // 2 if whole else self.unrolled

    @property
    def order(self) -> tuple[int, ...]:
        """`lanes`, padded to a whole number of iterations; -1: its weight is 0."""
        lanes = self.lanes
        return (*lanes, *[-1] * (-len(lanes) % (2 * self.unrolled)))

    @property
    def step(self) -> int:
        """The distance between pairs of taps: in words of the patch, or in bytes of the
        row."""
        return 2 if self.direct else self.pixels

    @property
    def patch(self) -> int:
        """The size of the patch in words."""
        return len(self.order) // 2 * self.pixels

    @property
    def scratch(self) -> int:
        """Bytes of the patch and, after it, of a window that leaves the row."""
        if self.direct:
            return 0
        return 4 * self.patch + (self.taps if self.copies else 0)

    @property
    def copies(self) -> bool:
        """True if windows that leave the row, or all windows, are assembled byte by
        byte."""
        odd = self.window.padded and self.window.group_channels % WORD > 0
        return odd or self.gathered

    @property
    def cut(self) -> bool:
        """True if windows that leave the row are first filled with zero points, then
        overwritten with the values inside: for rows of at least a word of contiguous
        bytes."""
        return self.copies and not (self.window.by_taps or self.gathered)

    @property
    def _edges(self) -> str:
        """The part of the key for windows that are assembled instead of read in
        place."""
        if self.gathered:
            return "gathered"
        return form(self.window.group_channels, 0) if self.window.padded else ""

    @property
    def sums(self) -> str:
        """The part of the key that depends on the layout of weights, and on how the
        sums of two channels are kept."""
        kept = "apart" if self.apart else "runs" if self.runs > 1 else ""
        if self.centres:
            return f"w9by{self.counted}" + f"_{kept}" * bool(kept)
        return "int4" + f"_{kept}" * bool(kept) if self.int4 else kept

    @property
    def name(self) -> str:
        dense = self.pixels == 1 and self.window.pointwise
        parts = (
            "dense_dsp" if dense else "conv2d_dsp",
            "direct" if self.direct else "",
            "single" if self.pixels == 1 and not dense else "",
            self.window.key,
            form(self.run),
            f"rows{self.written_rows}" if self.written_rows else "",
            self._edges,
            self.odd,
            self.sums,
            kind(self.epilogue, is_usual(self.epilogue)),
            f"by{self.unrolled}",
            f"long{len(self.order) // 2}" if self.long else "",
            "twice" if self.twice else "",
            "pairs" if self.by_pairs else "",
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        dense = self.pixels == 1 and self.window.pointwise
        kind = "fully connected layer" if dense else "convolution"
        many = f"{self.pixels} pixels" if self.pixels > 1 else "a pixel"
        weights = "int8 x int4" if self.int4 else "int8"
        weights += " x uint8 less a zero point" * (self.zero is not None)
        first = "whose bytes are widened as they are read"
        if not self.direct:
            first = "widened to int16 into the patch"
        return told(
            f"{kind}, {weights}, int32 sums by pairs of int16 (SMLAD): "
            f"{self.window.words}",
            f"{many} at a time, {first}; then all output channels; weights forward, "
            "once for these pixels",
            self.epilogue.words,
        )

    def part_doc(self, pixels: int) -> str:
        """Return the comment in the C of the innermost part, for so many pixels."""
        many = "a pixel" if pixels == 1 else f"{pixels} pixels"
        if self.lone:
            return f"The only output channel of {many}: two taps a word, all in order."
        taps = 2 * self.unrolled_of(pixels)
        if self.int4:
            return (
                f"All output channels of {many}. A lane of a weight word is 4096 * a + "
                "256 * (b + 8) + 16 * (c + 8) + d + 8 of four channels: one product "
                "adds to all sums, three of b, c and d alone tell them apart, and 8 "
                f"times the sum of the inputs is subtracted. {taps} taps in a turn; "
                "weights and epilogue forward."
            )
        if self.centres:
            return (
                f"All output channels of {many}. Of each two channels, a and b, a lane "
                "of a weight word is 256 * (a - 128) + b, so one product adds to both "
                "sums, and a second of b alone tells them apart; what the zero point "
                "of the weights adds is the same in all channels, and is taken off. "
                f"{taps} taps in a turn; weights and epilogue forward."
            )
        return (
            f"All output channels of {many}. Of each two channels, a and b, a lane of "
            f"a weight word is 256 * a + b, so one product adds to both sums, and a "
            f"second of b alone tells them apart. {taps} taps in a turn; "
            "weights and epilogue forward."
        )


def form(count: int, written_out: int = WRITTEN_OUT) -> str:
    """Return how so many bytes are widened: unrolled, or in a loop over words."""
    if count <= written_out:
        return f"run{count}"
    return "twos" if count % 8 == 0 else ("ones", "tail1", "tail2", "tail2")[count % 4]


def _lanes(run: int) -> list[int]:
    """Return the bytes of a run in widened order, even then odd bytes of each word; the
    last word may reach back into the one before."""
    lanes: list[int] = []
    for at in range(0, run - 3, 4):
        lanes += [at, at + 2, at + 1, at + 3]
    done, last = run - run % 4, run - 4
    if run % 4 > 1:
        lanes += [last if last >= done else -1, last + 2 if last + 2 >= done else -1]
    if run % 4:
        lanes += [last + 1 if last + 1 >= done else -1, last + 3]
    return lanes

"""A convolution as the kernels that multiply one by one see it: which sums they hold,
and what they are called. Knows no weight and no node."""

from __future__ import annotations

from dataclasses import replace

from pybuild.dtype import DType
from pybuild.kernels.base.builder import told
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.by_channel import AnyEpilogue
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.image import Image
from pybuild.kernels.layers.zero_points import HALF
from pybuild.records import dataclass

UINT8 = DType.UINT8
HALF4 = 8  # the same of four bits
TURNS = (7, 6, 5, 3, 2, 1)  # taps in one, where four leave many over
MOST_PRODUCTS = 64  # in one turn of the innermost loop
MOST_BYTES = 32  # of weights or pixels in a turn: what loads reach from a pointer


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it.

    channels, pixels  of the output whose sums are computed together
    unsigned          pixels and weights are stored with HALF added
    zero              is added to weights of nine bits instead; None: they have eight
    paired            a word holds the weights of two channels, a sum both sums, of
                      int16 each; these weights are what they are
    int4              a byte holds the weights of two channels
    row               a call makes one row, which may be written over the one that it
                      is made of
    held              type of the pixels of a patch, where it is not that of the row
    run_turns         of the innermost loop, whose sums are then added to those of 64
                      bits; 0: there are none
    apart             pixels left over are a block of their own; else the last block
                      computes some of the one before again
    turn              of the block of what is left over: taps in one turn of the
                      innermost loop, as in the others; 0: it is a layer's own
    image             a call makes all rows, of the rows of windows that lie in the
                      image; None: a row, and what is above and below is the runner's
    """

    window: Window
    epilogue: AnyEpilogue
    x_zero: int
    channels: int
    pixels: int
    unsigned: bool = False
    paired: bool = False
    row: bool = False
    held: DType | None = None
    run_turns: int = 0
    apart: bool = False
    turn: int = 0
    image: Image | None = None
    int4: bool = False
    zero: int | None = None

    @property
    def centred(self) -> bool:
        """Pixels of a patch have no zero point, so that padding is 0: rows of it are
        left out."""
        return self.image is not None and self.x_zero != 0

    @property
    def across(self) -> Image | None:
        """The columns, where a pixel alone needs no padding beside its row, either."""
        w = self.window
        if self.image is None or self.pixels > 1:
            return None
        return Image(w.width, w.out_width, w.stride_w, w.left)

    @property
    def skips_columns(self) -> bool:
        return self.across is not None

    @property
    def over(self) -> int:
        """The number of pixels left over after whole blocks."""
        return self.window.out_width % self.pixels

    @property
    def rest(self) -> Layer | None:
        """The layer as the block of what is left over sees it."""
        if not (self.apart and self.over):
            return None
        return replace(self, pixels=self.over, apart=False, turn=self.unrolled)

    @property
    def elem(self) -> DType:
        """The element type of inputs and outputs."""
        return DType.INT16 if isinstance(self.epilogue, End16) else DType.INT8

    @property
    def patch_elem(self) -> DType:
        if self.centred:
            return DType.INT16
        return self.held or (UINT8 if self.unsigned else self.elem)

    @property
    def words(self) -> int:
        """Weights that are loaded for a tap, and sums of a pixel."""
        return self.channels // 2 if self.paired else self.channels

    @property
    def loads(self) -> int:
        """Elements of flash with the weights of a tap."""
        return self.words // 2 if self.int4 else self.words

    @property
    def halved(self) -> bool:
        """True if weights have HALF added, or HALF4, or their zero point."""
        return (self.unsigned or self.zero is not None) and not self.paired

    @property
    def half(self) -> int:
        """What makes a weight that is stored one without a sign."""
        if self.zero is not None:
            return self.zero
        return HALF4 if self.int4 else HALF

    @property
    def taps(self) -> int:
        return self.window.taps

    @property
    def group_outputs(self) -> int:
        return self.window.group_outputs

    @property
    def blocks(self) -> int:
        """The number of blocks of output channels that are summed together, in a
        group."""
        return -(-self.group_outputs // self.channels)

    @property
    def unrolled(self) -> int:
        """Taps in one turn; of few taps, so many that zeros are not a large part."""
        if self.turn:
            return self.turn
        taps, block = self.taps, self.words * self.pixels
        if taps % 8 == 0 and 8 * block <= MOST_PRODUCTS:
            return 8
        usual = 2 if 4 * block > MOST_PRODUCTS else 4
        if 8 * (-taps % usual) <= taps:
            return usual
        whole = [n for n in TURNS if taps % n == 0 and n * block <= MOST_PRODUCTS]
        tap = self.words + self.pixels + 2 * block
        return min((usual, *whole), key=lambda n: -(-taps // n) * (n * tap + 4))

    @property
    def lanes(self) -> int:
        """Taps up to a whole number of turns; the weights of the last ones are 0."""
        return -(-self.taps // self.unrolled) * self.unrolled

    @property
    def turns(self) -> int:
        """The number of iterations for all taps; for an image, for those of a row or of
        a column."""
        if self.image is None:
            return self.lanes // self.unrolled
        taps = self.window.channels if self.skips_columns else self.window.run
        return taps // self.unrolled

    @property
    def direct(self) -> bool:
        """A single pixel is read where it is."""
        whole = self.lanes == self.taps and self.window.pointwise
        whole = whole and self.window.groups == 1
        copied = self.unsigned or self.halved or self.row
        return self.pixels == 1 and whole and not copied

    @property
    def patch(self) -> int:
        """Bytes of a patch and, behind it, of what its pixels' HALF adds."""
        size = -(-self._copied * self.pixels * self.patch_elem.bytes // 4) * 4
        return size + (4 * self.pixels if self.halved else 0)

    @property
    def _copied(self) -> int:
        """Taps of a pixel that are in a patch at once, at most."""
        if self.image is None:
            return self.lanes
        w = self.window
        rows, across = max(self.image.inside(w.kernel_h)), w.kernel_w
        if self.across is not None:
            across = max(self.across.inside(w.kernel_w))
        return rows * across * w.channels

    @property
    def ahead(self) -> bool:
        """All patches are copied first: the last block computes pixels of the one
        before again, which are no longer where they were."""
        return self.row and self.over > 0 and not (self.apart or self.turn)

    @property
    def scratch(self) -> int:
        if self.direct:
            return 0
        blocks = -(-self.window.out_width // self.pixels) if self.ahead else 1
        return self.patch * blocks

    @property
    def run(self) -> int:
        """Bytes of a row that are neighbours in the window."""
        return self.window.run

    @property
    def types(self) -> str:
        """The part of the key that depends on the types of values."""
        if self.zero is not None:
            return "w9"
        if self.elem is DType.INT8:
            return "centred" if self.centred else ""
        return "s16_words" if self.held is DType.INT32 else "s16"

    @property
    def name(self) -> str:
        parts = (
            f"conv2d_block{self.channels}x{self.pixels}",
            self.types,
            "paired" if self.paired else "",
            "int4" if self.int4 else "",
            "unsigned" if self.unsigned else "",
            self.window.key,
            "image" if self.image is not None else "",
            "direct" if self.direct else "",
            "ahead" if self.ahead else "row" if self.row else "",
            f"rest{self.over}" if self.apart and self.over else "",
            "fours" if self.fours else "",
            f"more{self.lanes - self.taps}" if self.lanes > self.taps else "",
            "over" if self.group_outputs % self.channels else "",
            self.epilogue.key,
            f"by{self.unrolled}",
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        first = "read where it lies" if self.direct else "copied side by side"
        if self.ahead:
            first += ", those of the whole row before any sum"
        if self.image is not None:
            first += ", without the rows beside the image"
        bits = "int32" if not self.run_turns else "int64"
        weights = " x int4" if self.int4 else " x uint8 less a zero point"
        weights *= self.int4 or self.zero is not None
        return told(
            f"convolution, {self.elem.value}{weights}, {bits} sums: "
            f"{self.window.words}",
            f"windows of {self.pixels} pixel{'s' * (self.pixels > 1)} at a time, "
            f"{first}; then all output channels; weights forward, once for "
            "these pixels",
            self.epilogue.words,
        )

    @property
    def part_doc(self) -> str:
        """The comment in the C of the innermost part."""
        two = ""
        if self.paired:
            two = "; a word holds the weights of two channels, a sum both of theirs"
        elif self.int4:
            two = "; a byte holds the weights of two channels"
        return (
            f"Sums of {self.channels} output channels x {self.pixels} pixels in "
            f"registers, {self.unrolled} taps in a turn{two}."
        )

    @property
    def fours(self) -> bool:
        """True if four neighbours are copied in one iteration."""
        w = self.window
        return (w.group_channels if w.padded else self.run) % 4 == 0

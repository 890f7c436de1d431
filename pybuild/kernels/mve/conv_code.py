"""The code of conv.py's kernels: a patch of bytes, then dot products.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    VectorType,
    const,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.vector_packs import ODD4, PLACES8, RIGHT4, TWOS4
from pybuild.kernels.base.window import Bound
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.by_channel import ScalarFinish, columns
from pybuild.kernels.epilogues.end16 import Bound16, End16
from pybuild.kernels.layers.int4_products import apart, lower
from pybuild.kernels.layers.sums16 import LongSums
from pybuild.kernels.layers.zero_points import half_zero
from pybuild.kernels.mve.conv_layer import Layer
from pybuild.kernels.mve.conv_patches import Products
from pybuild.kernels.mve.epilogue import Ending, VectorFinish, finish_of
from pybuild.kernels.mve.exact import Exact, ExactFinish


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(requant(bias[o] + sum(x * w))), four channels at a time.

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`; ends of `table`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer(Products):
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.elem, self.step = layer.elem, layer.step
        self.vector = VectorType(layer.elem, layer.step)
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, layer.window)
        bare = isinstance(layer.epilogue, Bare)
        self.y = k.row("y", 0, INT32 if bare else self.elem, writable=True)
        self.weights = k.row("weights", g.rows + 1, INT8)
        self.ends = k.row("epilogue", g.rows + 2, INT32)
        self.out_channels = k.arg("out_channels", layer.window.out_channels)
        self.steps = k.arg("steps", layer.steps)
        self.finish: ScalarFinish | VectorFinish | ExactFinish | Bound16
        if isinstance(layer.epilogue, End16):
            self.finish = Bound16(k, layer.epilogue)
        elif isinstance(layer.epilogue, Bare) or (
            layer.together < 4 and not isinstance(layer.epilogue, Exact)
        ):
            self.finish = ScalarFinish(k, layer.epilogue)
        else:
            self.finish = finish_of(k, layer.epilogue)
        self.pitch: Expr = g.channels * g.stride
        if layer.scratch:
            self.patch_at = g.rows + (2 if bare else 3)
            self.patch = k.row("patch", self.patch_at, self.elem, writable=True)
        if not layer.direct:
            self.pitch = self.steps * self.step
        if layer.window.padded:
            self.x_zero = k.arg("x_zero", layer.x_zero)
        self.less: dict[str, Expr] = {}
        if layer.zero is not None:
            self.less["less_zero"] = k.arg("less_zero", -half_zero(layer.zero))
        self.inputs: Expr = g.channels
        self.start: Expr = const(0)
        if layer.window.groups > 1:
            self.inputs = k.arg("group_inputs", layer.window.group_channels)
            self.outputs = k.arg("group_outputs", layer.group_outputs)
            self.groups = k.arg("groups", layer.window.groups)
            blocks = -(-layer.group_outputs // layer.together)
            taps = blocks * layer.together * len(layer.order)
            taps //= 2 if layer.int4 else 1
            self.group_weights = k.arg("group_weights", taps)
            self.group_ends = k.arg("group_ends", blocks * layer.end_words)
        self.run: Expr = const(layer.run)
        if layer.run >= self.step:
            self.run = self.inputs
            if not layer.window.by_taps:
                self.run = g.channels * g.kernel_w

    def write(self) -> Builder:
        k, g = self.k, self.g
        if self.layer.run >= self.step and not self.layer.direct:
            self.run = k.let("run", self.run)
        n = self.layer.pixels
        if self.layer.direct:
            x = k.row("row", 1, self.elem)
            if self.layer.copied:
                size = self.layer.window.width * self.layer.window.channels
                to = k.let("to", self.patch)
                self._copy(x, to, k.arg("row_bytes", size), size)
                x = k.row("copied", self.patch_at, self.elem)
            with self._part(n, x, self.y, whole_row=True) as given:
                self._row(given)
            return k
        if self._rest and not self.layer.threes:
            with k.loop("ox", g.out_width, 0, n) as ox:
                with k.when(const(n) <= g.out_width - ox):
                    self._patches(n, ox)
                with k.otherwise():
                    self._patches(1, ox)
            return k
        for count, start, stop in self._ways(g.out_width):
            with k.loop("ox", stop, start, count) as ox:
                self._patches(count, ox)
        return k

    def _ways(self, width: Expr) -> Iterator[tuple[int, Expr, Expr]]:
        """The numbers of pixels computed together, with their ranges."""
        start: Expr = const(0)
        ways = self.layer.ways
        for number, (count, _) in enumerate(ways):
            stop = width
            if number < len(ways) - 1:
                stop = self.k.let("whole", width - ways[-1][1])
            yield count, start, stop
            start = stop

    def _patches(self, pixels: int, ox: Expr) -> None:
        """The bytes of some windows, each in a patch, and then their sums."""
        if self.layer.window.groups > 1:
            self._groups(pixels, ox)
            return
        self._gather(pixels, ox)
        y = offset(self.y, ox * self.out_channels)
        with self._part(pixels, self.patch, y) as given:
            self._blocks(pixels, given)

    def _groups(self, pixels: int, ox: Expr) -> None:
        """Does the same for each group of channels."""
        k, weights, ends = self.k, self.weights, self.ends
        with k.loop("group", self.groups) as group:
            self.start = k.let("start", group * self.inputs)
            self._gather(pixels, ox)
            self.weights = k.let(
                "its_weights", offset(weights, group * self.group_weights)
            )
            self.ends = k.let("its_ends", offset(ends, group * self.group_ends))
            at = ox * self.out_channels + group * self.outputs
            with self._part(pixels, self.patch, offset(self.y, at)) as given:
                self._blocks(pixels, given)
        self.weights, self.ends = weights, ends

    def _row(self, given: dict[str, Var]) -> None:
        """The pixels of a row, which are read where they lie."""
        k = self.k
        width, pitch = given["out_width"], given["pitch"]
        at, to = k.let("pixel", given["x"]), k.let("to", given["y"])
        for count, start, stop in self._ways(width):
            if self.layer.ways[-1] == (count, count) and self._rest:
                self._blocks(count, {**given, "x": at, "y": to})
                continue
            with k.loop("ox", stop, start, count):
                self._blocks(count, {**given, "x": at, "y": to})
                k.assign(at, offset(at, pitch * count))
                k.assign(to, offset(to, given["out_channels"] * count))

    @property
    def _rest(self) -> bool:
        return self.layer.window.out_width % self.layer.pixels > 0

    @property
    def _last(self) -> Expr:
        """The position of the last vector."""
        if self.layer.direct:
            return self.g.channels - self.layer.last
        return self.steps * self.step - self.step

    def _run_values(self) -> dict[str, Expr]:
        """The arguments for sums of 64 bits."""
        if not self.layer.run_steps:
            return {}
        most, steps = self.layer.run_steps, self.layer.steps - self.layer.tail
        return {
            "run_steps": self.k.arg("run_steps", most),
            "runs": self.k.arg("runs", -(-steps // most)),
        }

    @contextmanager
    def _part(
        self, pixels: int, x: Expr, y: Expr, whole_row: bool = False
    ) -> Iterator[dict[str, Var]]:
        """All output channels of some pixels, in a function of their own."""
        k, layer, finish = self.k, self.layer, self.finish
        given: dict[str, Expr] = {
            "x": x,
            "weights": self.weights,
            "epilogue": self.ends,
            "y": y,
            "out_channels": self.out_channels,
            "pitch": self.pitch,
            **({"out_width": self.g.out_width} if whole_row else {}),
            **({} if layer.written_out else {"steps": self.steps}),
            **self._run_values(),
            **self.less,
            **({"group_outputs": self.outputs} if layer.window.groups > 1 else {}),
            **({"last": self._last} if layer.apart else {}),
            **finish.values,
        }
        rest = f"row_{layer.rest_key}" if self._rest else "row"
        row = rest if whole_row else ""
        row += "_over" * layer.over
        parts = ("dot_mve", row, str(pixels), layer.dot_key)
        name = "_".join(p for p in parts if p)
        with k.part(name, layer.dot_doc, layer.over, **given) as params:
            inner = {p.name: p for p in params}
            self.finish = finish.inside(inner)
            yield inner
        self.finish = finish

    def _blocks(self, pixels: int, given: dict[str, Var]) -> None:
        """Computes four output channels at a time, or as many as there are."""
        k, layer, out_channels = self.k, self.layer, given["out_channels"]
        channels = given.get("group_outputs", out_channels)
        w, ends = (
            k.let("w", given["weights"]),
            k.let("next_epilogue", given["epilogue"]),
        )
        sources = [given["x"]]
        for name in ("second", "third")[: pixels - 1]:
            sources.append(k.let(name, offset(sources[-1], given["pitch"])))
        known: dict[int, list[Var]] = {}
        if layer.held:
            known = {s: self._vectors(s, sources, given) for s in range(layer.steps)}
        self.centres = self._centres(sources, known, given)
        places = None
        if layer.paired and pixels > 1:
            places = k.let("places", PLACES8(1, out_channels))
        with k.loop("channel", channels, 0, layer.together) as channel:
            at = channel
            if layer.group_outputs % layer.together:
                at = k.let("first", minimum(channel, channels - 4))
            found: Sequence[list[Var]] | Sequence[Var]
            if len(layer.passes) > 1:
                found = self._in_passes(sources, known, given, w)
            else:
                starts = self._starts(ends)
                found = self._sums(starts, sources, known, given, w)
                if layer.int4:
                    found = apart(k, found, layer.joint)
            ending = Ending(k, self.finish, ends, self.elem)
            y = [offset(given["y"], at + out_channels * p) for p in range(pixels)]
            ending.store(found, y, places if pixels > 1 else None)
            if layer.end_words:
                k.assign(ends, offset(ends, layer.end_words))

    def _sums(
        self,
        starts: list[Expr],
        sources: list[Var],
        known: dict[int, list[Var]],
        given: dict[str, Var],
        w: Var,
    ) -> list[list[Var]]:
        """The sums of all channels of a block, for each pixel."""
        k, layer = self.k, self.layer
        sums = [
            [k.let(f"acc{p}{c}", start + centre) for c, start in enumerate(starts)]
            for p, centre in enumerate(self.centres)
        ]
        if layer.run_steps:
            return self._runs(sums, sources, given, w)
        self._add(sums, sources, known, given, w)
        return sums

    def _in_passes(
        self,
        sources: list[Var],
        known: dict[int, list[Var]],
        given: dict[str, Var],
        w: Var,
    ) -> list[Var]:
        """The same, two channels and two, as a vector of each pixel."""
        fours = list[Var]()
        for _ in self.layer.passes:
            sums = self._sums([const(0)] * 2, sources, known, given, w)
            if self.layer.int4:
                lower(self.k, sums, self.layer.joint)
            if not fours:
                fours = [self.k.let(f"four{p}", TWOS4(*s)) for p, s in enumerate(sums)]
            else:
                for four, pair in zip(fours, sums, strict=True):
                    self.k.assign(four, ODD4(four, *pair))
        if self.layer.joint:
            for four in fours:
                self.k.assign(four, RIGHT4(four, const(4)))
        return fours

    def _starts(self, ends: Expr) -> list[Expr]:
        """The start values of the sums of a block."""
        layer, finish = self.layer, self.finish
        if not isinstance(finish, ScalarFinish | Bound16):
            return [const(0)] * layer.together
        size = columns(finish.epilogue)
        return [finish.start(ends, size * c) for c in range(layer.together)]

    def _runs(
        self, sums: list[list[Var]], sources: list[Var], given: dict[str, Var], w: Var
    ) -> list[list[Var]]:
        """The sums of each run are added to sums of 64 bits."""
        layer, longs = self.layer, LongSums(self.k, sums)
        steps: Expr = given.get("steps", const(layer.steps))
        steps = steps - 1 if layer.tail else steps
        most = given["run_steps"]
        moving = self._moving(sources)
        longs.add_runs(
            given["runs"], steps, most,
            lambda count: self._steps(count, sums, moving, w),
        )  # fmt: skip
        if layer.tail:
            self._multiply(sums, self._vectors(layer.steps - 1, sources, given), w)
            longs.carry()
        return longs.totals

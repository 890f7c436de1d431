"""The code of conv.py's kernels: a patch of bytes, then dot products.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    VectorType,
    cast,
    const,
    load,
    minimum,
    offset,
    wide,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.vector_rounds import LANE
from pybuild.kernels.base.vectors import ALL16, DOT8, DOT16, LANES, words_at
from pybuild.kernels.base.window import Bound
from pybuild.kernels.epilogues.by_channel import ScalarFinish, columns
from pybuild.kernels.epilogues.end16 import Bound16, End16
from pybuild.kernels.layers.sums16 import LongSums
from pybuild.kernels.mve.conv_layer import Layer
from pybuild.kernels.mve.epilogue import VectorFinish, finish_of
from pybuild.kernels.mve.exact import Exact, ExactFinish

HELD = 4  # vectors of pixels that stay in registers


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(requant(bias[o] + sum(x * w))), four channels at a time.

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`; ends of `table`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.elem, self.step = layer.elem, layer.step
        self.dot = DOT8 if layer.elem is not INT8 else DOT16
        self.vector = VectorType(layer.elem, layer.step)
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, layer.window)
        self.y = k.row("y", 0, self.elem, writable=True)
        self.weights = k.row("weights", g.rows + 1, INT8)
        self.ends = k.row("epilogue", g.rows + 2, INT32)
        self.out_channels = k.arg("out_channels", layer.window.out_channels)
        self.steps = k.arg("steps", layer.steps)
        self.finish: ScalarFinish | VectorFinish | ExactFinish | Bound16
        if isinstance(layer.epilogue, End16):
            self.finish = Bound16(k, layer.epilogue)
        elif layer.together < 4 and not isinstance(layer.epilogue, Exact):
            self.finish = ScalarFinish(k, layer.epilogue)
        else:
            self.finish = finish_of(k, layer.epilogue)
        self.pitch: Expr = g.channels * g.stride
        if layer.scratch:
            self.patch = k.row("patch", g.rows + 3, self.elem, writable=True)
        if not layer.direct:
            self.pitch = self.steps * self.step
        if layer.window.padded:
            self.x_zero = k.arg("x_zero", layer.x_zero)
        self.inputs: Expr = g.channels
        self.start: Expr = const(0)
        if layer.window.groups > 1:
            self.inputs = k.arg("group_inputs", layer.window.group_channels)
            self.outputs = k.arg("group_outputs", layer.group_outputs)
            self.groups = k.arg("groups", layer.window.groups)
            blocks = -(-layer.group_outputs // layer.together)
            vectors = blocks * layer.together * layer.steps
            self.group_weights = k.arg("group_weights", vectors * self.step)
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
            if self.layer.row:
                size = self.layer.window.width * self.layer.window.channels
                to = k.let("to", self.patch)
                self._copy(x, to, k.arg("row_bytes", size), size)
                x = k.row("copied", g.rows + 3, self.elem)
            with self._part(n, x, self.y, whole_row=True) as given:
                self._row(given)
            return k
        with k.loop("ox", g.out_width, 0, n) as ox:
            if not self._rest:
                self._patches(n, ox)
                return k
            with k.when(const(n) <= g.out_width - ox):
                self._patches(n, ox)
            with k.otherwise():
                self._patches(1, ox)
        return k

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
        """The same for each group of channels."""
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
        k, n = self.k, self.layer.pixels
        width, pitch = given["out_width"], given["pitch"]
        at, to = k.let("pixel", given["x"]), k.let("to", given["y"])
        whole: Expr = k.let("whole", width - width % n) if self._rest else width
        with k.loop("ox", whole, 0, n):
            self._blocks(n, {**given, "x": at, "y": to})
            k.assign(at, offset(at, pitch * n))
            k.assign(to, offset(to, given["out_channels"] * n))
        if self._rest:
            self._blocks(1, {**given, "x": at, "y": to})

    @property
    def _rest(self) -> bool:
        return self.layer.window.out_width % self.layer.pixels > 0

    def _gather(self, pixels: int, ox: Expr) -> None:
        k, g, w = self.k, self.g, self.layer.window
        x0 = k.let("x0", ox * g.stride - g.left)
        if not w.padded:
            self._inside(pixels, x0)
            return
        with k.when(g.fits(x0, pixels)):
            self._inside(pixels, x0)
        with k.otherwise(), k.loop("i", pixels) as i:
            to = k.let("to", offset(self.patch, self.pitch * i))
            self._columns(k.let("begin", x0 + g.stride * i), to)

    def _inside(self, pixels: int, x0: Expr) -> None:
        """Windows that lie in the row."""
        k, g = self.k, self.g
        begin = k.let("begin", x0 * g.channels + self.start)
        patches = [self.patch] + [offset(self.patch, self.pitch)] * (pixels - 1)
        to = [k.let(f"to{i}", patch) for i, patch in enumerate(patches)]
        step = k.let("step", g.stride * g.channels) if pixels > 1 else const(0)
        with g.runs(k, begin, self.elem) as x:
            for i, patch in enumerate(to):
                source = k.let(f"x{i}", offset(x, step * i))
                self._copy(source, patch, self.run, self.layer.run)

    def _columns(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, column by column."""
        k, g = self.k, self.g
        with g.columns(k, x0, self.elem) as (inside, source):
            with k.when(inside):
                x = k.let("x", offset(source, self.start))
                self._copy(x, to, self.inputs, self.layer.window.group_channels)
            with k.otherwise():
                self._fill(to)
                k.assign(to, offset(to, self.inputs))

    def _fill(self, to: Var) -> None:
        """The zero point in all channels of a column."""
        k, known, step = self.k, self.layer.window.group_channels, 16
        if self.elem is not INT8 or known < step:
            with k.loop("c", self.inputs, rolled=True) as c:
                k.store(to, c, cast(self.x_zero, self.elem))
            return
        zeros = k.let("zeros", ALL16(self.x_zero))
        with k.loop("c", self.inputs - (step - 1), 0, step, rolled=True) as c:
            k.store(to, c, zeros)
        if known % step:
            k.store(to, self.inputs - step, zeros)

    def _vector(self, x: Expr, at: Expr | int = 0) -> Expr:
        """Values of one vector; of a pointer to smaller ones, widened."""
        return wide(x, at, self.vector)

    def _run_values(self) -> dict[str, Expr]:
        """What sums of 64 bits need."""
        if not self.layer.run_steps:
            return {}
        most, steps = self.layer.run_steps, self.layer.steps - self.layer.tail
        return {
            "run_steps": self.k.arg("run_steps", most),
            "runs": self.k.arg("runs", -(-steps // most)),
        }

    def _copy(self, x: Var, to: Var, count: Expr, known: int) -> None:
        """`count` values; `known`: as many, of which the code may depend on the form.

        The last vector, or word, may reach back into the one before.
        """
        k = self.k
        if known >= self.step:
            with k.loop("at", count - (self.step - 1), 0, self.step, rolled=True) as at:
                k.store(to, at, self._vector(x, at))
            if known % self.step:
                k.store(to, count - self.step, self._vector(x, count - self.step))
        elif known >= 4:
            ends = [*range(0, known - 3, 4), *([known - 4] if known % 4 else [])]
            for at_byte in ends:
                k.store(to, at_byte, words_at(x, at_byte))
        else:
            for at_byte in range(known):
                k.store(to, at_byte, load(x, at_byte))
        k.assign(to, offset(to, count if known >= self.step else known))

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
            **({"group_outputs": self.outputs} if layer.window.groups > 1 else {}),
            **({"last": self.g.channels - self.step} if layer.tail else {}),
            **finish.values,
        }
        row = "row_rest" if whole_row and self._rest else "row" if whole_row else ""
        parts = ("dot_mve", row, str(pixels), layer.dot_key)
        name = "_".join(p for p in parts if p)
        with k.part(name, layer.dot_doc, **given) as params:
            inner = {p.name: p for p in params}
            self.finish = finish.inside(inner)
            yield inner
        self.finish = finish

    def _blocks(self, pixels: int, given: dict[str, Var]) -> None:
        """Four output channels at a time, or as many as there are."""
        k, layer, out_channels = self.k, self.layer, given["out_channels"]
        channels = given.get("group_outputs", out_channels)
        w, ends = (
            k.let("w", given["weights"]),
            k.let("next_epilogue", given["epilogue"]),
        )
        sources = [given["x"]]
        if pixels > 1:
            sources.append(k.let("second", offset(given["x"], given["pitch"])))
        known: dict[int, list[Var]] = {}
        if layer.steps * pixels <= HELD:
            known = {s: self._vectors(s, sources, given) for s in range(layer.steps)}
        with k.loop("channel", channels, 0, layer.together) as channel:
            at = channel
            if layer.group_outputs % layer.together:
                at = k.let("first", minimum(channel, channels - 4))
            starts = self._starts(ends)
            sums = [
                [k.let(f"acc{p}{c}", start) for c, start in enumerate(starts)]
                for p in range(pixels)
            ]
            if layer.run_steps:
                sums = self._runs(sums, sources, given, w)
            elif layer.written_out:
                for s in range(layer.steps):
                    values = known.get(s) or self._vectors(s, sources, given)
                    self._multiply(sums, values, w)
            else:
                self._loop(sums, sources, given, w)
            for p, found in enumerate(sums):
                self._end(found, ends, offset(given["y"], at + out_channels * p))
            k.assign(ends, offset(ends, layer.end_words))

    def _starts(self, ends: Expr) -> list[Expr]:
        """What the sums of a block begin with."""
        layer, finish = self.layer, self.finish
        if not isinstance(finish, ScalarFinish | Bound16):
            return [const(0)] * layer.together
        size = columns(finish.epilogue)
        return [finish.start(ends, size * c) for c in range(layer.together)]

    def _end(self, sums: list[Var], ends: Expr, y: Expr) -> None:
        """Stores the values of a block."""
        k, finish = self.k, self.finish
        if isinstance(finish, Bound16):
            for c, total in enumerate(sums):
                at = finish.epilogue.size * c
                row = finish.row(k, ends, at)
                finish.store(k, [(total, y, c)], row, offset(ends, at))
            return
        if not isinstance(finish, ScalarFinish):
            four = LANES(*(sums + sums[-1:] * (4 - len(sums))))
            value = finish.narrow(four, ends)
            if len(sums) == 4:
                k.store(y, 0, value)
                return
            made = k.let("made", value)
            for c, lane in enumerate(LANE[: len(sums)]):
                k.store(y, c, cast(lane(made), self.elem))
            return
        size = columns(finish.epilogue)
        for c, total in enumerate(sums):
            row = finish.row(k, ends, size * c)
            k.store(y, c, finish.narrow(k, total, row))

    def _runs(
        self, sums: list[list[Var]], sources: list[Var], given: dict[str, Var], w: Var
    ) -> list[list[Var]]:
        """The sums of each run are added to sums of 64 bits."""
        k, layer, longs = self.k, self.layer, LongSums(self.k, sums)
        steps: Expr = given.get("steps", const(layer.steps))
        steps = steps - 1 if layer.tail else steps
        most = given["run_steps"]
        moving = [k.let(f"from{p}", x) for p, x in enumerate(sources)]
        longs.add_runs(
            given["runs"], steps, most,
            lambda count: self._steps(count, sums, moving, w),
        )  # fmt: skip
        if layer.tail:
            self._multiply(sums, self._vectors(layer.steps - 1, sources, given), w)
            longs.carry()
        return longs.totals

    def _loop(
        self, sums: list[list[Var]], sources: list[Var], given: dict[str, Var], w: Var
    ) -> None:
        k, tail = self.k, self.layer.tail
        moving = [k.let(f"from{p}", x) for p, x in enumerate(sources)]
        steps = given["steps"] - 1 if tail else given["steps"]
        self._steps(steps, sums, moving, w)
        if tail:
            self._multiply(sums, self._vectors(self.layer.steps - 1, sources, given), w)

    def _steps(
        self, count: Expr, sums: list[list[Var]], moving: list[Var], w: Var
    ) -> None:
        """So many vectors."""
        k = self.k
        with k.loop("step", count, rolled=True):
            self._multiply(sums, [k.let("values", self._vector(x)) for x in moving], w)
            for x in moving:
                k.assign(x, offset(x, self.step))

    def _vectors(
        self, step: int, sources: list[Var], given: dict[str, Var]
    ) -> list[Var]:
        """The bytes of one step, of each pixel."""
        at: Expr = const(self.step * step)
        if self.layer.tail and step == self.layer.steps - 1:
            at = given["last"]
        return [self.k.let("values", self._vector(x, at)) for x in sources]

    def _multiply(self, sums: list[list[Var]], values: list[Var], w: Var) -> None:
        k = self.k
        for c in range(self.layer.together):
            weights = k.let("weight", self._vector(w, self.step * c))
            for four, x in zip(sums, values, strict=True):
                k.assign(four[c], self.dot(four[c], x, weights))
        k.assign(w, offset(w, self.layer.together * self.step))

"""What nothing reads is not in the C: gcc warned of a variable of int16 kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Quant
from pybuild.ir.loop import INT32, Let, Part, const, load
from pybuild.ir.loop_verify import statements, used
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate
from pybuild.select.constant_args import with_constant_args
from tests.graphs.rows import model_of
from tests.toolchains import INCLUDE, STRICT, require, run


@pytest.mark.parametrize("target", ["cortex-m4", "generic"])
def test_a_row_of_one_pixel_of_int16(target: str, tmp_path: Path) -> None:
    net = GraphBuilder("pixel")
    x = net.input("x", (1, 3, 1, 16), "int16", quant=(0.01, 0))
    values = np.random.default_rng(1).integers(-127, 128, (4, 3, 1, 16))
    w = net.constant("w", values.astype(np.int8), Quant((0.01,), (0,)))
    net.output(net.op("conv2d", x, w, pads=(1, 0, 1, 0), quant=(0.05, 0)))
    library = model_of(net.build()).build(name="pixel", target=target)
    for name, text in library.sources().items():
        (tmp_path / name).write_text(text)
    run(
        [require("gcc"), *STRICT, "-fsyntax-only", f"-I{INCLUDE}", tmp_path / "pixel.c"]
    )


def branching(rest: int, more: int) -> Candidate:
    """What only a branch needs: an argument, a variable, a parameter of a part."""
    k = Builder("branching")
    y, x = k.row("y", 0, INT32, writable=True), k.row("x", 1, INT32)
    left, added = k.arg("rest", rest), k.arg("more", more)
    twice = k.let("twice", added * 2)
    with k.part("halves", to=y, at=x, left=left, twice=twice) as (to, at, some, plus):
        k.store(to, 0, load(at, 0))
        with k.when(const(0) < some):
            k.store(to, 1, load(at, 1) + plus)
    return Candidate(k.finish(), tuple(k.values), (), ())


def test_what_only_a_branch_needs_goes_with_it() -> None:
    for made in with_constant_args([branching(0, 3), branching(0, 4)]):
        assert made.func is not None and (made.func.args, made.args) == ((), ())
        (part,) = (s for s in statements(made.func.body) if isinstance(s, Part))
        assert [p.name for p in part.params] == ["to", "at"]
        lets = [s.var.name for s in made.func.body if isinstance(s, Let)]
        assert lets == ["y", "x"]
    one, two = with_constant_args([branching(0, 3), branching(1, 4)])
    assert (one.args, two.args) == ((0, 3), (1, 4))


def test_what_a_later_statement_reads_stays() -> None:
    k = Builder("chain")
    y = k.row("y", 0, INT32, writable=True)
    with k.loop("i", k.arg("n", 3)) as i:
        first = k.let("first", i * 2)
        second = k.let("second", first + 1)
        k.let("third", second + 1)
        k.store(y, i, second)
    body = k.finish().body
    names = [s.var.name for s in statements(body) if isinstance(s, Let)]
    assert names == ["y", "first", "second"] and used(body)[0] == body

"""Models of an image that take turns in their memory: what one may bind of another."""

from __future__ import annotations

from pathlib import Path

import pytest

import pybuild
from pybuild.install import crt_include
from pybuild.ir.graph import Graph
from tests.emit.test_generated_c import CLEAN, SANITIZE, shell
from tests.images.test_image_c import written
from tests.toolchains import require, runtime

BOUND = """
#include "pair.h"
static _Alignas(16) uint8_t arena[PAIR_ARENA_BYTES];
static struct pair all;
int main(void)
{
    const struct pair_memory memory = PAIR_MEMORY(arena);
    static const float x[REC_X_LEN] = {1};
    static float copy[OUT_H_LEN];
    int refused = 0;
    if (pair_init(&all, &memory) || rec_set_x(&all.rec, x) || rec_run(&all.rec))
        return 1;
    refused += out_bind_h(&all.out, rec_first(&all.rec)) == CRT_ERR_OVERLAP;
    refused += out_bind_h(&all.out, rec_second(&all.rec)) == CRT_ERR_OVERLAP;
    refused += out_bind_h(&all.out, rec_third(&all.rec)) == CRT_ERR_OVERLAP;
    if (refused != @refused)
        return 2;
    return out_bind_h(&all.out, copy) ? 3 : out_run(&all.out);
}
"""


def curves(name: str, given: str, **made: str) -> Graph:
    """made  output -> operator"""
    b = pybuild.GraphBuilder(name)
    x = b.input(given, (1, 64))
    for output, op in made.items():
        b.output(b.op(op, x), output)
    return b.build()


@pytest.mark.parametrize("exclusive", [(), [("rec", "out")]], ids=["apart", "turns"])
def test_an_output_in_shared_memory_is_no_input_of_the_other(
    tmp_path: Path, exclusive: object
) -> None:
    """It would be overwritten while it is read. One output of rec lies where the input
    of out has its home."""
    require("gcc")
    rec = curves("rec", "x", first="tanh", second="logistic", third="tanh")
    models = {"rec": rec, "out": curves("out", "h", y="tanh")}
    image = pybuild.build_image(models, name="pair", exclusive=exclusive)
    refused = "2" if exclusive else "0"
    (tmp_path / "main.c").write_text(BOUND.replace("@refused", refused))
    flags = [*CLEAN, "-std=c11", *SANITIZE["gcc"], "-O1"]
    files = [*written(image, tmp_path), *runtime("gcc", *flags)]
    flags += [f"-I{tmp_path}", f"-I{crt_include()}"]
    shell("gcc", *flags, *files, "-lm", "-o", tmp_path / "program")
    shell(tmp_path / "program")

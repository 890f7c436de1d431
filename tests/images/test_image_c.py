"""An image in C, under sanitizers: connected models, by hand too, and two images in
one program of C++."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.image import Image
from pybuild.install import crt_include
from pybuild.params.image_write import plain, write_image
from tests.emit.test_generated_c import CLEAN, SANITIZE, WARNINGS, shell
from tests.frontends.onnx.models import NodeSpec, model
from tests.graphs.networks import classifier
from tests.installed.test_several_models import IMAGE, SCALE, head
from tests.toolchains import ROOT, require, runtime

assert SCALE == 1 / 256

# the image's own wires, then the same by hand with instances of one's own
PROGRAM = """
#include "duo.h"
#include <stdio.h>
#include <string.h>
static _Alignas(16) uint8_t arena[DUO_ARENA_BYTES];
static _Alignas(16) uint8_t one[BODY_ARENA_BYTES + 16];
static _Alignas(16) uint8_t two[HEAD_ARENA_BYTES + 16];
static const int8_t pixels[BODY_IMAGE_LEN] = {@pixels};
static struct duo all;
static int show(const int8_t *out)
{
    int i;
    for (i = 0; i < 5; i++)
        printf("%d ", out[i]);
    return 0;
}
static int wired(void)
{
    const struct duo_memory memory = DUO_MEMORY(arena);
    const struct crt_region few = {arena, DUO_ARENA_BYTES - 1};
    const struct duo_memory less = {few};
    const int8_t *scores;
    int8_t before[5];
    if (duo_init(NULL, &memory) != CRT_ERR_NULL ||
        duo_init(&all, NULL) != CRT_ERR_NULL ||
        duo_init(&all, &less) != CRT_ERR_REGION || duo_init(&all, &memory))
        return 1;
    if (body_set_image(&all.body, pixels) || body_run(&all.body))
        return 2;
    scores = body_scores(&all.body);
    memcpy(before, scores, 5);
    if ((const int8_t *)head_image(&all.head) != scores || head_run(&all.head))
        return 3;
    if (memcmp(before, scores, 5)) /* head has run over body's memory */
        return 4;
    show(scores);
    show(head_out(&all.head));
    return @turns && body_run(&all.body) != CRT_ERR_INPUT_CONSUMED &&
                   body_run(&all.body) != CRT_ERR_INPUT_MISSING;
}
static int by_hand(void)
{
    const struct crt_region first = {one, sizeof one}, second = {two, sizeof two};
    const struct body_memory in_one = {first};
    const struct head_memory in_two = {second};
    static int8_t scores[BODY_SCORES_LEN];
    static struct body body;
    static struct head head;
    if (body_init(&body, &in_one) || head_init(&head, &in_two))
        return 1;
    if (@lazy && head_run(&head) != CRT_ERR_UNBOUND)
        return 2;
    if (@by_hand)
        return 3;
    if (body_set_image(&body, pixels) || body_run(&body) || head_run(&head))
        return 4;
    show(scores);
    return show(head_out(&head));
}
int main(void)
{
    int bad = wired();
    return bad ? bad : 10 * by_hand();
}
"""
BIND = "body_bind_scores(&body, scores) || head_bind_image(&head, scores)"
CALL = "duo_connect_body_scores_to_head_image"
CALLED = f"{CALL}(&body, &head, NULL) != CRT_ERR_NULL || "
CALLED += f"{CALL}(&body, NULL, scores) || {CALL}(NULL, &head, scores)"


def duo(**options: object) -> Image:
    models = {"body": classifier("body").model(), "head": head()}
    wire = ["body.scores=head.image"]
    return pybuild.build_image(models, name="duo", connect=wire, **options)


def wanted() -> list[int]:
    body, last = classifier("body").model().build().host(), head().build().host()
    body.run(image=IMAGE)
    scores = body.get_output("scores")
    last.run(image=scores)
    return [*scores.ravel().tolist(), *last.get_output("out").ravel().tolist()]


def written(image: Image, folder: Path) -> list[Path]:
    for file, text in image.sources().items():
        (folder / file).write_text(text)
    return sorted(folder.glob("*.c"))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("exclusive", [(), [("body", "head")]], ids=["apart", "turns"])
@pytest.mark.parametrize("by_hand", [BIND, CALLED], ids=["bind", "function"])
def test_connected(
    tmp_path: Path, compiler: str, exclusive: object, by_hand: str
) -> None:
    require(compiler)
    pixels = ",".join(map(str, IMAGE.ravel().tolist()))
    text = PROGRAM.replace("@pixels", pixels).replace("@by_hand", by_hand)
    text = text.replace("@turns", "1" if exclusive else "0").replace("@lazy", "1")
    (tmp_path / "main.c").write_text(text)
    flags = [*CLEAN, "-std=c11", *SANITIZE[compiler], "-O1"]
    files = [*written(duo(exclusive=exclusive), tmp_path), *runtime(compiler, *flags)]
    flags += [f"-I{tmp_path}", f"-I{crt_include()}"]
    shell(compiler, *flags, *files, "-o", tmp_path / "program")
    have = list(map(int, shell(tmp_path / "program").split()))
    assert have == wanted() * 2
    assert len(set(have)) > 3


PAGE = """
#include "duo.h"
#include <stdio.h>
static int bad;
static const int8_t pixels[BODY_IMAGE_LEN] = {@pixels};
static void check(int error)
{
    bad |= error != CRT_OK;
}
static void show(const int8_t *out)
{
    unsigned i;
    for (i = 0; i < HEAD_OUT_LEN; i++)
        printf("%d ", out[i]);
}
@blocks
int main(void)
{
    @calls
    return bad;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_page_of_documentation(tmp_path: Path, compiler: str) -> None:
    """Every block of C in docs/several-models.md, run."""
    require(compiler)
    text = (ROOT / "docs" / "several-models.md").read_text()
    blocks = re.findall(r"```c\n(.*?)```", text, re.S)
    assert len(blocks) == 3
    bodies = [f"static void run_{i}(void)\n{{\n{b}}}\n" for i, b in enumerate(blocks)]
    calls = " ".join(f"run_{i}();" for i in range(len(blocks)))
    page = PAGE.replace("@blocks", "".join(bodies)).replace("@calls", calls)
    pixels = ",".join(map(str, IMAGE.ravel().tolist()))
    (tmp_path / "main.c").write_text(page.replace("@pixels", pixels))
    flags = [*CLEAN, "-std=c11", *SANITIZE[compiler], "-O1"]
    files = [
        *written(duo(exclusive=[("body", "head")]), tmp_path),
        *runtime(compiler, *flags),
    ]
    flags += [f"-I{tmp_path}", f"-I{crt_include()}"]
    shell(compiler, *flags, *files, "-o", tmp_path / "program")
    have = list(map(int, shell(tmp_path / "program").split()))
    assert have == wanted()[5:] * 3


USER = """
#include "first.h"
#include "second.h"
#include <cstdio>
alignas(16) static uint8_t one[FIRST_ARENA_BYTES];
alignas(16) static uint8_t two[SECOND_ARENA_BYTES];
static first a;
static second b;
int main()
{
    first_memory am = FIRST_MEMORY(one);
    second_memory bm = SECOND_MEMORY(two);
    std::printf("%d %d", first_init(&a, &am), second_init(&b, &bm));
    for (unsigned i = 0; i < KWS_IMAGE_LEN; i++)
        kws_image(&a.kws)[i] = vww_image(&b.vww)[i] = 1;
    std::printf(" %d %d", kws_run(&a.kws), vww_run(&b.vww));
    std::printf(" %d %d", crt_graph_input_count(&a.kws.graph),
                crt_graph_output_count(&a.kws.graph));
    std::printf(" %d", crt_graph_find_output(&a.kws.graph, "stem"));
    return 0;
}
"""


def test_two_images_in_one_program_and_a_cpp_user(tmp_path: Path) -> None:
    """Of the same networks under other names: nothing clashes."""
    require("g++")
    for name, models in (("first", ("kws", "ad")), ("second", ("vww", "ic"))):
        outputs = ("scores", "stem")
        made = {n: classifier("net", seed=2).model(*outputs) for n in models}
        written(pybuild.build_image(made, name=name), tmp_path)
    (tmp_path / "user.cpp").write_text(USER)
    include = [f"-I{crt_include()}", f"-I{tmp_path}"]
    objects = [*runtime("gcc", *WARNINGS, "-O1")]
    for path in sorted(tmp_path.glob("*.c")):
        objects.append(tmp_path / f"{path.stem}.o")
        shell("gcc", *WARNINGS, "-O1", "-c", path, *include, "-o", objects[-1])
    flags = ["-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    user = tmp_path / "user.cpp"
    shell("g++", *flags, *include, user, *objects, "-o", tmp_path / "both")
    assert shell(tmp_path / "both").split() == ["0", "0", "0", "0", "1", "2", "1"]


def test_weights_are_one_array_in_the_program(tmp_path: Path) -> None:
    require("gcc")
    made = {n: classifier("net", seed=2).model() for n in ("kws", "vww")}
    image = pybuild.build_image(made, name="both")
    sources = image.sources()
    (tmp_path / "both_weights.c").write_text(sources["both_weights.c"])
    path = tmp_path / "both_weights.o"
    include = f"-I{crt_include()}"
    shell("gcc", "-std=c99", "-c", tmp_path / "both_weights.c", include, "-o", path)
    sizes = [line.split() for line in shell("size", "-A", path).splitlines()]
    total = sum(int(s[1]) for s in sizes if s and s[0].startswith(".rodata"))
    alone = made["kws"].build().report.flash.weights
    assert alone <= total <= alone + 16 * len(image.pool.constants)
    assert image.report.flash.saved == alone
    assert np.all([name.startswith("both_") for name in image.pool.users])


ONE_IMAGE = """
#include "three.h"
#include <stdio.h>
static _Alignas(16) uint8_t arena[THREE_ARENA_BYTES];
static const int8_t pixels[A_IMAGE_LEN] = {@pixels};
static struct three all;
static struct crt_params of[3];
int main(void)
{
    const struct three_memory memory = THREE_MEMORY(arena);
    int i;
    if (three_init(&all, &memory) || a_open_params(&of[0], NULL) ||
        b_open_params(&of[1], NULL) || c_open_params(&of[2], NULL))
        return 1;
    if (a_set_image(&all.a, pixels) || a_run(&all.a) != CRT_ERR_UNBOUND)
        return 2;
    if (a_load_params(&all.a, &of[0]) || b_load_params(&all.b, &of[1]) ||
        c_load_params(&all.c, &of[2]))
        return 3;
    if (b_set_image(&all.b, pixels) || c_set_image(&all.c, pixels) ||
        a_run(&all.a) || b_run(&all.b) || c_run(&all.c))
        return 4;
    for (i = 0; i < 5; i++)
        printf("%d %d %d ", a_scores(&all.a)[i], b_scores(&all.b)[i],
               c_scores(&all.c)[i]);
    if (crt_params_close(&of[0]) != CRT_ERR_IN_USE || a_release_params(&all.a))
        return 5;
    return crt_params_close(&of[0]) != CRT_OK;
}
"""


def test_equal_parameter_images_are_there_once(tmp_path: Path) -> None:
    """a and b have one, c its own; the report counts what is linked."""
    models = {name: classifier("tiny").model() for name in "ab"}
    models["c"] = classifier("tiny", seed=1).model()
    image = pybuild.build_image(models, name="three", params="replaceable")
    flash, members = image.report.flash, [image[name] for name in "abc"]
    alone = sum(member.report.flash.weights for member in members)
    own = len(members[0].image())
    assert flash.weights + flash.saved == alone and flash.saved >= own > 0
    rest = flash.weights - sum(c.array.nbytes for c in image.pool.constants)
    assert 0 <= rest - own - len(members[2].image()) < 8
    (row,) = (row for row in image.report.shared if "params" in row.symbol)
    assert row.models == ("a", "b") and own <= row.bytes < own + 4
    gcc, pixels = require("gcc"), IMAGE.ravel()
    numbers = ",".join(map(str, pixels.tolist()))
    (tmp_path / "main.c").write_text(ONE_IMAGE.replace("@pixels", numbers))
    flags = [*CLEAN, "-std=c11", *SANITIZE["gcc"], "-O1"]
    files = [*written(image, tmp_path), *runtime("gcc", *flags)]
    flags += [f"-I{tmp_path}", f"-I{crt_include()}"]
    shell(gcc, *flags, *files, "-o", tmp_path / "program")
    have = list(map(int, shell(tmp_path / "program").split()))
    for index, member in enumerate(members):
        want = member.host().run(image=IMAGE)["scores"].ravel().tolist()
        assert have[index::3] == want
    linked = "".join(image.sources().values())
    assert len(re.findall(r"\w*params_image\[\d+\] CRT_SECTION_WEIGHTS", linked)) == 2


# what is one in both halves is the table of words
HALVES = """
#include "lm.h"
#include <stdio.h>
static _Alignas(16) uint8_t arena[LM_ARENA_BYTES];
static _Alignas(16) const uint8_t strange[] = {@strange};
static struct lm all;
static struct crt_params of[2], other;
int main(void)
{
    const struct lm_memory memory = LM_MEMORY(arena);
    const int32_t word[1] = {7};
    float state[REC_STATE_LEN];
    unsigned i;
    for (i = 0; i < REC_STATE_LEN; i++)
        state[i] = 0.25f;
    if (crt_params_verify(&other, strange, sizeof strange) ||
        lm_init(&all, &memory) || rec_open_params(&of[0], NULL) ||
        rec_load_params(&all.rec, &other) != CRT_ERR_NAME ||
        out_open_params(&of[1], NULL) || rec_load_params(&all.rec, &of[0]) ||
        out_load_params(&all.out, &of[1]) || rec_set_word(&all.rec, word) ||
        rec_set_state(&all.rec, state) || rec_run(&all.rec) ||
        out_set_hidden(&all.out, rec_next(&all.rec)) || out_run(&all.out))
        return 1;
    for (i = 0; i < OUT_LOGITS_LEN; i++)
        printf("%.9g ", (double)out_logits(&all.out)[i]);
    return 0;
}
"""


def halves(folder: Path) -> dict[str, Path]:
    """An RNN language model of one layer in two files."""
    chance = np.random.default_rng(0)
    shapes = {"words": (100, 64), "wx": (64, 64), "wh": (64, 64), "b": (64,)}
    first = {n: chance.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    second = {"words": first["words"], "c": np.ones(100, np.float32)}
    state = np.zeros((1, 64), np.float32)
    turned = {"transB": 1}
    nodes: list[NodeSpec] = [
        ("Gather", ["words", "word"], ["x"], {}),
        ("Gemm", ["x", "wx", "b"], ["a"], turned),
        ("Gemm", ["state", "wh"], ["r"], turned),
        ("Add", ["a", "r"], ["s"], {}),
        ("Tanh", ["s"], ["next"], {}),
    ]
    given = {"word": np.zeros(1, np.int32), "state": state}
    last: list[NodeSpec] = [("Gemm", ["hidden", "words", "c"], ["logits"], turned)]
    files = {
        "rec": model(nodes, given, ["next"], first),
        "out": model(last, {"hidden": state}, ["logits"], second),
    }
    for name, data in files.items():
        (folder / f"{name}.onnx").write_bytes(data)
    return {name: folder / f"{name}.onnx" for name in files}


# @req NAME_load_params:CRT_ERR_NAME
def test_equal_weights_of_two_images_are_there_once(tmp_path: Path) -> None:
    image = pybuild.build_image(halves(tmp_path), name="lm", params="replaceable")
    flash, members = image.report.flash, [image["rec"], image["out"]]
    assert flash.saved >= 100 * 64 * 4
    alone = sum(member.report.flash.weights for member in members)
    assert flash.weights + flash.saved == alone
    assert [m.tables.image_bytes for m in members] == [len(m.image()) for m in members]
    strange = write_image(plain({"alpha": np.zeros(4, np.float32)}))
    text = HALVES.replace("@strange", ",".join(map(str, strange)))
    (tmp_path / "main.c").write_text(text)
    gcc, flags = require("gcc"), [*CLEAN, "-std=c11", *SANITIZE["gcc"], "-O1"]
    files = [*written(image, tmp_path), *runtime("gcc", *flags)]
    flags += [f"-I{tmp_path}", f"-I{crt_include()}"]
    shell(gcc, *flags, *files, "-lm", "-o", tmp_path / "program")
    have = np.array(shell(tmp_path / "program").split(), np.float32)
    word, state = np.array([7], np.int32), np.full((1, 64), 0.25, np.float32)
    hidden = members[0].host().run(word=word, state=state)["next"]
    want = members[1].host().run(hidden=hidden)["logits"].ravel()
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    linked = "".join(image.sources().values())
    assert len(re.findall(r"\w*params_image\[\d+\] CRT_SECTION_WEIGHTS", linked)) == 1

"""The language model of examples/: two halves, one matrix, everywhere the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pybuild
from tests.toolchains import INCLUDE, ROOT, SANITIZE, SOURCES, STRICT, require, run

HERE = ROOT / "examples" / "language_model"
PROMPTS = (("the", "arena", "is"), ("bytes", "of"), ("zzz", "tensor"))


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The example's own modules."""
    sys.path.insert(0, str(HERE))
    try:
        import measure
        import network
        import predict
        import text

        yield {m.__name__: m for m in (measure, network, predict, text)}
    finally:
        sys.path.remove(str(HERE))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("c"), require("gcc"), *SANITIZE["gcc"])


def compiled(folder: Path, compiler: str, *flags: str) -> Path:
    files = [HERE / "main.c", *SOURCES]
    for name in ("recurrent", "output"):
        for file, source in (
            pybuild.load(HERE / f"{name}.json").build().sources().items()
        ):
            (folder / file).write_text(source)
            files += [folder / file] if file.endswith(".c") else []
    include = ["-I", folder, "-I", INCLUDE, "-I", HERE]
    options = [*STRICT, "-ffp-contract=off", *flags, *include]
    run([compiler, *options, *files, "-lm", "-o", folder / "main"])
    return folder / "main"


@pytest.mark.parametrize("backend", ["llvm", "c"])
@pytest.mark.parametrize("prompt", PROMPTS, ids=" ".join)
def test_c_and_python_say_the_same(
    prompt: tuple[str, ...],
    backend: str,
    program: Path,
    scripts: dict[str, ModuleType],
) -> None:
    said = scripts["predict"].continued(prompt, backend)
    assert run([program, *prompt]).split() == said
    vocabulary = scripts["text"].read_vocabulary()
    words = scripts["text"].numbers(list(prompt), vocabulary)
    plain = scripts["network"].greedy(scripts["measure"].weights(), words, len(said))
    assert [vocabulary[word] for word in plain] == said


def test_clang_compiles_it(tmp_path: Path) -> None:
    program = compiled(tmp_path, require("clang"), "-O1")
    assert len(run([program, "the"]).split()) == 12


def test_words_and_output_layer_are_one_matrix(scripts: dict[str, ModuleType]) -> None:
    model = scripts["predict"].LanguageModel()
    there = model.output.parameter_address("embedding")
    assert model.embedding.ctypes.data == there
    weights = scripts["measure"].weights()
    np.testing.assert_array_equal(model.embedding, weights["embedding"])


def test_halves_keep_no_memory_for_what_is_bound(
    scripts: dict[str, ModuleType],
) -> None:
    recurrent, output, whole = scripts["measure"].libraries()
    assert recurrent.plan.lazy == {"x", "h"} and output.plan.lazy == {"h"}
    halves, one = (
        scripts["measure"].sizes(recurrent, output),
        scripts["measure"].sizes(whole),
    )
    # each half has tables of its own, of a few hundred bytes; the matrix is one
    assert one[0] > 10 * halves[0] and halves[1] < one[1] + 500


def test_one_graph_gives_the_same_logits(scripts: dict[str, ModuleType]) -> None:
    """At most 1e-5 of the largest: sums of 48 products in another order."""
    network, weights = scripts["network"], scripts["measure"].weights()
    *_, whole = scripts["measure"].libraries()
    words = np.arange(3, 3 + scripts["measure"].STEPS)
    h = np.zeros((1, network.HIDDEN), np.float32)
    made = whole.host()(x=weights["embedding"][words], h=h)["logits"]
    for t, word in enumerate(words):
        h = network.step(weights, int(word), h)
        want = network.logits(weights, h)[0]
        assert np.abs(made[t] - want).max() < 1e-5 * np.abs(want).max()


def test_it_has_learnt(scripts: dict[str, ModuleType]) -> None:
    """Held-out text is twice as predictable as word frequencies make it."""
    import train

    text = scripts["text"]
    every = text.split(text.CORPUS.read_text(encoding="utf-8"))
    found = np.array(text.numbers(every, text.read_vocabulary()))
    cut = len(found) * 9 // 10
    weights = scripts["measure"].weights()
    alone = train.unigram_perplexity(found[:cut], found[cut:])
    assert train.perplexity(weights, found[cut:]) < alone / 2

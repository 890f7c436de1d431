"""What the generated C says of itself: every kernel, part, function and constant says
what it is, comments change no code, and no name can break out of one."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import pybuild
from pybuild.emit.kernels.c import block_comment, comment_text, field_comment
from pybuild.emit.tables.comments import kernel_fields
from pybuild.emit.tables.tables import User
from pybuild.install import crt_include
from pybuild.ir.graph import Graph
from pybuild.ir.loop import Func
from pybuild.ir.loop_verify import intrins
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.table import candidates
from pybuild.library import Library
from pybuild.model import Model
from pybuild.targets.target import TARGETS, Target
from tests.golden.networks import conv_int8, whole_int8
from tests.ops.cases import cases
from tests.ops.suite import model
from tests.ops.test_general import _ones
from tests.toolchains import STRICT, require, run

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
NETS = ("digits", "classifier")
HOSTILE = (
    "ends */ int x; /*",
    "begins /* again",
    "/*/ both */*/",
    "back\\",
    "star*\\",
    "tri??/",
    "*??/",
    "line\nbreak",
    "right to left \u202e \u2066",
    "nul \0 bell \a",
    "long " * 40 + "/*" * 40,
    "unbroken" * 30 + "\\",
)


# no other target has a kernel, or a part of one, of a name that these have not
UNLIKE = ("generic", "host", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc", "esp32")
SETTINGS = ("balanced", "size", "speed")


def _graphs() -> Iterator[Graph]:
    yield from (model(case, "litert").graph for case in cases())
    yield from (one.graph() for one in _ones())


def _ways(targets: Sequence[str], turn: int) -> Iterator[tuple[Target, str]]:
    """Each target with each setting; of few targets with one, the next at each turn."""
    for place, name in enumerate(targets):
        for number, optimise in enumerate(SETTINGS):
            if targets != UNLIKE or (place + turn) % len(SETTINGS) == number:
                yield TARGETS[name], optimise


def _offered(graph: Graph, ways: Iterable[tuple[Target, str]]) -> Iterator[Candidate]:
    """What these cores could compute the graph with, of each at these settings."""
    for target, optimise in ways:
        for node in graph.nodes:
            for found in candidates(node, graph, target, optimise):
                yield found
                if found.finish is not None:
                    yield found.finish


@pytest.mark.parametrize(
    "targets",
    [UNLIKE, pytest.param(tuple(TARGETS), marks=pytest.mark.sweep)],
    ids=["unlike", "all"],
)
def test_every_kernel_part_function_and_constant_says_what_it_is(
    targets: Sequence[str],
) -> None:
    told: dict[Func, set[str]] = defaultdict(set)
    parts: dict[str, set[str]] = defaultdict(set)
    silent = set()
    for turn, graph in enumerate(_graphs()):
        for found in _offered(graph, _ways(targets, turn)):
            silent |= {f"constant {p.role}" for p in found.constants if not p.order}
            if not isinstance(found.func, Func):
                continue
            told[found.func].add(found.func.doc)
            for intrin in intrins(found.func):
                if intrin.c is None:
                    parts[intrin.name].add(intrin.doc)
    for func, docs in told.items():
        labels = [line[:10].strip() for doc in docs for line in doc.splitlines()]
        if labels[:2] != ["Computes", "Order"]:
            silent.add(f"kernel {func.name}")
    silent |= {f"function {name}" for name, docs in parts.items() if "" in docs}
    assert not silent
    assert len(told) > 500
    # the text follows from the code: layers that share it are told the same
    several = {func.name for func, docs in told.items() if len(docs) > 1}
    several |= {name for name, docs in parts.items() if len(docs) > 1}
    assert not several


def test_of_many_layers_the_first_are_named_and_the_rest_counted() -> None:
    func = replace(conv_int8().model().build().tables.kernels[0][0], args=())
    row = (("row of the output", 1), ("rows of the input", 3), ("weights", 1))
    users = [User(f"c{n}", "conv2d 3x3", row, model="one") for n in range(6)]
    fields = dict(kernel_fields(func, users))
    assert fields["Layers"] == "one: c0, c1, c2 and 3 more: conv2d 3x3"
    assert fields["p[]"] == "0 row of the output, 1-3 rows of the input, 4 weights"
    assert "a[]" not in fields
    taller = (row[0], ("rows of the input", 5), row[2])
    users += [User(f"d{n}", f"conv2d {n}x5", taller, model="two") for n in range(5)]
    lines = kernel_fields(func, users)
    assert ("", "and 2 more layers of two") in lines
    told = dict(lines)["p[]"]
    assert told == "in this order: row of the output, rows of the input, weights"


def test_a_kernel_is_its_code_whatever_is_said_of_it() -> None:
    library = conv_int8().model().build()
    (func, users), *_ = library.tables.kernels
    assert [user.layer for user in users] == ["first", "second"]
    other = replace(func, doc="Computes  something else")
    assert func == other
    assert hash(func) == hash(other)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comment_is_one_whatever_it_says(text: str) -> None:
    for lines in (
        block_comment(text),
        block_comment(f"{text}\n{text}", 4),
        field_comment([("Layers", text), ("", text)]),
    ):
        made = "\n".join(lines)
        assert max(map(len, lines)) <= 80
        assert made.strip().startswith("/*")
        assert made.endswith("*/")
        inside = made.strip()[2:-2]
        assert not re.search(r"/\*|\*/|\\|\?\?", inside)
        assert inside.replace("\n", "").isprintable()
    assert comment_text("conv_1 [1,2] -> *x/y") == "conv_1 [1,2] -> *x/y"


def _renamed(graph: Graph) -> Graph:
    """Tensors and layers with names that would break C."""
    names = [*dict.fromkeys((*graph.tensors, *(n.name for n in graph.nodes)))]
    new = {n: f"{HOSTILE[i % len(HOSTILE)]}{i}" for i, n in enumerate(names)}

    def of(known: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new[n] if n else n for n in known)

    return replace(
        graph,
        nodes=tuple(
            replace(n, name=new[n.name], inputs=of(n.inputs), outputs=of(n.outputs))
            for n in graph.nodes
        ),
        tensors={new[n]: replace(t, name=new[n]) for n, t in graph.tensors.items()},
        inputs=of(graph.inputs),
        outputs=of(graph.outputs),
        constants={new[n]: value for n, value in graph.constants.items()},
    )


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_hostile_names_compile(compiler: str, tmp_path: Path) -> None:
    require(compiler)
    path = f"{HOSTILE[0]}{HOSTILE[3]}.test"
    graph = _renamed(whole_int8().graph())
    library = Model(path, graph, "litert", "0" * 64).build(None, name="hostile")
    for name, text in library.sources().items():
        (tmp_path / name).write_text(text)
        wide = [line for line in text.splitlines() if len(line) > 80]
        # but for names as strings, and numbers of tables
        assert not [w for w in wide if not re.search(r'"[^"]{60,}"|^ +[-\d]', w)]
    flags = [*STRICT, "-std=c99", "-fsyntax-only", f"-I{crt_include()}"]
    run([compiler, *flags, *sorted(tmp_path.glob("*.c"))])


@pytest.mark.parametrize("plan", ["rows", "whole"])
@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
@pytest.mark.parametrize("name", NETS)
def test_the_map_of_memory_has_what_steps_touch(
    name: str, plan: str, target: str
) -> None:
    library = _net(name).build(None, name="net", target=target, plan=plan)
    rows = library.tables.memory
    touched = 0
    for number, step in enumerate(library.plan.steps):
        for access in (*step.candidate.outputs, *step.candidate.inputs):
            place = library.plan.places[access.tensor]
            if place.region < 0:
                continue
            at, size = place.home, _size(library, access)
            live = [r for r in rows if r.at <= at and _lives(r.live, number)]
            assert size in {r.bytes - (at - r.at) for r in live}, (number, access)
            touched += 1
        if step.candidate.scratch:
            block_offsets = {
                (r.at, r.bytes) for r in rows if r.live == f"{number}..{number}"
            }
            assert (step.scratch_at, step.candidate.scratch) in block_offsets
    assert touched > 5
    assert all(r.at + r.bytes <= library.tables.regions[0].bytes for r in rows)


@pytest.mark.parametrize("plan", ["rows", "whole"])
@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
@pytest.mark.parametrize("name", NETS)
def test_pieces_of_memory_share_bytes_only_in_turn(
    name: str, plan: str, target: str
) -> None:
    """A step may read what it writes over, so two may be live in that step."""
    library = _net(name).build(None, name="net", target=target, plan=plan)
    last = len(library.plan.steps)
    shared = 0
    for a, b in itertools.combinations(library.tables.memory, 2):
        if a.at < b.at + b.bytes and b.at < a.at + a.bytes:
            both = [n for n in range(-1, last + 1) if _lives(a.live, n)
                    and _lives(b.live, n)]  # fmt: skip
            assert len(both) <= 1, (a, b)
            shared += 1
    assert shared


def _net(name: str) -> Model:
    return pybuild.load(DIGITS) if name == "digits" else whole_int8().model()


def _size(library: Library, access: RowAccess) -> int:
    ring = library.plan.rings.get(access.tensor)
    if ring is not None:
        return (ring.rows - 1) * ring.pitch + access.row_bytes
    return library.plan.graph.tensor(access.tensor).bytes


def _lives(live: str, step: int) -> bool:
    if live == "always":
        return True
    first, last = live.split("..")
    begun = first == "start" or int(first) <= step
    return begun and (last == "end" or step <= int(last))

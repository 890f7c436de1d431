"""What layers give a shared kernel alike is in the kernel; what differs is not."""

from __future__ import annotations

import re
from dataclasses import replace

import pybuild
from pybuild.emit.tables.assemble import make_tables
from pybuild.emit.tables.pool import Pool, pooled
from pybuild.emit.tables.tables import Tables
from pybuild.ir.loop import (
    INT8,
    Expr,
    For,
    Func,
    If,
    Part,
    cast,
    const,
    i32,
    load,
    offset,
)
from pybuild.ir.loop_verify import statements
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.external import External
from pybuild.select.constant_args import with_constant_args
from tests.graphs.networks import classifier


def copies(count: int, more: int) -> Candidate:
    """y[i] = x[i] + more, of `count` elements."""
    k = Builder("copies")
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    counted, added = k.arg("count", count), k.arg("more", more)
    with k.loop("i", counted) as i:
        k.store(y, i, cast(i32(load(x, i)) + added, INT8))
    return Candidate(k.finish(), tuple(k.values), (), ())


def args(made: list[Candidate]) -> list[tuple[int, ...]]:
    return [one.args for one in made]


def names(made: Candidate) -> list[str]:
    assert made.func is not None
    return [arg.name for arg in made.func.args]


def test_what_differs_stays_an_argument() -> None:
    made = with_constant_args([copies(8, 3), copies(9, 3), copies(8, 3)])
    assert args(made) == [(8,), (9,), (8,)]
    assert names(made[0]) == ["count"]
    assert made[0].func is made[1].func


def test_of_one_user_nothing_stays() -> None:
    (made,) = with_constant_args([copies(8, 3)])
    assert (made.args, names(made)) == ((), [])


def parted(name: str, count: int, more: int, after: int = 0) -> Candidate:
    """y[i] = x[i] + more, of `count` elements, by a part that other kernels call too;
    `after` of them once more, where there are such."""
    k = Builder(name)
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    counted, added = k.arg("count", count), k.arg("more", more)

    def part(to: Expr, at: Expr, size: Expr) -> None:
        given = {"to": to, "at": at, "size": size, "added": added}
        with k.part("add_all", **given) as inner, k.loop("i", inner[2]) as i:
            k.store(inner[0], i, cast(i32(load(inner[1], i)) + inner[3], INT8))

    part(y, x, counted)
    left = k.arg("after", after)
    with k.when(const(0) < left):
        part(offset(y, counted), offset(x, counted), left)
    return Candidate(k.finish(), tuple(k.values), (), ())


def parts(made: list[Candidate]) -> list[Part]:
    funcs = [one.func for one in made]
    assert all(funcs)
    return [s for f in funcs if f for s in statements(f.body) if isinstance(s, Part)]


def test_a_part_that_kernels_share_stays_one() -> None:
    made = with_constant_args([parted("one", 8, 3), parted("two", 9, 3)])
    first, second = parts(made)
    assert (first.name, first.body) == (second.name, second.body)
    assert [p.name for p in first.params] == ["to", "at", "size"]
    assert [part.args[2] for part in (first, second)] == [const(8), const(9)]


def test_for_speed_each_kernel_has_its_own() -> None:
    made = with_constant_args([parted("one", 8, 3), parted("two", 9, 3)], False)
    first, second = parts(made)
    assert first.name != second.name and first.body != second.body
    assert [p.name for p in first.params] == ["to", "at"]


def test_parts_of_other_constants_have_other_names() -> None:
    """The same numbers, given for different things."""
    made = [
        *with_constant_args([parted("one", 8, 3), parted("one", 9, 3)], False),
        *with_constant_args([parted("two", 3, 8), parted("two", 3, 7)], False),
    ]
    one, two = parts(made)[0], parts(made)[2]
    assert one.params != two.params and one.name != two.name


def test_what_is_done_twice_is_done_by_one_part() -> None:
    assert [p.name for p in parts([parted("one", 8, 3)])] == ["add_all", "add_all"]


def test_code_that_no_layer_needs_is_left_out() -> None:
    (none,) = with_constant_args([parted("one", 8, 3)])
    assert len(parts([none])) == 1
    some = with_constant_args([parted("one", 8, 3), parted("one", 8, 3, 2)])
    assert len(parts(some[:1])) == 2 and names(some[0]) == ["after"]
    (all_,) = with_constant_args([parted("one", 8, 3, 2)])
    assert len(parts([all_])) == 2 and all_.func is not None
    assert not any(isinstance(s, If) for s in all_.func.body)


def test_a_loop_of_no_turns_is_left_out() -> None:
    def loops(count: int) -> int:
        (made,) = with_constant_args([copies(count, 3)])
        assert made.func is not None
        return sum(isinstance(stmt, For) for stmt in made.func.body)

    assert (loops(0), loops(1)) == (0, 1)


def test_a_user_s_function_keeps_its_arguments() -> None:
    func = copies(8, 3).func
    assert func is not None
    external = External(**{n: getattr(func, n) for n in Func.__dataclass_fields__})
    (made,) = with_constant_args([Candidate(external, (8, 3), (), ())])
    assert made.args == (8, 3) and made.func is external


def test_models_of_an_image_share_kernels() -> None:
    """Alone each would have constants of its own, and so kernels of its own."""
    models = {n: classifier(n, "int8").model() for n in ("one", "two")}
    image = pybuild.build_image(models)
    for name, model in models.items():
        alone = model.build(name=name).tables
        assert len(alone.args) < len(image[name].tables.args)


def test_two_parts_of_one_name_get_names_of_their_own() -> None:
    """In a model, and in an image of several; what is the same is there once."""

    def doing(name: str, more: int) -> Func:
        k = Builder(name)
        y = k.row("y", 0, INT8, writable=True)
        with k.when(const(1) < const(2)), k.part("same", to=y) as inner:
            k.store(inner[0], 0, cast(const(more), INT8))
        with k.otherwise(), k.part("other", to=y) as inner:
            k.store(inner[0], 1, cast(const(more), INT8))
        return k.finish()

    def model(*numbers: int) -> Tables:
        funcs = [doing(f"f{place}", n) for place, n in enumerate(numbers)]
        steps = [
            replace(step, candidate=replace(step.candidate, func=func))
            for step, func in zip(plan.steps, funcs, strict=False)
        ]
        left = plan.steps[len(funcs) :]
        return make_tables(replace(plan, steps=(*steps, *left)), "net", 1)

    def named(tables: Tables | Pool) -> list[str]:
        """The functions that these kernels call, in the order of their turns."""
        kernels = (f for f, _ in tables.kernels if re.search(r"f\d(_2)?$", f.name))
        found = [part for func in kernels for part in statements(func.body)]
        return [part.name for part in found if isinstance(part, Part)]

    plan = classifier("net", "int8").model().build(plan="whole").plan
    assert named(model(1, 1)) == ["same", "other", "same", "other"]
    two = ["same", "other", "same_2", "other_2"]
    assert named(model(1, 2)) == two
    assert named(model(1, 2, 1, 2)) == 2 * two
    image = pooled("image", [model(1, 1), model(2, 2)], (), {})
    assert named(image) == two

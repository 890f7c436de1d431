"""What layers give a shared kernel alike is in the kernel; what differs is not."""

from __future__ import annotations

import pybuild
from pybuild.kernels.builder import Builder
from pybuild.kernels.candidate import Candidate
from pybuild.kernels.constant_args import with_constant_args
from pybuild.kernels.external import External
from pybuild.loop import INT8, Func, cast, i32, load
from tests.networks import classifier


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

"""ATen's operators one by one, without torch: programs made by hand, and what numpy
says that they give. Found with nets of torchvision, timm and transformers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pybuild.errors import BuildError
from pybuild.frontends.onnx.load import load
from pybuild.frontends.torch.load import converted
from pybuild.frontends.torch.reader.program import Call, Program, Ref
from pybuild.model import Model
from pybuild.ops.interpret import interpret

Values = dict[str, Any]
RNG = np.random.default_rng(0)
A = RNG.standard_normal((2, 3, 4)).astype(np.float32)
N = np.asarray([[3, 5], [6, 1]], np.int64)


def call(target: str, output: str, **args: Any) -> Call:
    """Tensors are Ref("x"), all else is a value."""
    return Call(f"aten.{target}", output, args, (output,), f"net: node '{output}'")


def ran(
    calls: list[Call], values: Values, outputs: list[str], weights: Values | None = None
) -> Values:
    """values  what each tensor must hold, inputs too: the program tells their shapes

    weights  those that the program has
    """
    known = {**values, **(weights or {})}
    made = {name for one in calls for name in one.outputs}
    program = Program(
        "net", tuple(calls), tuple(n for n in values if n not in made), tuple(outputs),
        weights or {}, {n: v.shape for n, v in known.items()},
        {n: v.dtype.name for n, v in known.items()},
    )  # fmt: skip
    message, _ = converted(program)
    graph = Model("", load("net", message.SerializeToString(), {}), "onnx", "").lower()
    found = interpret(graph, {name: known[name] for name in graph.inputs})
    return {name: found[name] for name in outputs}


def adaptive(x: Any, count: int) -> Any:
    """Averages along the last axis, as torch's page of it says."""
    size = x.shape[-1]
    ends = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
    return np.stack([x[..., a:b].mean(-1) for a, b in ends], -1)


X = Ref("x")
SOFT = np.asarray([-100, -20, -1, 0, 1.4, 1.6, 10, 90, 1e30], np.float32)
NEAR = np.asarray([-0.9, -1e-9, 0, 1e-20, 3e-8, 1e-4, 0.7, 1.5, 9, 1e30, np.inf],
                  np.float32)  # fmt: skip
HELD = np.clip(A.astype(np.float64), 0.1, 0.9)
ENDS = np.asarray([1, -np.inf, np.nan, np.inf], np.float32)
# target, arguments, input, what it gives
CASES: dict[str, tuple[str, Values, Any, Any]] = {
    "softplus by its threshold": (
        "softplus.default", {"beta": 2.0, "threshold": 3.0}, SOFT,
        np.where(2 * SOFT > 3, SOFT, np.logaddexp(0, 2 * SOFT) / 2).astype(np.float32),
    ),
    "softplus": (
        "softplus.default", {}, SOFT, np.logaddexp(0, SOFT).astype(np.float32),
    ),
    "elu by its scales": (
        "elu.default", {"alpha": 1.5, "scale": 2.0, "input_scale": 0.5}, SOFT,
        np.where(SOFT > 0, 2 * SOFT, 3 * np.expm1(SOFT / 2)).astype(np.float32),
    ),
    "mish": (
        "mish.default", {}, SOFT,
        (SOFT * np.tanh(np.logaddexp(0, SOFT))).astype(np.float32),
    ),
    "area of sinh": ("asinh.default", {}, SOFT, np.arcsinh(SOFT)),
    "a number compared": ("ge.Scalar", {"other": 3}, N, N >= 3),
    "bits of integers": ("__and__.Scalar", {"other": 3}, N, N & 3),
    "bits of booleans": ("__or__.Tensor", {"other": X}, N > 3, N > 3),
    "xor": ("bitwise_xor.Scalar", {"other": 2}, N, N ^ 2),
    "the less of two": ("min.other", {"other": Ref("w")}, A, np.minimum(A, A[0])),
    "the more of two": ("max.other", {"other": Ref("w")}, A, np.maximum(A, A[0])),
    "norm": (
        "linalg_vector_norm.default", {"dim": [-1], "keepdim": True}, A,
        np.sqrt((A**2).sum(-1, keepdims=True)),
    ),
    "norm of order 1": (
        "linalg_vector_norm.default", {"ord": 1.0, "dim": [1]}, A, abs(A).sum(1)
    ),
    "the most": (
        "linalg_vector_norm.default", {"ord": np.inf}, A, abs(A).max()
    ),
    "axes exchanged": (
        "swapaxes.default", {"axis0": -1, "axis1": 0}, A, A.swapaxes(-1, 0)
    ),
    "log1p": ("log1p.default", {}, NEAR, np.log1p(NEAR)),
    "exp2": ("exp2.default", {}, A, np.exp2(A)),
    "log of a sum of exp": ("logaddexp.default", {"other": Ref("w")}, A,
                            np.logaddexp(A, A[0])),
    "log of sigmoid": ("log_sigmoid_forward.default", {}, SOFT,
                       -np.logaddexp(0, -SOFT).astype(np.float32)),
    "logit": ("logit.default", {"eps": 0.1}, A,
              np.log(HELD / (1 - HELD)).astype(np.float32)),
    "hypot": ("hypot.default", {"other": Ref("w")}, A * np.float32(1e30),
              np.hypot(A * np.float32(1e30), A[0])),
    "soft shrink": ("softshrink.default", {"lambd": 0.4}, A,
                    np.sign(A) * np.maximum(np.abs(A) - np.float32(0.4), 0)),
    "hard shrink": ("hardshrink.default", {}, A, np.where(np.abs(A) > 0.5, A, 0)),
    "infinite": ("isinf.default", {}, ENDS, np.isinf(ENDS)),
    "windows": ("unfold.default", {"dimension": 1, "size": 2, "step": 1}, A,
                np.stack([A[:, :2], A[:, 1:]], 1).swapaxes(2, 3)),
    "differences": ("diff.default", {"dim": 1, "prepend": X}, A,
                    np.diff(A, axis=1, prepend=A)),
    "differences of the last": ("diff.default", {}, A, np.diff(A)),
    "broadcast": ("broadcast_to.default", {"size": [2, 2, 3, 4]}, A,
                  np.broadcast_to(A, (2, 2, 3, 4))),
    "another's shape": ("reshape_as.default", {"other": X}, A, A),
    "filled": ("fill.Scalar", {"value": 2.5}, A, np.full_like(A, 2.5)),
    "einsum": ("einsum.default", {"equation": "abc,abc->ac", "tensors": [X, X]}, A,
               (A * A).sum(1)),
    "outer": ("outer.default", {"vec2": X}, A[0, 0], np.outer(A[0, 0], A[0, 0])),
    "more averages than elements": (
        "adaptive_avg_pool1d.default", {"output_size": [7]}, A, adaptive(A, 7)
    ),
    "averages that overlap": (
        "adaptive_avg_pool2d.default", {"output_size": [2, 3]}, A[None],
        adaptive(adaptive(A[None], 3).swapaxes(2, 3), 2).swapaxes(2, 3),
    ),
    "averages of one axis alone": (
        "adaptive_avg_pool2d.default", {"output_size": [None, 1]}, A[None],
        A[None].mean(-1, keepdims=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_operator(name: str) -> None:
    target, args, x, want = CASES[name]
    want = np.asarray(want)
    made = call(target, "y", **({} if "tensors" in args else {"self": X}), **args)
    have = ran([made], {"x": x, "y": want}, ["y"], {"w": A[0]})["y"]
    assert have.dtype == want.dtype and have.shape == want.shape
    np.testing.assert_allclose(have, want, 1e-6, 1e-6)


def test_weights_by_direction_and_length() -> None:
    """_weight_norm: the convolution of wav2vec2's places."""
    g = np.abs(RNG.standard_normal((1, 1, 4))).astype(np.float32)
    w = g * A / np.sqrt((A.astype(np.float64) ** 2).sum((0, 1), keepdims=True))
    calls = [
        call("_weight_norm.default", "w", v=Ref("v"), g=Ref("g"), dim=2),
        call("add.Tensor", "y", self=X, other=Ref("w")),
    ]
    values = {"x": A, "w": w.astype(np.float32), "y": A + w}
    have = ran(calls, values, ["y"], {"v": A, "g": g})
    np.testing.assert_allclose(have["y"], A + w, 1e-6, 1e-6)


# ---- in place -------------------------------------------------------------------


def test_a_copy_keeps_what_it_was() -> None:
    calls = [
        call("relu.default", "r", self=X),
        call("clone.default", "c", self=Ref("r")),
        call("add_.Tensor", "a", self=Ref("r"), other=1),
        call("mul.Tensor", "y", self=Ref("r"), other=2),
        call("mul.Tensor", "z", self=Ref("c"), other=2),
    ]
    r = np.maximum(A, 0)
    values = {"x": A, "r": r, "c": r, "a": r + 1, "y": 2 * (r + 1), "z": 2 * r}
    have = ran(calls, values, ["y", "z"])
    assert (have["y"] == 2 * (r + 1)).all()
    assert (have["z"] == 2 * r).all()


def test_an_output_that_was_changed_is_what_it_became() -> None:
    """y = relu(x); y.add_(1); return y"""
    calls = [
        call("relu.default", "r", self=X),
        call("add_.Tensor", "a", self=Ref("r"), other=1),
    ]
    r = np.maximum(A, 0)
    have = ran(calls, {"x": A, "r": r, "a": r + 1}, ["r"])
    assert (have["r"] == r + 1).all()


def test_parts_of_a_tensor_are_written() -> None:
    """As Swin numbers its windows: mask[:, 0:2, 1:] = 7, and by a column of it."""
    calls = [
        call("relu.default", "m", self=X),
        call("slice.Tensor", "s", self=Ref("m"), dim=1, start=0, end=2),
        call("slice.Tensor", "t", self=Ref("s"), dim=2, start=1, end=4),
        call("fill_.Scalar", "f", self=Ref("t"), value=7.0),
        call("select.int", "c", self=Ref("m"), dim=-1, index=-4),
        call("permute.default", "p", self=Ref("c"), dims=[1, 0]),
        call("unsqueeze.default", "u", self=Ref("p"), dim=0),
        call("add_.Tensor", "g", self=Ref("u"), other=1.0),
        call("mul.Tensor", "y", self=Ref("m"), other=1.0),
    ]
    m = np.maximum(A, 0)
    values: Values = {"x": A, "m": m, "s": m[:, :2], "t": m[:, :2, 1:]}
    values |= {"f": np.full_like(values["t"], 7), "c": m[..., 0], "p": m[..., 0].T}
    values |= {"u": m[..., 0].T[None], "g": m[..., 0].T[None] + 1}
    want = m.copy()
    want[:, :2, 1:] = 7
    want[..., 0] += 1
    have = ran(calls, {**values, "y": want}, ["y"])
    assert (have["y"] == want).all()


def test_a_buffer_that_is_written_by_any_operator_is_state() -> None:
    """self.total[1:].add_(...), not only copy_."""
    b = np.arange(3, dtype=np.float32)
    calls = (
        call("slice.Tensor", "s", self=Ref("b"), start=1, end=3),
        call("add_.Tensor", "a", self=Ref("s"), other=X),
        call("mul.Tensor", "y", self=Ref("b"), other=2.0),
    )
    shapes = {"x": (2,), "b": (3,), "s": (2,), "a": (2,), "y": (3,)}
    kinds = dict.fromkeys(shapes, "float32")
    program = Program("net", calls, ("x",), ("y",), {"b": b}, shapes, kinds)
    message, mutated = converted(program)
    graph = Model("", load("net", message.SerializeToString(), {}), "onnx", "").lower()
    x = np.asarray([1, 2], np.float32)
    found = interpret(graph, {"x": x, "b": b})
    after = np.asarray([0, 2, 4], np.float32)
    assert (found["y"] == 2 * after).all()
    assert (found[mutated["b"]] == after).all()


@pytest.mark.parametrize("view", ["view", "contiguous", "reshape", "to"])
def test_another_view_that_is_read_afterwards_is_refused(view: str) -> None:
    args = {"dtype": "float32"} if view == "to" else {"size": [2, 3, 4]}
    args = {} if view == "contiguous" else args
    calls = [
        call("relu.default", "r", self=X),
        call(f"{view}.default", "v", self=Ref("r"), **args),
        call("view.default", "w", self=Ref("r"), size=[2, 3, 4]),
        call("add_.Tensor", "a", self=Ref("w"), other=1),
        call("mul.Tensor", "y", self=Ref("v"), other=2),
    ]
    values = dict.fromkeys("xrvwa", A) | {"y": A}
    with pytest.raises(BuildError, match="of which 'v' may be another view"):
        ran(calls, values, ["y"])


def test_a_view_that_is_not_followed_is_refused() -> None:
    calls = [
        call("expand.default", "e", self=X, size=[2, 2, 3, 4]),
        call("add_.Tensor", "a", self=Ref("e"), other=1),
    ]
    wide = np.stack([A, A])
    with pytest.raises(BuildError, match=r"in place \(expand\). Hint: save exported"):
        ran(calls, {"x": A, "e": wide, "a": wide}, ["a"])

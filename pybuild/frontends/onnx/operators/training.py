"""Training steps: Adagrad, Adam, Momentum. Inputs are a rate, a step count, and
tensors.
"""

from __future__ import annotations

from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing


def _given(flow: Flow, kinds: int) -> list[tuple[str, ...]]:
    """Return, for each trained tensor, its value, its gradient and its optimiser
    state."""
    names = flow.args()[2:]
    count = len(names) // kinds
    return [tuple(names[n::count]) for n in range(count)]


def _number(flow: Flow, name: str, usual: float) -> float:
    return float(flow.op.attrs.get(name, usual))


def _gradient(flow: Flow, x: str, gradient: str) -> str:
    """Return the gradient plus the weight decay of the value."""
    share = _number(flow, "norm_coefficient", 0.0)
    return flow.add(flow.scaled(x, share), gradient) if share else gradient


def _mixed(flow: Flow, old: str, new: str, kept: float) -> str:
    return flow.add(flow.scaled(old, kept), flow.scaled(new, 1 - kept))


@flowing
def adagrad(flow: Flow) -> None:
    rate, turn = flow.arg(0), flow.cast(flow.arg(1), flow.dtype(flow.arg(2)))
    decay = flow.plus(flow.scaled(turn, _number(flow, "decay_factor", 0.0)), 1)
    rate = flow.div(rate, decay)
    trained = _given(flow, 3)
    for n, (x, g, squares) in enumerate(trained):
        gradient = _gradient(flow, x, g)
        total = flow.add(squares, flow.mul(gradient, gradient))
        size = flow.plus(flow.map("sqrt", total), _number(flow, "epsilon", 0.0))
        step = flow.div(flow.mul(rate, gradient), size)
        flow.give(flow.sub(x, step), n)
        flow.give(total, len(trained) + n)


@flowing
def adam(flow: Flow) -> None:
    kept, beta = _number(flow, "alpha", 0.9), _number(flow, "beta", 0.999)
    post = _number(flow, "norm_coefficient_post", 0.0)
    rate = _unbiased(flow, kept, beta)
    trained = _given(flow, 4)
    count = len(trained)
    for n, (x, g, mean, squares) in enumerate(trained):
        gradient = _gradient(flow, x, g)
        mean = _mixed(flow, mean, gradient, kept)
        squares = _mixed(flow, squares, flow.mul(gradient, gradient), beta)
        size = flow.plus(flow.map("sqrt", squares), _number(flow, "epsilon", 0.0))
        made = flow.sub(x, flow.div(flow.mul(rate, mean), size))
        flow.give(flow.scaled(made, 1 - post), n)
        flow.give(mean, count + n)
        flow.give(squares, 2 * count + n)


def _unbiased(flow: Flow, kept: float, beta: float) -> str:
    """Return Adam's bias-corrected rate; unchanged at step 0."""
    rate = flow.arg(0)
    turn = flow.cast(flow.arg(1), flow.dtype(rate))
    one, zero = flow.const(1, rate), flow.const(0, rate)
    first, second = (
        flow.sub(one, flow.map("power", flow.const(base, rate), turn))
        for base in (kept, beta)
    )
    later = flow.map("less", zero, turn)
    safe = flow.map("where", later, first, one)
    more = flow.div(flow.mul(rate, flow.map("sqrt", second)), safe)
    return flow.map("where", later, more, rate)


@flowing
def momentum(flow: Flow) -> None:
    """Momentum, standard or Nesterov's."""
    rate, kept = flow.arg(0), _number(flow, "alpha", 0.0)
    turn = flow.cast(flow.arg(1), flow.dtype(rate))
    later = flow.map("less", flow.const(0, rate), turn)
    beta = flow.const(_number(flow, "beta", 0.0), rate)
    share = flow.map("where", later, beta, flow.const(1, rate))
    ahead = str(flow.op.attrs.get("mode", "standard")) == "nesterov"
    trained = _given(flow, 3)
    for n, (x, g, old) in enumerate(trained):
        gradient = _gradient(flow, x, g)
        made = flow.add(flow.scaled(old, kept), flow.mul(share, gradient))
        step = flow.add(gradient, flow.scaled(made, kept)) if ahead else made
        flow.give(flow.sub(x, flow.mul(rate, step)), n)
        flow.give(made, len(trained) + n)


TRAINING: dict[str, Handler] = {
    "Adagrad": adagrad,
    "Adam": adam,
    "Momentum": momentum,
}

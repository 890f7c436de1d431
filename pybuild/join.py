"""Features, a net and what follows it, joined from Python."""

from __future__ import annotations

from pybuild.entry import Buildable, Quantised, model_of
from pybuild.features import Decision, Features
from pybuild.front import Chain, Front, with_front


def chain(
    features: Buildable,
    net: Buildable | Quantised,
    decision: Decision | None = None,
    *,
    every: int = 0,
    stream: bool = False,
) -> Chain:
    """Features, a net and what follows it as one model: samples in, decisions out.

    features  pybuild.features.log_mel(...), or a model from samples to a row
    decision  pybuild.features.Decision(...): outputs `heard` and `active`; None: the
              scores alone
    every     rows of features for each run of the net; 0: all of the input of a net
              with state, else one: the window slides on by it
    stream    the net computes only what new rows add, with the same bits
    Errors    BuildError where types, shapes or scales do not fit
    """
    made = features.graph if isinstance(features, Features) else None
    if made is None:
        made = model_of(features).lower()
    whole = net.model if isinstance(net, Quantised) else model_of(net)
    return Chain(with_front(whole, Front(made, decision, every, stream)))

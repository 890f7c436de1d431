"""Graph to Graph: the passes, in the order in which they run.

Each is a pure function in its own file, keeps the names of inputs and outputs, and
keeps the model's results: bit for bit for integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np

from pybuild.ir.graph import Graph, verify
from pybuild.ir.scales import verify_scales
from pybuild.passes.activation import fuse_activation
from pybuild.passes.batch_norm import fuse_batch_norm
from pybuild.passes.channels.constant import drop_constant_channels
from pybuild.passes.channels.settle import settle_channels
from pybuild.passes.dead import remove_dead
from pybuild.passes.dynamic import join_dynamic
from pybuild.passes.ends.state_order import with_state_order
from pybuild.passes.fold import fold_constants
from pybuild.passes.layout import set_layout
from pybuild.passes.legalise import own_outputs, set_rounding
from pybuild.passes.lookups.narrow import narrow_tables
from pybuild.passes.lookups.rows import slice_known_rows
from pybuild.passes.lookups.tables import use_tables
from pybuild.passes.moves.columns import stand_rows
from pybuild.passes.moves.each_scale import quantize_each_use
from pybuild.passes.moves.hoist import quantize_before_moves
from pybuild.passes.moves.means import means_before_concats
from pybuild.passes.moves.pads import pad_behind_reshapes, pad_behind_transposes
from pybuild.passes.moves.reshape import (
    merge_reshapes,
    merge_slices,
    sink_reshapes,
)
from pybuild.passes.moves.transposes import fold_transposes
from pybuild.passes.narrow_weights import narrow_weights
from pybuild.passes.noop import remove_noops
from pybuild.passes.outside import drop_outside_taps
from pybuild.passes.pad import fuse_pad
from pybuild.passes.phases import refuse_transposed, split_phases
from pybuild.passes.products.attention import join_attention
from pybuild.passes.products.heads import share_heads
from pybuild.passes.products.norms import join_norms
from pybuild.passes.qdq import integer_arithmetic
from pybuild.passes.reference import as_reference
from pybuild.passes.spellings import name_spellings, pool_maxima
from pybuild.passes.state import inputs_as_state, state_as_inputs
from pybuild.passes.turns.roll import roll
from pybuild.records import dataclass


@dataclass(frozen=True)
class PassOptions:
    """The options that the user chose.

    rounding  litert | tflm | single | onnx
    layout    input or output name -> nhwc | nchw
    """

    rounding: str = "litert"
    layout: Mapping[str, str] = field(default_factory=dict)


Pass = Callable[[Graph, PassOptions], Graph]
Seen = Callable[[str, Graph], None]


def _plain(pure: Callable[[Graph], Graph]) -> Pass:
    return lambda graph, options: pure(graph)


PIPELINE: tuple[tuple[str, Pass], ...] = (
    ("as_reference", lambda graph, options: as_reference(graph, options.rounding)),
    ("remove_dead", _plain(remove_dead)),
    ("fold_constants", lambda graph, options: fold_constants(graph, options.rounding)),
    ("slice_known_rows", _plain(slice_known_rows)),
    ("remove_noops", _plain(remove_noops)),
    ("name_spellings", _plain(name_spellings)),
    ("join_norms", _plain(join_norms)),
    ("set_layout", lambda graph, options: set_layout(graph, options.layout)),
    ("fold_transposes", _plain(fold_transposes)),
    ("merge_slices", _plain(merge_slices)),
    ("pad_behind_transposes", _plain(pad_behind_transposes)),
    ("pad_behind_reshapes", _plain(pad_behind_reshapes)),
    ("merge_reshapes", _plain(merge_reshapes)),
    ("sink_reshapes", _plain(sink_reshapes)),
    ("share_heads", _plain(share_heads)),
    ("fuse_pad", _plain(fuse_pad)),
    ("fuse_batch_norm", _plain(fuse_batch_norm)),
    ("fuse_activation", _plain(fuse_activation)),
    ("remove_dead", _plain(remove_dead)),
    ("means_before_concats", _plain(means_before_concats)),
    ("quantize_each_use", _plain(quantize_each_use)),
    ("quantize_before_moves", _plain(quantize_before_moves)),
    ("use_tables", lambda graph, options: use_tables(graph, options.rounding)),
    ("integer_arithmetic", _plain(integer_arithmetic)),
    ("fold_constants", lambda graph, options: fold_constants(graph, options.rounding)),
    ("pool_maxima", _plain(pool_maxima)),
    ("stand_rows", _plain(stand_rows)),
    ("sink_reshapes", _plain(sink_reshapes)),
    ("merge_reshapes", _plain(merge_reshapes)),
    ("remove_noops", _plain(remove_noops)),
    ("fuse_batch_norm", _plain(fuse_batch_norm)),
    ("pad_behind_transposes", _plain(pad_behind_transposes)),
    ("fuse_pad", _plain(fuse_pad)),
    ("fuse_activation", _plain(fuse_activation)),
    ("remove_noops", _plain(remove_noops)),
    ("remove_dead", _plain(remove_dead)),
    ("join_dynamic", _plain(join_dynamic)),
    ("set_rounding", lambda graph, options: set_rounding(graph, options.rounding)),
    ("join_attention", _plain(join_attention)),
    ("split_phases", _plain(split_phases)),
    ("settle_channels", _plain(settle_channels)),
    ("drop_constant_channels", _plain(drop_constant_channels)),
    ("drop_outside_taps", _plain(drop_outside_taps)),
    ("narrow_weights", _plain(narrow_weights)),
    ("narrow_tables", _plain(narrow_tables)),
    ("roll", _plain(roll)),
    ("own_outputs", _plain(own_outputs)),
)

# where the file gives storage or devices, which only fit the nodes that it has
AS_GIVEN: tuple[tuple[str, Pass], ...] = (
    ("refuse_transposed", _plain(refuse_transposed)),
    ("as_reference", lambda graph, options: as_reference(graph, options.rounding)),
    ("fold_constants", lambda graph, options: fold_constants(graph, options.rounding)),
    ("set_rounding", lambda graph, options: set_rounding(graph, options.rounding)),
    ("settle_channels", _plain(settle_channels)),
    ("drop_constant_channels", _plain(drop_constant_channels)),
    ("narrow_weights", _plain(narrow_weights)),
    ("own_outputs", _plain(own_outputs)),
)


def run(graph: Graph, options: PassOptions, seen: Seen | None = None) -> Graph:
    """Runs all passes and verifies each result; few passes for a graph that gives more
    than nodes.

    seen    is handed the name of each pass, and the graph after it
    Errors  BuildError for a graph or an option that makes no sense
    """
    verify(graph)
    verify_scales(graph)
    given = bool(graph.storage) or graph.is_placed
    before = graph if given else with_state_order(graph)
    graph = state_as_inputs(before)
    with np.errstate(all="ignore"):  # constants of a damaged file
        for name, one in AS_GIVEN if given else PIPELINE:
            made = one(graph, options)
            if made is not graph:
                verify(made)
            graph = made
            if seen is not None:
                seen(name, graph)
    return inputs_as_state(graph, before)


def float_graph(graph: Graph) -> Graph:
    """The graph after the passes that come before rounding, ready to be quantised.

    Errors  BuildError for a graph that makes no sense
    """
    verify(graph)
    verify_scales(graph)
    options = PassOptions()
    with np.errstate(all="ignore"):
        for name, one in PIPELINE:
            if name == "set_rounding":
                break
            graph = one(graph, options)
            verify(graph)
    return graph

"""Which kernels serve lstm: any core's, and of int8 those of a core's instructions."""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.recurrent import lstm_dsp, lstm_mve
from pybuild.kernels.recurrent.lstm import Lstm
from pybuild.targets.target import Target


def lstm(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for an lstm node.

    Errors  BuildError for weights that are computed
    """
    found = [Lstm(node, graph).written()]
    if graph.tensor(node.output).dtype is not INT8:
        return found
    if "dsp" in target.features and lstm_dsp.fits(node, graph):
        found.append(lstm_dsp.DspLstm(node, graph).written())
    if "mve" in target.features and lstm_mve.fits(node, graph):
        found.append(lstm_mve.MveLstm(node, graph).written())
    return found

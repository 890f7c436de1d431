"""Which kernels serve svdf: any core's, and of int8 those of a core's instructions."""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.recurrent import svdf_steps
from pybuild.kernels.recurrent.svdf import Svdf
from pybuild.kernels.recurrent.svdf_float import RealSvdf
from pybuild.targets.target import Target


def svdf(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for an svdf node.

    Errors  BuildError for weights that are computed
    """
    if graph.tensor(node.output).dtype is not INT8:
        return [RealSvdf(node, graph).written()]
    found = [Svdf(node, graph).written()]
    if "dsp" in target.features and svdf_steps.fits_pairs(node, graph):
        found.append(svdf_steps.DspSvdf(node, graph).written())
    if "mve" in target.features and svdf_steps.fits(node, graph):
        found.append(svdf_steps.MveSvdf(node, graph).written())
    return found

"""Features before a model, decisions after it: one model of samples."""

from pybuild.front.chain import Chain, Front, with_front
from pybuild.front.file import read_front

__all__ = ["Chain", "Front", "read_front", "with_front"]

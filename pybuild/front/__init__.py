"""Features before a model, decisions after it: one model of samples or frames."""

from pybuild.front.chain import Chain, Front, normalised, with_front
from pybuild.front.file import parted, read_front

__all__ = ["Chain", "Front", "normalised", "parted", "read_front", "with_front"]

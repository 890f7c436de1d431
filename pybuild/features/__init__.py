"""Features of sound as integer graphs: the same bits in training and on the device."""

from pybuild.features.decision import Decision
from pybuild.features.log_mel import Features, log_mel, mfcc

__all__ = ["Decision", "Features", "log_mel", "mfcc"]

"""Features before a net, as integer graphs: the same bits in training and on the
device.
"""

from pybuild.features.decision import Decision
from pybuild.features.images import Images, images
from pybuild.features.log_mel import Features, log_mel, mfcc
from pybuild.features.micro_frontend import micro_frontend
from pybuild.features.motion import motion

__all__ = [
    "Decision", "Features", "Images", "images", "log_mel", "mfcc", "micro_frontend",
    "motion",
]  # fmt: skip

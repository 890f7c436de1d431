"""Wake words: several nets behind one front end, with what their manifests say."""

from pybuild.wake.build import FRONT, WakeWords, build_wake_words

__all__ = ["FRONT", "WakeWords", "build_wake_words"]

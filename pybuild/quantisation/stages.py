"""The progress of quantising: its stage, and the share of the time that is
behind it, as MobileNets take it."""

from __future__ import annotations

from pybuild.progress import Progress, stage

# shares of 100 of the time
_SHARES = {
    "observing samples": 8,
    "fitting weights": 32,
    "equalising channels": 44,
    "correcting biases": 4,
    "measuring": 12,
}
WHOLE = sum(_SHARES.values())


class Stages:
    """Tells a Progress of stages by name, and of shares of each."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._name, self._at = progress, "", -1

    def begin(self, name: str) -> None:
        """A stage begins: those before it are done."""
        self._name = name
        stage(self._progress, name)
        self.at(0.0)

    def at(self, share: float) -> None:
        """Share of the present stage that is done, 0 to 1; it does not go back."""
        names = list(_SHARES)
        before = sum(_SHARES[name] for name in names[: names.index(self._name)])
        self._tell(round(before + _SHARES[self._name] * min(share, 1.0)))

    def done(self) -> None:
        """All is done."""
        self._tell(WHOLE)

    def _tell(self, reached: int) -> None:
        if reached > self._at:
            self._at = reached
            self._progress(reached, WHOLE)

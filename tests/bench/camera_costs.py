"""What examples/camera sees, and what it costs on a simulated board, as tables."""

from __future__ import annotations

from types import ModuleType

import numpy as np

import pybuild
from tests.bench.costs import Table
from tests.bench.keyword_costs import BOARD, TARGET, example, on_board

EACH, ON_BOARD = 50, 5  # frames of a thing: on this machine, on the board


def watch(name: str = "watch") -> ModuleType:
    """A script of examples/camera, as it stands there."""
    return example(name, "camera")


def seen() -> Table:
    (real, whole), rows = watch().chains(), list[tuple[object, ...]]()
    given, shown = watch("scene").frames(EACH, watch().SEED)

    def right(scores: object, known: object) -> int:
        found = np.asarray(scores).reshape(len(np.asarray(known)), -1).argmax(1)
        return int((found == known).sum())

    for name, chain in (("float32", real), ("int8", whole)):
        made = watch().Compiled(chain)(given)
        rows.append((f"{name}, this machine", right(made, shown), len(shown), ""))
    given, shown = watch("scene").frames(ON_BOARD, watch().SEED)
    made = watch().Board(whole)(given)
    alike = bool((made == whole(given)["scores"]).all())
    found = right(made, shown)
    rows.append((f"int8, {BOARD}", found, len(shown), "yes" if alike else "NO"))
    says = (
        "Frames of `examples/camera`, pushed line by line, of which the thing is seen; "
        "every score on the board beside the numpy twin's."
    )
    return Table(
        "Things seen", says, ("network", "right", "of", "bits of numpy"), tuple(rows)
    )


def costs() -> Table:
    (_, whole), rows = watch().chains(), list[tuple[object, ...]]()
    made = {
        "lines pushed": watch().built(whole),
        "whole frames": pybuild.build(whole, name="camera", target=TARGET),
    }
    for name, library in made.items():
        found = on_board(__name__, name, library)
        front = found.layers[found.names.index("image")]
        rows.append((
            name, found.instructions, front, found.cycles,
            found.arena + found.instance, found.stack,
            found.code + found.tables + found.weights,
        ))  # fmt: skip
    says = (
        "`examples/camera`: 160x120 pixels of RGB565 to 40x40 by boxes of nine, three "
        "convolutions, four scores; C by gcc on a simulated Cortex-M4; cycles are "
        "estimated. Of pushed lines a frame is never held, and RAM goes before "
        "instructions; a whole frame has 38,400 bytes."
    )
    columns = (
        "input", "instructions a frame", "of these the picture", "cycles a frame",
        "RAM", "stack", "flash",
    )  # fmt: skip
    return Table("A camera on a board", says, columns, tuple(rows))

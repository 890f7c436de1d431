"""Marks of layers that crt/trace.h wrote, as files that viewers of traces open: the
Common Trace Format (babeltrace2, Trace Compass), and JSON of Chrome (Perfetto)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybuild.errors import BuildError
from pybuild.records import dataclass
from pybuild.text.escaped import escaped

RUN = 0xFFFF  # CRT_TRACE_RUN
_MARK = np.dtype([("time", "<u4"), ("step", "<u2"), ("row", "<u2")])
_METADATA = """\
/* CTF 1.8 */
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
trace { major = 1; minor = 8; byte_order = le; };
env { domain = "bare"; tracer_name = "crt"; };
clock { name = core; freq = %d; };
typealias integer { size = 32; align = 8; signed = false; map = clock.core.value; }
    := core_time;
stream { event.header := struct { core_time timestamp; }; };
event {
    name = "layer";
    fields := struct {
        enum : uint16_t {
%s
        } step;
        uint16_t row;
    };
};
"""


@dataclass(frozen=True)
class Trace:
    """The marks of a trace.

    layers  names of the steps
    hertz   of the counter
    stream  the bytes that the board wrote
    """

    layers: Sequence[str]
    hertz: int
    stream: bytes

    def ctf(self) -> dict[str, str | bytes]:
        """File name -> content, of a folder that `babeltrace2` opens."""
        names = [*enumerate(self.layers), (RUN, "(run)")]
        rows = [f"            {_quoted(name)} = {number}" for number, name in names]
        metadata = _METADATA % (self.hertz, ",\n".join(rows))
        return {"metadata": metadata, "stream": self.stream}

    def chrome(self) -> dict[str, Any]:
        """JSON that ui.perfetto.dev and chrome://tracing open: a slice for each band,
        from the mark before it to its own; in microseconds."""
        marks = np.frombuffer(self.stream, _MARK)
        steps = np.diff(marks["time"], prepend=marks["time"][:1]).astype(np.uint64)
        at = np.cumsum(steps) * (1e6 / self.hertz)
        events: list[dict[str, Any]] = []
        begin = None
        for mark, end in zip(marks, at.tolist(), strict=True):
            step = int(mark["step"])
            if begin is not None and step != RUN:
                events.append({
                    "name": self.layers[step], "cat": "layer", "ph": "X", "pid": 1,
                    "tid": 1, "ts": begin, "dur": end - begin,
                    "args": {"step": step, "row": int(mark["row"])},
                })  # fmt: skip
            begin = end
        return {"traceEvents": events, "displayTimeUnit": "ns"}


def read_trace(
    stream: bytes, report: Mapping[str, Any], hertz: int, where: str = "marks"
) -> Trace:
    """The trace of the bytes from the first mark to `next` of struct crt_trace.

    report  report.json of the build
    where   how messages call the stream
    Errors  BuildError for bytes that are no marks of this build
    """
    layers = _layers(report)
    if not stream or len(stream) % _MARK.itemsize:
        what = f"has {len(stream)} bytes; a mark has {_MARK.itemsize}"
        raise BuildError(where, what, "all from the first mark to trace.next")
    steps = np.frombuffer(stream, _MARK)["step"]
    wrong = steps[(steps >= len(layers)) & (steps != RUN)]
    if wrong.size:
        what = f"marks step {wrong[0]}; this build has {len(layers)}"
        raise BuildError(where, what, "the report of the build that was run")
    if hertz < 1:
        raise BuildError("hertz", f"{hertz} is not the frequency of a counter")
    return Trace(layers, hertz, stream)


def _layers(report: Mapping[str, Any]) -> list[str]:
    """The names of the steps, in their order."""
    hint = "that of one model, which crt build has written"
    if isinstance(report, Mapping) and "models" in report:
        raise BuildError("report.json", "is of several models", hint)
    try:
        found = [name for stage in report["stages"] for name in stage["layers"]]
    except (KeyError, TypeError, IndexError):
        found = [None]
    if not all(isinstance(name, str) for name in found):
        raise BuildError("report.json", "does not name the steps of a model", hint)
    return found


def _quoted(name: str) -> str:
    """A name as a string of CTF's metadata."""
    plain = escaped(name).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'

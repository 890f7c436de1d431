"""`crt trace`: the marks of crt/trace.h as files that viewers of traces open."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pybuild.files.say import say

Outcome = tuple[int, dict[str, Any]]
OK = 0


def add_parser(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "the marks: memory from the first one to trace.next"
    add("marks", metavar="MARKS.bin", help=text)
    add("--tree", metavar="DIR", required=True, help="what crt build has written")
    text = "ticks of the counter in a second, like 168000000"
    add("--hertz", metavar="N", type=int, required=True, help=text)
    text = "write a trace of CTF there: metadata and stream"
    add("-o", "--out", metavar="DIR", help=text)
    text = "write a trace for Perfetto and Chrome to this file"
    add("--chrome", metavar="FILE.json", help=text)
    add("--json", action="store_true", help="one JSON object on stdout")


def trace(args: argparse.Namespace) -> Outcome:
    """Shows each layer's time, and writes what is asked for."""
    from pybuild.files.read import SAMPLES, read_bytes
    from pybuild.package.folder import write_file
    from pybuild.rebuild import facts_of
    from pybuild.traces.trace import read_trace

    report = facts_of(Path(args.tree))
    stream = read_bytes(args.marks, SAMPLES)
    found = read_trace(stream, report, args.hertz, Path(args.marks).name)
    events = found.chrome()
    times: dict[str, float] = dict.fromkeys(found.layers, 0.0)
    for event in events["traceEvents"]:
        times[event["name"]] += event["dur"]
    if args.out:
        for name, content in found.ctf().items():
            write_file(Path(args.out) / name, content)
    if args.chrome:
        write_file(Path(args.chrome), json.dumps(events) + "\n")
    if not args.json:
        for name, time in times.items():
            say(f"{name}  {time:.3f} us")
        for path in (args.out, args.chrome):
            if path:
                say(f"wrote {path}")
    return OK, {"microseconds": times, "marks": len(stream) // 8}

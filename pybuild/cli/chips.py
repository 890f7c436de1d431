"""`crt fit`: all chips for one model; options in, a table or JSON out."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.cli.models import loaded, options
from pybuild.cli.output import tables
from pybuild.cli.output.progress import working
from pybuild.files.say import say
from pybuild.options.option import options_in
from pybuild.options.table import BuildOptions
from pybuild.package.grid import NAME, NUMBER, TEXT

if TYPE_CHECKING:
    from pybuild.chips.fit import ChipFit

OK = 0


def fit(args: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Exit 0, too, where no chip has what the model needs."""
    from pybuild.chips.cached_fit import fit_once

    known = {one.keyword for one in options_in(BuildOptions)}
    given = {k: v for k, v in options(args).items() if k in known and k != "target"}
    with working(f"building {Path(args.model).name} for all chips") as progress:
        model = loaded(args, args.model)
        found = fit_once(model, args.latency, progress, **given)
    if not args.json:
        _show(Path(args.model).name, found)
    facts = {"model": Path(args.model).name, "latency": args.latency}
    return OK, {**facts, "chips": [_plain(one) for one in found]}


def _plain(one: ChipFit) -> dict[str, Any]:
    return {
        **asdict(one),
        "options": list(one.options),
        "ways": [list(way) for way in one.ways],
        "missing": list(one.missing),
    }


def _show(model: str, found: tuple[ChipFit, ...]) -> None:
    from pybuild.chips.fit import verdict
    from pybuild.chips.pace import WHAT, shown
    from pybuild.package.totals import CODE, STACK

    columns = [("chip", NAME), ("core", TEXT), ("RAM", NUMBER), ("of", NUMBER)]
    columns += [("flash", NUMBER), ("of", NUMBER), ("cycles", NUMBER)]
    columns += [("ms", NUMBER), ("WS", NUMBER), ("uJ", NUMBER)]
    rows = [
        [one.chip, f"{one.cores} {one.core}" if one.cores > 1 else one.core,
         _kb(one.ram.needed), _kb(one.ram.has), _kb(one.flash.needed),
         _kb(one.flash.has), shown(one.core, one.cycles), f"{1000 * one.seconds:.3g}",
         "" if one.wait_states is None else str(one.wait_states),
         "" if one.microjoules is None else f"{one.microjoules:,.0f}"]
        for one in found
    ]  # fmt: skip
    say("target each chip's own core")
    tables.table(f"{model} on {len(found)} chips, by estimate", columns, rows)
    for one in found:
        if one.missing:
            options = f"; fits with {' '.join(one.options)}" if one.options else ""
            say(f"lacks  {one.chip}: {'; '.join(one.missing)}{options}")
    each = " for each core" if any(one.cores > 1 for one in found) else ""
    say(
        f"RAM    with stack, in KB: arena, instance, {STACK:,} bytes of stack and "
        f"data{each}\nflash  in KB: code, tables, weights, {CODE:,} bytes of runtime, "
        f"start-up and console\ncycles {WHAT}; ms at the chip's highest clock"
    )
    say(
        "not    counted: the flash's wait states at that clock (WS, where a source has "
        "them),\n       and what caches and prefetch hide of them"
    )
    say(f"in all {verdict(found)}")


def _kb(size: int) -> str:
    """KB; of ten thousand or more, a short form."""
    if size < 10_000 << 10:
        return f"{size / 1024:,.0f}"
    return f"{size >> 20:,} MB" if size < 1 << 30 else f"{size >> 30:,} GB"

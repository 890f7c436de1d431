"""Text files as they should be: what tests.attacks.damaged damages, key by key."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pybuild
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"


def fronts() -> list[dict[str, Any]]:
    decision = {"smooth": 4, "threshold": 0.6, "release": 0.5, "refractory": 3,
                "ignore": [0, 1]}  # fmt: skip
    sound = {"rate": 16000, "window": 480, "hop": 320, "bands": 8, "low": 125.0,
             "high": 7500.0, "gain": True}  # fmt: skip
    camera = {"kind": "images", "format": "rgb565", "width": 8, "height": 8,
              "size": [4, 4], "crop": [0, 0, 8, 8], "resize": "bilinear", "colours": 3,
              "ones": False, "mean": [0.5, 0.5, 0.5], "std": 1.0}  # fmt: skip
    moved = {"kind": "motion", "rate": 100.0, "window": 32, "hop": 16, "axes": 3,
             "bands": 2, "low": 1.0, "high": 40.0, "scale": 1.0}  # fmt: skip
    top = {"every": 1, "stream": False, "decision": decision}
    return [
        {**top, "features": {**sound, "kind": "log_mel", "scale": 0.05}},
        {"features": {**sound, "kind": "mfcc", "coefficients": 4, "gain": False}},
        {"features": {**sound, "kind": "micro_frontend"}},
        {"features": camera},
        {"features": moved},
    ]


def project() -> dict[str, Any]:
    """Every option once, where it is for every model, and of each verb."""
    from pybuild.options.option import of_words
    from pybuild.options.packages import PackageOptions
    from pybuild.options.table import COMMON as SHARED
    from pybuild.options.table import VERBS, BoardOptions
    from pybuild.project.read import ALONE

    every = of_words(*SHARED, BoardOptions, PackageOptions)
    made: dict[str, Any] = {
        one.word: _example(one) for one in every if one.word not in ALONE
    }
    for verb, classes in VERBS.items():
        if verb != "build":
            own = [x for x in of_words(*classes) if x not in every]
            made[verb] = {x.word: _example(x) for x in own if x.word not in _NOT_SAID}
    made["models"] = {"a": {"file": "a.tflite", "out": "here"}, "b": {"file": "b.onnx"}}
    made["images"] = {"both": {"models": ["a", "b"], "exclusive": ["a,b"]}}
    made["sweeps"] = {"s": {"models": ["a"], "target": ["generic", "cortex-m4"]}}
    return made


_NOT_SAID = ("name", "project", "force", "outside", "scheduler", "out")


def _example(one: Any) -> Any:
    """A value that it can have."""
    known = {"target": "cortex-m4", "params": ["w"], "device": {"1": "cortex-m4"},
             "on": "mps2-an386", "version": "1.0.0"}  # fmt: skip
    if not one.kind.metavar:
        return True
    return known.get(one.word, json.loads(json.dumps(one.kind.example)))


def small_project() -> dict[str, Any]:
    words = {"target": "cortex-m4", "optimise": "size", "ram-limit": "64K",
             "region": ["dtcm=1K:fast+weights", "sram=96K"], "params": ["dense_w"],
             "place": {"*": 0}, "input": "keep", "layout": {"image": "nhwc"},
             "state": [], "plan": "rows", "names": "ids"}  # fmt: skip
    return {"models": {"a": {"file": "a.tflite", **words}}}


_TREES: dict[str, Path] = {}
_KEPT = tempfile.TemporaryDirectory(prefix="crt-trees-")


def small_tree() -> Path:
    """A small model as a folder, made once."""
    if "one" not in _TREES:
        _TREES["one"] = Path(_KEPT.name) / "one"
        pybuild.load(DIGITS).build(_TREES["one"], name="d")
        shutil.copy(DIGITS, Path(_KEPT.name))
    return _TREES["one"]


def report() -> dict[str, Any]:
    made: dict[str, Any] = json.loads((small_tree() / "report.json").read_text())
    return made


def recipe() -> dict[str, Any]:
    facts = report()
    return {name: facts[name] for name in ("name", "provenance", "example")
            if name in facts}  # fmt: skip


FIGURES = {
    "target": "generic", "ram": 720, "flash": 5000, "code": 900, "instructions": 9000,
    "cycles": None, "macs": 10, "board": None, "command": "crt build", "accuracy": 0.9,
    "error": None, "warnings": ["one"],
}  # fmt: skip
ENTRY = {"key": "k", "figures": FIGURES, "limit": False, "report": None,
         "problems": [{"where": "a", "what": "b", "hint": ""}]}  # fmt: skip


BOARD = {"soc": "chip", "program": "flash {}",
         "console": {"uart": "cmsdk", "base": 0x40004000},
         "flash": {"origin": 0, "size": "256K"},
         "qemu": {"system": "arm", "machine": "mps2-an386", "arguments": ["-m", "16"]},
         }  # fmt: skip
CHIP = {"cpu": "cortex-m4", "title": "x", "hz": 1000000, "start_hz": 1000, "cores": 2,
        "flash": {"origin": 0, "size": "256K"}, "ram": {"origin": 1, "size": "64K"},
        "memory": {"dtcm": {"origin": 2, "size": "8K"}}, "fpu": "single", "dsp": True,
        "wait_states": 2, "vectors": 0, "source": "x", "note": "y", "image": False,
        "energy": {"microamperes_per_mhz": 100, "volts": 3.3},
        "second": {"cpu": "cortex-m4", "chip": "sse200"}, "beside": "cortex-m4",
        "compared": {"text": ["hz"]}}  # fmt: skip

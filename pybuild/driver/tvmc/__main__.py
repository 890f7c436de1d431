"""python -m pybuild.driver.tvmc compile MODEL: tvmc's command, its main options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from pybuild.driver.tvmc import compile as compiled
from pybuild.driver.tvmc import load
from pybuild.errors import BuildError
from pybuild.files.say import say

_SHAPE = re.compile(r"([^\s:]+(?::\d+)?):\s*\[([0-9,\s]*)\]")


def main(words: Sequence[str]) -> int:
    """0; 2 for a model or an option that is not supported."""
    args = _parser().parse_args(words)
    try:
        model = load(args.FILE, args.model_format, shapes(args.input_shapes))
        target = args.target
        cpu = args.target_c_mcpu or args.target_cmsis_nn_mcpu
        target += f" -mcpu={cpu}" if cpu and "-mcpu" not in target else ""
        compiled(model, target, args.output, args.output_format, args.module_name)
    except BuildError as error:
        say(error, error=True)
        return 2
    say(f"wrote {args.output}")
    return 0


def shapes(text: str) -> dict[str, list[int]]:
    """Of "image:[1,8,8,1] sound:[1,160]".

    Errors  BuildError
    """
    given = {n: s.split(",") if s.strip() else [] for n, s in _SHAPE.findall(text)}
    whole = all(d.strip().isdigit() for dims in given.values() for d in dims)
    found = {n: [int(d) for d in dims] for n, dims in given.items()} if whole else {}
    if text.strip() and (not found or _SHAPE.sub("", text).strip(" ,")):
        raise BuildError("--input-shapes", f"'{text}' is no shape", "NAME:[1,8,8,1]")
    return found


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="tvmc")
    verbs = top.add_subparsers(required=True)
    own = verbs.add_parser("compile", help="build a model")
    own.add_argument("FILE", help="a .tflite or .onnx file")
    own.add_argument("--target", required=True, help="c, llvm, or cmsis-nn,c")
    own.add_argument("--target-c-mcpu", default="", help="a processor, as cortex-m4")
    own.add_argument("--target-cmsis-nn-mcpu", default="", help="the same")
    own.add_argument("-o", "--output", default="module.tar")
    own.add_argument("-f", "--output-format", choices=("so", "mlf"), default="so")
    own.add_argument("--model-format", choices=("tflite", "onnx"))
    own.add_argument("--input-shapes", default="", help="NAME:[1,8,8,1] ...")
    own.add_argument("--module-name", default="default")
    # what an archive holds in any case: one value each
    own.add_argument("--executor", choices=("aot", "graph"))
    own.add_argument("--runtime", choices=("crt",))
    own.add_argument("--executor-aot-interface-api", choices=("c",))
    own.add_argument("--executor-aot-unpacked-api", choices=("1",))
    own.add_argument("--runtime-crt-system-lib", choices=("1",))
    return top


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

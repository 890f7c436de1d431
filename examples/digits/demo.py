"""The main job from end to end: a model file in, static C out, the same on a host.

    ./dev demo

Builds digits_int8.tflite, classifies the held-out pictures through every back end
that works here, and leaves the C tree with its compiled example.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

import pybuild  # noqa: E402
from pybuild.cli.output import tables  # noqa: E402
from pybuild.errors import BuildError  # noqa: E402
from pybuild.install import host_compiler  # noqa: E402
from pybuild.package.page import report_page  # noqa: E402

NAME = "digits"
OUT = ROOT / "build" / NAME
SHADES = " .:-=+*#@"
SHOWN = 5


def held_out(library: pybuild.Library) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pictures 0..16, the same as the network's int8 input, and their digits."""
    test = np.load(HERE / "digits_test.npz")
    (image,) = library.report.inputs
    real = test["images"].astype(np.float32) / 16
    q = np.rint(real / np.float32(image.scale)) + image.zero_point
    shape = (-1, *image.shape)
    return (
        test["images"],
        np.clip(q, -128, 127).astype(np.int8).reshape(shape),
        test["labels"],
    )


def classified(
    library: pybuild.Library, backend: str, inputs: np.ndarray
) -> np.ndarray:
    """The digit with the greatest score, for each input."""
    (image,), (scores,) = library.report.inputs, library.report.outputs
    net = library.host(backend)
    said = []
    try:
        for value in inputs:
            net.run(**{image.name: value})
            said.append(int(net.get_output(scores.name).argmax()))
    finally:
        net.close()
    return np.array(said)


def pictures(images: np.ndarray, labels: np.ndarray, said: np.ndarray) -> None:
    """A few digits side by side, one of them a mistake if there was one."""
    wrong = np.flatnonzero(labels != said)[:1]
    right = np.flatnonzero(labels == said)[: SHOWN - len(wrong)]
    chosen = [*right, *wrong]
    for line in range(8):
        texts = ("".join(2 * SHADES[p // 2] for p in images[i][line]) for i in chosen)
        print("   ".join(texts))
    facts = (f"is {labels[i]}, says {said[i]}".ljust(16) for i in chosen)
    print("   ".join(facts).rstrip())


def compile_example(tree: Path) -> None:
    """Runs the tree's own Makefile, or says what is missing."""
    compiler = host_compiler()
    if not compiler or not shutil.which("make"):
        lacking = "C compiler" if not compiler else "make"
        print(
            f"\nC sources in {tree.relative_to(ROOT)} (no {lacking} here to build them)"
        )
        return
    words = ["make", "-s", "-C", str(tree), f"CC={' '.join(compiler)}"]
    environment = {**os.environ, "LC_ALL": "C"}
    subprocess.run([*words, f"example/{NAME}"], check=True, env=environment)
    print(f"\nC sources and compiled example in {tree.relative_to(ROOT)}; it says:")
    sys.stdout.flush()
    subprocess.run([tree / "example" / NAME], check=True)


def main() -> int:
    library = pybuild.load(str(HERE / "digits_int8.tflite")).build(str(OUT), name=NAME)
    tables.show(report_page(library.report))
    images, inputs, labels = held_out(library)
    print()
    said = np.zeros(0)
    for backend in ("llvm", "c"):
        try:
            said = classified(library, backend, inputs)
        except BuildError as error:
            print(f"back end {backend:4}: not run, {error}")
            continue
        right = int((said == labels).sum())
        share = f"{right / len(labels):.1%}"
        print(f"back end {backend:4}: {right} of {len(labels)} held-out digits", end="")
        print(f" right (accuracy {share})")
    print()
    pictures(images, labels, said)
    compile_example(OUT)
    return 0


if __name__ == "__main__":
    sys.exit(main())

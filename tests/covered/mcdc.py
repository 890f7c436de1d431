"""MC/DC of crt by its own C tests: each condition of each decision is shown to decide
alone. Counted by clang's `-fcoverage-mcdc` (18 or later); knows no test by name."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

FLAGS = ("-std=c99", "-O0", "-fprofile-instr-generate", "-fcoverage-mapping")
# file, line, column of a decision; which of its conditions
Condition = tuple[str, int, int, int]


def measured(
    sources: Sequence[Path],
    programs: Sequence[Path],
    include: Sequence[Path],
    folder: Path,
    version: str = "-19",
) -> dict[Condition, bool]:
    """Each condition of decisions in the folders of `include` and of the sources, and
    whether it was shown to decide alone, by any of the programs.

    version  at the end of the names of clang and LLVM's tools
    Errors   RuntimeError where one of the commands fails
    """
    flags = [*FLAGS, "-fcoverage-mcdc", *(f"-I{path}" for path in include)]
    _run([f"clang{version}", *flags, "-c", *map(str, sources)], folder)
    objects = sorted(map(str, folder.glob("*.o")))
    made = [str(folder / program.stem) for program in programs]
    for program, path in zip(programs, made, strict=True):
        command = [f"clang{version}", *flags, str(program), *objects, "-o", path]
        _run(command, folder)
        _run([path], folder, LLVM_PROFILE_FILE=f"{path}.profraw")
    merged = str(folder / "all.profdata")
    profiles = [f"{path}.profraw" for path in made]
    _run([f"llvm-profdata{version}", "merge", "-o", merged, *profiles], folder)
    more = [word for path in made[1:] for word in ("-object", path)]
    command = [f"llvm-cov{version}", "export", made[0], *more]
    report = json.loads(_run([*command, f"-instr-profile={merged}"], folder))
    found: dict[Condition, bool] = {}
    for entry in report["data"][0]["files"]:
        file = Path(entry["filename"])
        if file.parent not in (sources[0].parent, include[0] / "crt"):
            continue
        for record in entry["mcdc_records"]:
            for number, shown in enumerate(record[-1], 1):
                key = (file.name, record[0], record[1], number)
                found[key] = shown or found.get(key, False)
    return found


def _run(command: list[str], folder: Path, **variables: str) -> str:
    env = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])}: {done.stderr}")
    return done.stdout

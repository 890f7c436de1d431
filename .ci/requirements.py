"""Prints the project's dependencies with the extras named as arguments.

With --pin instead: the versions that are installed of all extras but `exporters` and
of what they need in turn, as .ci/constraints.txt holds them.
With --link instead: makes the checkout importable and `crt` a command in the
environment of the running Python, without building a wheel.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINNED = ("boards", "test", "verify")
HEADER = """\
# The versions that all tests passed with and docs/benchmarks.md was measured with, so
# that `./dev` gives the same anywhere. `./dev setup --newest` writes this file anew.
"""


def requirements(extras: list[str]) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = set(project["dependencies"])
    for extra in extras:
        wanted |= set(project["optional-dependencies"][extra])
    return sorted(wanted)


def pinned() -> list[str]:
    """`name==version` of what is installed of the project's needs and of theirs."""
    found: dict[str, str] = {}
    todo = requirements(list(PINNED))
    while todo:
        matched = re.match(r"[\w.-]+", todo.pop())
        assert matched, "a requirement begins with a name"
        name = re.sub(r"[-_.]+", "-", matched[0]).lower()
        if name in found:
            continue
        try:
            installed = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another system or Python
            continue
        found[name] = installed.version
        todo += [r for r in installed.requires or () if "extra ==" not in r]
    return [f"{name}=={found[name]}" for name in sorted(found)]


def link() -> None:
    package = Path(sysconfig.get_path("purelib")) / "pybuild-crt.pth"
    package.write_text(f"{ROOT}\n")
    command = Path(sysconfig.get_path("scripts")) / "crt"
    command.write_text(
        f"#!{sys.executable}\n"
        "import sys\n\nfrom pybuild.cli import main\n\nsys.exit(main())\n"
    )
    command.chmod(0o755)


if __name__ == "__main__":
    if sys.argv[1:] == ["--link"]:
        link()
    elif sys.argv[1:] == ["--pin"]:
        print(HEADER + "\n".join(pinned()))
    else:
        print("\n".join(requirements(sys.argv[1:])))

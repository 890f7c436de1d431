"""Prints the project's dependencies with the extras named as arguments.

With --link instead: makes the checkout importable and `crt` a command in the
environment of the running Python, without building a wheel.
"""

from __future__ import annotations

import sys
import sysconfig
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def requirements(extras: list[str]) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = set(project["dependencies"])
    for extra in extras:
        wanted |= set(project["optional-dependencies"][extra])
    return sorted(wanted)


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
    else:
        print("\n".join(requirements(sys.argv[1:])))

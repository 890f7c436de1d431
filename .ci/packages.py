"""Installs the project's dependencies, with the extras named as arguments, into the
environment of the running Python; makes the checkout importable there and `crt` a
command, without building a wheel. Nothing is done if it was done before.

Versions are those of constraints.txt beside this file. With --newest first: the newest,
which are then written there; --pin: only prints what that would write.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CONSTRAINTS = HERE / "constraints.txt"
PINNED = ("boards", "dask", "docs", "test", "verify")
HEADER = """\
# The versions that all tests passed with and docs/benchmarks.md was measured with, so
# that `./dev` gives the same anywhere. `./dev setup --newest` writes this file anew.
"""
PIP = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]


def say(text: str) -> None:
    print(f"dev: {text}", file=sys.stderr, flush=True)


def requirements(extras: list[str]) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = set(project["dependencies"])
    for extra in extras:
        wanted |= set(project["optional-dependencies"][extra])
    return sorted(wanted)


def pinned() -> str:
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
    return HEADER + "".join(f"{name}=={found[name]}\n" for name in sorted(found))


def install(extras: list[str]) -> None:
    wanted = requirements(extras)
    done = Path(sys.prefix) / "installed"
    state = "\n".join((*wanted, CONSTRAINTS.read_text()))
    if done.is_file() and done.read_text() == state:
        return
    say("installing Python packages")
    if subprocess.run([*PIP, "-c", CONSTRAINTS, *wanted]).returncode != 0:
        say(f"failed with the versions of .ci/{CONSTRAINTS.name}: trying the newest")
        subprocess.run([*PIP, *wanted], check=True)
    link()
    done.write_text(state)


def newest() -> None:
    eager = ("--upgrade", "--upgrade-strategy", "eager")
    subprocess.run([*PIP, *eager, *requirements(list(PINNED))], check=True)
    pin = subprocess.run(
        [sys.executable, __file__, "--pin"], check=True, capture_output=True, text=True
    )
    CONSTRAINTS.write_text(pin.stdout)


def link() -> None:
    package = Path(sysconfig.get_path("purelib")) / "pybuild-crt.pth"
    package.write_text(f"{ROOT}\n")
    command = Path(sysconfig.get_path("scripts")) / "crt"
    command.write_text(
        f"#!{sys.executable}\n"
        "import sys\n\nfrom pybuild.cli import main\n\nsys.exit(main())\n"
    )
    command.chmod(0o755)


def main(arguments: list[str]) -> int:
    if arguments == ["--pin"]:
        print(pinned(), end="")
        return 0
    try:
        if arguments[:1] == ["--newest"]:
            newest()
            arguments = arguments[1:]
        install(arguments)
    except subprocess.CalledProcessError:
        say("pip failed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

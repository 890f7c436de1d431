"""Every command, every line of Python and every piece of C that README.md and the pages
of docs/ and examples/ show is run or compiled, as it stands there, in a folder that has
nothing but examples/."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.snippets import FILES, RUN, Snippet, groups
from tests.toolchains import ROOT, STRICT, require

GROUPS = groups(ROOT)
BLOCKS = [block for blocks in GROUPS.values() for block in blocks]
COMMANDS = ("crt", "python", "pip", "make", "cmake", "meson", "ninja", "git", "./dev")
# what a board needs, where zig is not installed
BOARDS = ("arm-none-eabi-gcc", "qemu-system-arm")
FRAGMENT = """\
{includes}
void fragment(void);
void fragment(void)
{{
{given}
{text}
}}
"""


def is_run(block: Snippet) -> bool:
    left_out = block.said("not run") or block.said("run by")
    return block.language in RUN and left_out is None


RUNNABLE = {
    name: [block for block in blocks if is_run(block)]
    for name, blocks in GROUPS.items()
    if any(map(is_run, blocks))
}


def test_each_block_is_run_or_says_why_not() -> None:
    wrong = []
    for block in BLOCKS:
        if block.language not in ("", "yaml", *RUN):
            wrong.append(f"{block}: what is '{block.language}'?")
        nameless = block.file is None and block.said("run by") is None
        if block.language in FILES and nameless:
            wrong.append(f"{block}: which file is it?")
        first = {line.removeprefix("$ ").split(" ")[0] for line in lines_of(block)}
        if not block.language and first & set(COMMANDS) and not block.said("not run"):
            wrong.append(f"{block}: has commands; is it ```sh, or not run: why?")
        other = block.said("run by")
        if (
            other is not None
            and Path(block.page).name not in (ROOT / other).read_text()
        ):
            wrong.append(f"{block}: {other} does not read this page")
    assert not wrong, "\n" + "\n".join(wrong)
    shown = [block for block in BLOCKS if block.language in RUN]
    elsewhere = [block for block in shown if block.said("run by") is not None]
    left = [one for one in shown if not is_run(one) and one not in elsewhere]
    assert len(left) < len(shown) // 10, "nearly all that pages show is run"


def lines_of(block: Snippet) -> list[str]:
    return block.text.replace("\\\n", "").splitlines()


def test_the_readme_and_the_tour_show_the_main_commands() -> None:
    shown = [line for name, b in GROUPS.items() if name[:6] == "README" for line in b]
    text = "".join(block.text for block in shown)
    assert "./dev demo\n" in text and "./dev test\n" in text
    verbs = ("inspect", "build", "check", "bench")
    assert all(f"\ncrt {verb}" in f"\n{text}" for verb in verbs)
    tour = "".join(block.text for block in GROUPS["docs/tour.md"])
    assert all(f"\ncrt {verb}" in f"\n{tour}" for verb in (*verbs, "boards"))
    assert "import pybuild" in tour


@pytest.mark.parametrize("name", RUNNABLE)
def test_page(name: str, tmp_path: Path) -> None:
    blocks = RUNNABLE[name]
    words = " ".join(block.text for block in blocks)
    for tool in BOARDS if re.search(r"--on |crt boards |open_device", words) else ():
        require(tool)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=ignore)
    (tmp_path / "build").mkdir()
    python = [block for block in blocks if block.language == "python"]
    for block in blocks:
        file = block.file
        if file is not None:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(block.text)
        elif block.language in ("sh", "console"):
            run_commands(block, tmp_path)
        elif block.language == "c":
            compile_fragment(block, blocks, tmp_path)
        elif python and block is python[0]:
            run_python(python, tmp_path)


def run_commands(block: Snippet, folder: Path) -> None:
    """Each prints something and what the page says; none fails but one that ends with
    "# exit code N", which has to."""
    lines = lines_of(block)
    commands, expected = lines, []
    if block.language == "console":
        commands = [line[2:] for line in lines if line.startswith("$ ")]
        expected = [line for line in lines if not line.startswith("$ ")]
    said = "".join(
        output(["sh", "-euc", line], f"{block}: {line}", folder)
        for line in commands
        if line
    )
    for line in expected:
        assert line in said, f"{block}: no '{line}' in\n{said}"


def run_python(blocks: list[Snippet], folder: Path) -> None:
    """All of a page's, as one program."""
    code = "".join(f"{block.said('with') or ''}\n{block.text}" for block in blocks)
    output([sys.executable, "-c", code], str(blocks[0]), folder, silent=True)


def compile_fragment(block: Snippet, blocks: list[Snippet], folder: Path) -> None:
    """Against the first tree that the page builds."""
    shown = " ".join(other.text for other in blocks)
    found = re.search(r"crt build [^\n]*-o (\S+)", shown)
    assert found, f"{block}: no tree to compile it with"
    tree = folder / found[1]
    headers = ["string.h", *sorted(path.name for path in tree.glob("*.h"))]
    includes = "\n".join(f'#include "{name}"' for name in headers)
    given = block.said("with") or ""
    source = folder / "fragment.c"
    source.write_text(FRAGMENT.format(includes=includes, given=given, text=block.text))
    flags = [flag for flag in STRICT if flag != "-std=c99"]
    unused = ["-std=c11", "-Wno-unused-variable", "-Wno-unused-but-set-variable"]
    call = [require("gcc"), *flags, *unused, f"-I{tree}", f"-I{tree}/crt/include"]
    output([*call, "-fsyntax-only", str(source)], str(block), folder, silent=True)


def output(command: list[str], where: str, folder: Path, silent: bool = False) -> str:
    scripts = str(Path(sys.executable).parent)
    path = os.pathsep.join((scripts, os.environ["PATH"]))
    env = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    said = re.search(r"# exit code (\d+)$", command[-1])
    wanted = int(said[1]) if said else 0
    assert done.returncode == wanted, f"{where}\n{done.stdout}{done.stderr}"
    assert silent or done.stdout, f"{where} prints nothing"
    return done.stdout

"""docs/own-cmake.md: its files, taken from the page, are a firmware with two models,
its own linker script and its own start-up, which runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from pybuild.cli import main
from tests.toolchains import ROOT, require, run

PAGE = ROOT / "docs" / "own-cmake.md"
_MARK = r"(?:<!-- run by: [^\n]* -->\n)?"
_FILE = re.compile(rf"<!-- file: (\S+) -->\n{_MARK}```\w*\n(.*?)```\n", re.S)


def test_the_page_is_a_firmware_that_runs(tmp_path: Path) -> None:
    text = PAGE.read_text()
    files = dict(_FILE.findall(text))
    assert {"CMakeLists.txt", "firmware.ld", "main.c", "startup.c"} < set(files)
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (line,) = re.findall(r"```sh\ncrt (build .*)\n```", text)
    words = line.replace("build/firmware/models", str(tmp_path / "models")).split()
    given = [str(ROOT / word) if "examples/" in word else word for word in words]
    assert main(given) == 0
    cmake, gcc = require("cmake"), require("arm-none-eabi-gcc")
    built = tmp_path / "built"
    kit = f"-DCMAKE_TOOLCHAIN_FILE={tmp_path / 'cortex-m4.cmake'}"
    run([cmake, "-S", tmp_path, "-B", built, kit, f"-DCMAKE_C_COMPILER={gcc}"])
    run([cmake, "--build", built])
    elf = built / "firmware.elf"
    _where_things_are(elf)
    (command,) = re.findall(r"\$ (qemu-system-arm .*) built/firmware.elf", text)
    program, *options = command.split()
    wanted = text[text.index("built/firmware.elf\n") :].split("\n", 1)[1]
    wanted = wanted[: wanted.index("```")]
    with subprocess.Popen(
        [require(program), *options, elf], stdout=subprocess.PIPE, text=True
    ) as qemu:
        assert qemu.stdout is not None
        said = "".join(qemu.stdout.readline() for _ in wanted.splitlines())
        qemu.kill()
    assert said == wanted


def _where_things_are(elf: Path) -> None:
    """Weights are in the second flash, the arena is in RAM, and nothing is twice."""
    nm = run([require("arm-none-eabi-nm"), elf])
    found = {line.split()[2]: int(line.split()[0], 16) for line in nm.splitlines()
             if len(line.split()) == 3}  # fmt: skip
    weights = [at for name, at in found.items() if re.search(r"_weights$|_bias$", name)]
    assert weights and all(0x200000 <= at < 0x300000 for at in weights)
    assert 0x20000000 <= found["arena"] < 0x20004000
    assert found["digits_run"] < 0x20000
    heads = run([require("arm-none-eabi-objdump"), "-h", elf])
    assert ".weights" in heads

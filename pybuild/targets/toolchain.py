"""Cross compilers found on this machine: which there are, and their command lines.

Knows cores and flags; knows no board and no model.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pybuild.errors import BuildError
from pybuild.install import called
from pybuild.records import dataclass
from pybuild.targets.core import GCC, Core

NAMES = ("gcc", "zig", "clang")
# of those architectures that only GNU C compiles for, too
_PACKAGES = {
    "arm": "gcc-arm-none-eabi",
    "riscv": "gcc-riscv64-unknown-elf",
    "riscv-linux": "gcc-riscv64-linux-gnu",
    "xtensa": "gcc-xtensa-lx106",
    "avr": "gcc-avr avr-libc",
}
_BY_ALL = ("arm", "riscv", "riscv-linux")
# equal floats everywhere; sections that the linker may drop; no run-time support
_COMMON = (
    "-std=c99", "-ffp-contract=off", "-fno-math-errno", "-ffunction-sections",
    "-fdata-sections", "-fomit-frame-pointer",
)  # fmt: skip
_FREE = {
    # memcpy of four bytes must stay one instruction
    "gcc": ("-ffreestanding", "-fbuiltin"),
    "clang": ("-fhosted", "-nostdlibinc"),
    "zig": (
        "-fhosted", "-fno-sanitize=undefined", "-fno-unwind-tables",
        "-fno-asynchronous-unwind-tables", "-fno-stack-protector",
    ),
}  # fmt: skip

# levels of kernels by --optimise. Kernels have unrolled what pays: of other loops clang
# would make a third more code for a hundredth of the instructions, but its -Os leaves
# more undone; gcc at -Os leaves values out of registers
_LEVELS = {"size": ("-Os",), "ram": ("-O2",), "balanced": ("-O2",), "speed": ("-O3",)}
_CLANG_LEVELS = {
    **_LEVELS,
    **dict.fromkeys(("ram", "balanced"), ("-O2", "-fno-unroll-loops")),
}
# for all code but kernels. clang's -Os inlines more than gcc's; zig takes -Oz for -Os
_SMALL = {"gcc": ("-Os",), "clang": ("-Oz",), "zig": ("-Os", "-Xclang", "-Oz")}


@dataclass(frozen=True)
class Toolchain:
    """A C compiler with its linker for one architecture.

    kind     gcc, clang or zig
    name     of the program, as people know it
    command  what starts it
    """

    kind: str
    name: str
    version: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def machine(self, core: Core) -> tuple[str, ...]:
        """The flags that choose a core."""
        match self.kind:
            case "gcc":
                return core.gcc
            case "clang":
                own = [flag for flag in core.gcc if flag != "-misa-spec=2.2"]
                return (f"--target={core.clang}", *own)
            case _:
                target, cpu = core.zig
                return ("-target", target, f"-mcpu={cpu}")

    def compile_flags(self, core: Core) -> tuple[str, ...]:
        return (*self.machine(core), *_COMMON, *_FREE[self.kind])

    def level(self, optimise: str) -> tuple[str, ...]:
        """The flags for kernels."""
        return (_LEVELS if self.kind == "gcc" else _CLANG_LEVELS)[optimise]

    def small(self, optimise: str) -> tuple[str, ...]:
        """The flags for all else: with -Oz a run takes up to 0.5 % more."""
        return _SMALL[self.kind if optimise == "size" else "gcc"]

    def link_flags(self, core: Core, script: str) -> tuple[str, ...]:
        """Everything but the objects; `libraries` come after them."""
        machine = self.machine(core)
        drop = "-Wl,--gc-sections"
        match self.kind:
            case "gcc":
                quiet = "-Wl,--no-warn-rwx-segments" if self._warns_rwx() else ""
                flags = ("-nostdlib", "-static", drop, "-T", script)
                return (*machine, *flags, *filter(None, [quiet]))
            case "clang":
                return (*machine, "-nostdlib", "-static", "-fuse-ld=lld", drop,
                        "-T", script)  # fmt: skip
            case _:
                # -nostdlib would drop the compiler's own run time
                return (*machine, "-static", drop, "-T", script)

    def libraries(self, core: Core) -> tuple[str, ...]:
        """The compiler's run time: 64-bit and float arithmetic of small cores."""
        match self.kind:
            case "gcc" if not core.library:
                return ("-lgcc",)
            case "gcc" | "clang":
                gcc = shutil.which(GCC[core.arch])
                if gcc is None:
                    return ()
                ask = [gcc, *(core.library or core.gcc), "-print-libgcc-file-name"]
                return (_said(ask),)
            case _:
                return ()

    def _warns_rwx(self) -> bool:
        """True if its linker knows the warning (binutils 2.39)."""
        return int(self.version.partition(".")[0] or 0) >= 12


def _said(command: Sequence[str]) -> str:
    done = called(command)
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def find_toolchain(kind: str, arch: str) -> Toolchain | None:
    """The compiler of that kind on this machine, if there is one."""
    match kind:
        case "gcc":
            name = GCC[arch]
            path = shutil.which(name)
            version = _said([path, "-dumpfullversion"]) if path else ""
            return Toolchain(kind, name, version, (path,)) if path else None
        case _ if arch not in _BY_ALL:
            return None
        case "clang":
            path = shutil.which("clang")
            if path is None or shutil.which("ld.lld") is None:
                return None
            found = re.search(r"version (\S+)", _said([path, "--version"]))
            return Toolchain(kind, "clang", found[1] if found else "", (path,))
        case _:
            return _zig()


def _zig() -> Toolchain | None:
    """The Python package ziglang, else a zig on the path."""
    spec = importlib.util.find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        beside = Path(spec.origin).parent / "zig"
        start = [str(beside)] if beside.is_file() else [sys.executable, "-m", "ziglang"]
    else:
        found = shutil.which("zig")
        if found is None:
            return None
        start = [found]
    return Toolchain("zig", "zig", _said([*start, "version"]), (*start, "cc"))


def missing_tools(kind: str, arch: str) -> str:
    """The packages to install for a missing tool chain."""
    match kind:
        case "gcc":
            if arch not in _PACKAGES:
                return f"install {GCC[arch]}, which comes with ESP-IDF"
            return f"apt-get install {_PACKAGES[arch]}"
        case "clang":
            return "apt-get install clang lld"
        case _:
            return "pip install ziglang"


def missing_compilers(arch: str) -> str:
    """The packages to install if there is no compiler for an architecture."""
    kinds = ("zig", "gcc") if arch in _BY_ALL else ("gcc",)
    return " or ".join(missing_tools(kind, arch) for kind in kinds)


def choose_toolchain(wanted: str, core: Core) -> Toolchain:
    """The tool chain `wanted`, or for "auto" the first that is here.

    Errors  BuildError that says what to install
    """
    for kind in NAMES if wanted == "auto" else (wanted,):
        found = find_toolchain(kind, core.arch)
        if found is not None and core.knows(kind, found.version):
            return found
        if found is not None and wanted != "auto":
            what = f"{found} does not know {core.name}"
            first = dict(core.least)[kind]
            hint = f"{wanted} {first} or later, or --toolchain zig"
            raise BuildError("--toolchain", what, hint)
    if wanted == "auto" and core.least:
        what = "no compiler on this machine knows this core"
        least = (f"{kind} {version} or later" for kind, version in core.least)
        hint = ", or ".join([missing_tools("zig", core.arch), *least])
        raise BuildError(core.name, what, hint)
    if wanted == "auto":
        what = "there is no compiler for this core on this machine"
        hints = missing_compilers(core.arch)
        raise BuildError(core.name, what, hints)
    what = f"there is no {wanted} for {core.name} on this machine"
    raise BuildError("--toolchain", what, missing_tools(wanted, core.arch))

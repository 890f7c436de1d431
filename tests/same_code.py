"""Whether two revisions make the same C but for comments and names of their own.

`python -m tests.same_code REVISION [MODEL...]` builds every operator case, every golden
network and the models given, here and at REVISION, and compares the C. It ends with 1
where a file differs, and says how many files it has compared.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("generic", "cortex-m4", "cortex-m55", "cortex-m0", "cortex-m3", "rv32imc")
PLANS = ("rows", "whole")

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    r"|\.?\d(?:[eEpP][+-]|[\w.])*|[A-Za-z_]\w*|^[ \t]*#[^\n]*"
    r"|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S",
    re.M,
)
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|/\*.*?\*/', re.S)
_WORD = re.compile(r"[A-Za-z_]\w*\Z")
_TYPE = re.compile(r"(?:\w+_t|void|char|int|float|double|bool|_Bool|crt_\w+x\d+)\Z")
# what has one meaning everywhere: words of C, crt's own, macros, the C library's
_FIXED = re.compile(
    r"(?:\w+_t|[A-Z][A-Z0-9_]*|crt_\w+|__\w+|auto|bool|break|case|char|const|continue|"
    r"default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    r"restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|"
    r"void|volatile|while|mem\w+|f?(?:abs|ma|max|min|mod)f?|[a-z]+[0-9]?f)\Z"
)


def without_comments(text: str) -> str:
    """C as a compiler reads it: a comment is a space."""
    return _COMMENT.sub(lambda found: found[1] or " ", text)


def normal(text: str, public: frozenset[str] = frozenset()) -> list[str]:
    """The tokens of a C file, each name of its own replaced by a number: by the order
    in which the file declares or first uses it.

    public  names that stay: others see them
    """
    tokens = _TOKEN.findall(without_comments(text))
    return list(_Renamer(tokens, public).renamed())


class _Renamer:
    """Numbers for names: of the file, and in a function of each declaration."""

    def __init__(self, tokens: list[str], public: frozenset[str]) -> None:
        self.tokens = tokens
        self.public = public
        self.names: dict[str, str] = {}
        self.scopes: list[dict[str, str]] = []
        self.locals = 0

    def renamed(self) -> Iterator[str]:
        depth = 0
        for at, token in enumerate(self.tokens):
            if token in "({":
                depth += 1
                if token == "{" or depth == 1:  # the parameters of a function, a block
                    self.scopes.append({})
            if token in ")}":
                depth -= 1
                if token == "}":
                    self.scopes.pop()
            if depth == 0 and token in (";", "}"):
                self.scopes.clear()
                self.locals = 0
            yield self._name(at, token) if _WORD.match(token) else token

    def _name(self, at: int, word: str) -> str:
        if word in self.public or _FIXED.match(word):
            return word
        if self.scopes and self._declares(at):
            self.scopes[-1][word] = f"local{self.locals}"
            self.locals += 1
        for scope in reversed(self.scopes):
            if word in scope:
                return scope[word]
        return self.names.setdefault(word, f"name{len(self.names)}")

    def _declares(self, at: int) -> bool:
        """Whether the word there is declared: a type stands before it."""
        at -= 1
        while self.tokens[at] in ("*", "restrict", "const"):
            at -= 1
        return bool(_TYPE.match(self.tokens[at])) or self.tokens[at - 1] == "struct"


def names_of(header: str) -> frozenset[str]:
    """All names of a header."""
    return frozenset(filter(_WORD.match, _TOKEN.findall(without_comments(header))))


def different(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """The files of a model whose code differs; headers may not differ in names."""
    headers = [text for name, text in new.items() if name.endswith(".h")]
    public = frozenset().union(*map(names_of, headers))
    everything = {n: names_of(t) for n, t in (old | new).items() if n.endswith(".h")}
    return [
        name
        for name in sorted(old.keys() | new.keys())
        if name not in old
        or name not in new
        or normal(old[name], everything.get(name, public))
        != normal(new[name], everything.get(name, public))
    ]


def made(models: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Every model of this tree as C: its name, its files."""
    from pybuild import load
    from tests.golden.networks import libraries
    from tests.ops.cases import ROUNDINGS, cases
    from tests.ops.suite import c_name, model
    from tests.ops.test_general import _library, _ones

    for library in libraries():
        yield f"golden/{library.name}", library.sources()
    for one in _ones():
        yield f"general/{one.name}", _library(one.name).sources()
    for case in cases():
        for rounding in ROUNDINGS:
            if not case.is_changed_by(rounding):
                continue
            for target in TARGETS:
                for alone in (True, False) if target == "generic" else (False,):
                    library = model(case, rounding).build(
                        name="layer", rounding=rounding, target=target, alone=alone,
                        **case.options,
                    )  # fmt: skip
                    name = f"{c_name(case, rounding)}/{target}{'-alone' * alone}"
                    yield name, library.sources()
    for path in models:
        for target in TARGETS:
            for plan in PLANS:
                library = load(path).build(name="net", target=target, plan=plan)
                yield f"{Path(path).name}/{target}-{plan}", library.sources()


def kernels() -> Iterator[tuple[str, dict[str, str]]]:
    """Every kernel that any case has to choose from, on every core, as C."""
    from pybuild.emit.c.model import kernels_file
    from pybuild.kernels.table import candidates
    from pybuild.targets.target import TARGETS as KNOWN
    from tests.ops.cases import cases
    from tests.ops.suite import model

    for case in cases():
        graph = model(case, "litert").graph
        for name, target in sorted(KNOWN.items()):
            for optimise in ("balanced", "size", "speed"):
                funcs = [
                    c.func
                    for node in graph.nodes
                    for one in candidates(node, graph, target, optimise)
                    for c in (one, one.finish)
                    if c is not None and c.func is not None
                ]
                texts = [kernels_file([(func, ())], "") for func in funcs]
                folder = f"kernels/{case.name}/{name}-{optimise}"
                yield folder, {f"{i}.c": text for i, text in enumerate(texts)}


def write(folder: Path, models: list[str]) -> None:
    """All files of this tree, those of a model in a folder of their own."""
    for models_of in (kernels(), made(models)):
        for name, files in models_of:
            (folder / name).mkdir(parents=True)
            for file, text in files.items():
                (folder / name / file).write_text(text)


def written(tree: Path, folder: Path, models: list[str]) -> subprocess.Popen[bytes]:
    """The same by another tree: by its own copy of this file, if it has one."""
    own = tree / "tests" / "same_code.py"
    script = own if own.exists() else Path(__file__)
    command = [sys.executable, str(script), "--write", str(folder), "-", *models]
    return subprocess.Popen(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}
    )


def compared(old: Path, new: Path) -> tuple[int, list[str]]:
    """How many files two folders have, and which differ."""
    count, found = 0, []
    folders = {
        path.parent.relative_to(top) for top in (old, new) for path in top.rglob("*.c")
    }
    for name in sorted(folders):
        texts = [
            {p.name: p.read_text() for p in sorted((top / name).glob("*.[ch]"))}
            for top in (old, new)
        ]
        count += len(texts[0].keys() | texts[1].keys())
        found += [f"{name}/{file}" for file in different(*texts)]
    return count, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    models = [str(Path(path).resolve()) for path in given.models]
    if given.write:
        write(given.write, models)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        tree, old, new = (Path(scratch) / name for name in ("tree", "old", "new"))
        add = ["git", "worktree", "add", "--quiet", "--detach", str(tree)]
        subprocess.run([*add, given.revision], cwd=ROOT, check=True)
        try:
            runs = [written(tree, old, models), written(ROOT, new, models)]
            if any([run.wait() for run in runs]):
                return 2
        finally:
            remove = ["git", "worktree", "remove", "--force", str(tree)]
            subprocess.run(remove, cwd=ROOT, check=True)
        count, found = compared(old, new)
    print("\n".join([*found, f"{count} files compared, {len(found)} differ"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

"""docs/options.md, made from the table: python -m pybuild.options.page"""

from __future__ import annotations

from collections.abc import Iterable

from pybuild.options.option import Option, of_words, options_in
from pybuild.options.table import VERBS, BuildOptions, LoadOptions, QuantiseOptions

_HEAD = """\
# Every option

`--ram-limit 64K` on the command line is `ram_limit="64K"` in Python, and
`ram-limit = "64K"` in [crt.toml](project-file.md): all three read a value alike.
An option that may be repeated on the command line is a list, or one value, in Python
and crt.toml; an option of the form `NAME=VALUE` is a dict or a table.
`pybuild/options/table.py` declares each option once, and this page is made from it.
"""
# verbs that take a model
_BUILDING = sum(BuildOptions in kinds for kinds in VERBS.values())
_PYTHON = {
    LoadOptions: "`pybuild.load`",
    BuildOptions: "`Model.build`",
    QuantiseOptions: "`pybuild.quantise`",
}


def page() -> str:
    """The text of docs/options.md."""
    takes: dict[tuple[str, str], list[str]] = {}
    groups: dict[str, dict[str, Option]] = {}
    for verb, kinds in VERBS.items():
        for one in of_words(*kinds):
            takes.setdefault((one.group, one.word), []).append(verb)
            groups.setdefault(one.group, {})[one.word] = one
    parts = [_HEAD]
    for group, options in groups.items():
        parts.append(f"\n## {group[0].upper()}{group[1:]}\n\n")
        parts.append("| option | in Python | verbs | |\n|---|---|---|---|\n")
        parts += [_row(x, takes[group, x.word]) for x in options.values()]
    only = [one for kind in _PYTHON for one in options_in(kind) if not one.word]
    parts.append("\n## In Python only\n\n| keyword | |\n|---|---|\n")
    parts += [f"| `{one.keyword}` | {one.help} |\n" for one in only]
    return "".join(parts)


def _row(one: Option, verbs: Iterable[str]) -> str:
    value = one.kind.metavar.replace("|", "\\|")
    short = f"`-{one.short}` " if one.short else ""
    word = f"--{one.word} {value}".strip()
    found = list(verbs)
    where = "all" if len(found) == _BUILDING else ", ".join(found)
    help = one.help.replace("*", "\\*")
    return f"| {short}`{word}` | {_keyword(one)} | {where} | {help} |\n"


def _keyword(one: Option) -> str:
    for kind, function in _PYTHON.items():
        if one in options_in(kind):
            value = "=False" if one.is_off else ""
            return f"`{one.keyword}{value}` of {function}"
    return ""


if __name__ == "__main__":
    print(page(), end="")

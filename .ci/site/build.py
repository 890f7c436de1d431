"""Builds the site: docs/ and examples/ as they are, and the reference made of code, as
HTML and as man pages. `build.py [FOLDER]`; a warning of any tool is an error.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "build" / "site"
SOURCE = BUILT / "source"
DOXYFILE = """\
PROJECT_NAME = crt
OUTPUT_DIRECTORY = {out}
INPUT = {inputs}
STRIP_FROM_PATH = {strip}
FULL_PATH_NAMES = YES
INPUT_FILTER = "{python} {filter}"
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
OPTIMIZE_OUTPUT_FOR_C = YES
EXTRACT_ALL = YES
EXTRACT_STATIC = YES
JAVADOC_AUTOBRIEF = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
EXPAND_AS_DEFINED = CRT_MLA CRT_HALVES CRT_BYTES CRT_PRODUCT CRT_EIGHTS CRT_CHOSEN
INCLUDE_PATH = {include}
PREDEFINED = "CRT_INLINE=static inline" CRT_C_BODIES= CRT_C_BODIES_END= \\
    CRT_WITH_SELFTEST=1 __attribute__(x)=
QUIET = YES
WARN_AS_ERROR = FAIL_ON_WARNINGS
"""


def stage() -> None:
    """The pages, side by side: those of docs/ at the top."""
    sys.path.insert(0, str(HERE))
    import notebooks
    import pages

    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE)
    shutil.copy(ROOT / "CONTRIBUTING.md", SOURCE / "contributing.md")
    shutil.copy(ROOT / "README.md", SOURCE / "readme.md")
    junk = shutil.ignore_patterns("__pycache__")  # of the rest pages link to some
    shutil.copytree(ROOT / "examples", SOURCE / "examples", ignore=junk)
    (SOURCE / "changes").mkdir()
    shutil.copy(ROOT / "changes" / "README.md", SOURCE / "changes")
    for file in sorted(SOURCE.rglob("*.ipynb")):
        text = notebooks.page(json.loads(file.read_text(encoding="utf-8")))
        file.with_suffix(".md").write_text(text, encoding="utf-8")
        file.unlink()
    for page in sorted(SOURCE.rglob("*.md")):
        page.write_text(_of_site(page.read_text()))
    for folder, made in (
        ("cli", pages.command_pages()),
        ("c", pages.header_pages()),
        ("python", pages.python_pages()),
        ("files", (("crt-toml", pages.crt_toml()), ("report-json", pages.report_json()),
                   ("errors", pages.error_codes()))),
    ):  # fmt: skip
        (SOURCE / "reference" / folder).mkdir(parents=True)
        for name, text in made:
            (SOURCE / "reference" / folder / f"{name}.rst").write_text(text)


def _of_site(text: str) -> str:
    """Links to pages that lie elsewhere here: all of docs/ is at the top."""
    text = re.sub(r"\]\((?:\.\./)?README\.md", "](readme.md", text)
    text = re.sub(r"\]\((?:\.\./)?CONTRIBUTING\.md", "](contributing.md", text)
    text = re.sub(r"\]\(((?:\.\./\.\./)?)docs/", r"](\1", text)
    # by title, not by the name of a file
    text = re.sub(r"\[[\w/-]+\.md\](\([\w./-]+\.md)", r"[]\1", text)
    text = text.replace(".ipynb)", ".md)")
    return text.replace("](../examples/", "](examples/")


def doxygen() -> None:
    """The XML of crt's headers and of a generated one."""
    import pybuild

    tree = BUILT / "headers"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "crt" / "include", tree)
    model = ROOT / "examples" / "digits" / "digits_int8.tflite"
    made = pybuild.load(model).build(name="digits").sources()
    (tree / "digits.h").write_text(made["digits.h"])
    out = BUILT / "doxygen"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    facts = {
        "include": tree,
        "out": out,
        "inputs": f"{tree}/crt {tree}/digits.h",
        "strip": tree,
    }
    facts |= {"python": sys.executable, "filter": HERE / "comments.py"}
    (out / "Doxyfile").write_text(DOXYFILE.format(**facts))
    subprocess.run(["doxygen", out / "Doxyfile"], check=True)
    name_enums(out / "xml")


_NAMELESS = re.compile(r'(<memberdef kind="enum"[^>]*>\s*<type></type>\s*<name>)(?=<)')


def name_enums(xml: Path) -> None:
    """Enums without a tag as @0, @1 ...: Doxygen before 1.9.5 says that, later ones
    nothing, which no declaration can be made of."""
    count = itertools.count()
    for page in sorted(xml.glob("*.xml")):
        text = page.read_text(encoding="utf-8")
        named = _NAMELESS.sub(lambda found: f"{found[1]}@{next(count)}", text)
        page.write_text(named, encoding="utf-8")


def sphinx(builder: str, out: Path) -> int:
    from sphinx.cmd.build import main

    words = ["-q", "-W", "--keep-going", "-b", builder, "-c", str(HERE)]
    return main([*words, "-d", str(BUILT / "doctrees"), str(SOURCE), str(out)])


# what the theme leaves out for those who hear the page or have no pointer
_HEARD = {
    '<aside class="sidebar-drawer"': '<aside class="sidebar-drawer" aria-label="Pages"',
    '<aside class="toc-drawer': '<aside aria-label="Parts" class="toc-drawer',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    '<th class="head"></th>': '<td class="head"></td>',
    'role="heading"': 'role="heading" aria-level="2"',
    "<pre": '<pre tabindex="0"',
}

# arguments on lines of their own are a list without terms
_ARGUMENTS = re.compile(r'(sig-paren">\(</span>\s*)<dl>(.*?)</dl>', re.DOTALL)


def heard(out: Path) -> None:
    for page in sorted(out.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        for old, new in _HEARD.items():
            text = text.replace(old, new)
        text = _ARGUMENTS.sub(_arguments, text)
        page.write_text(text, encoding="utf-8")


def _arguments(found: re.Match[str]) -> str:
    lines = found[2].replace("<dd>", "<span>").replace("</dd>", "</span>")
    return f'{found[1]}<span class="arguments">{lines}</span>'


def main(arguments: list[str]) -> int:
    out = Path(arguments[0]).resolve() if arguments else BUILT / "html"
    stage()
    doxygen()
    shutil.rmtree(out, ignore_errors=True)
    failed = sphinx("html", out) or sphinx("man", out.parent / "man")
    if not failed:
        heard(out)
        print(f"{out / 'index.html'}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

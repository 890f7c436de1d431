"""Mutations of the comments of generated C and of the site, for mutate.py: its five
fields."""

_SAID = "tests/emit/test_comments.py"
_TOLD = f"{_SAID}::test_every_kernel_part_function_and_constant_says_what_it_is"
_SAME = "tests/house/test_same_code.py"

COMMENTS = (
    (
        "a kernel that says nothing",
        "pybuild/kernels/portable/act.py",
        'k = Builder(name, told(f"y = {node.op}(x), float32{clamp}", FORWARD))',
        "k = Builder(name)",
        _TOLD,
    ),
    (
        "a constant that does not say how it lies",
        "pybuild/kernels/base/taps.py",
        'Packed("outside", pixel, order="a pixel beside the row")',
        'Packed("outside", pixel)',
        _TOLD,
    ),
    (
        "kernels that differ by what is said of them",
        "pybuild/ir/loop.py",
        'doc: str = field(default="", compare=False)\n\n    def __hash__',
        'doc: str = ""\n\n    def __hash__',
        f"{_SAID}::test_a_kernel_is_its_code_whatever_is_said_of_it",
    ),
    (
        "a trigraph that joins a comment's line to the next",
        "pybuild/emit/kernels/c.py",
        '("??", "? ?")',
        '("???", "? ??")',
        f"{_SAID}::test_a_comment_is_one_whatever_it_says",
    ),
    (
        "until when a tensor is live on the map",
        "pybuild/emit/tables/memory_map.py",
        "'end' if is_output else max(steps)",
        "'end' if is_output else max(piece.made or steps)",
        f"{_SAID}::test_the_map_of_memory_has_what_steps_touch",
    ),
    (
        "bytes behind a ring's last row on the map",
        "pybuild/emit/tables/memory_map.py",
        "(ring.rows - 1) * ring.pitch + access.row_bytes",
        "(ring.rows + 1) * ring.pitch",
        f"{_SAID}::test_the_map_of_memory_has_what_steps_touch",
    ),
    (
        "names of a function that are told apart by where they are declared",
        "tests/same_code.py",
        "if self.scopes and self._declares(at):",
        "if False:",
        _SAME,
    ),
    (
        "names that others see",
        "tests/same_code.py",
        "if word in self.public or _FIXED.match(word):",
        "if _FIXED.match(word):",
        _SAME,
    ),
    (
        "scratch that is live in its step alone",
        "pybuild/emit/tables/memory_map.py",
        'yield f"{number}..{number}", _Piece',
        'yield f"0..{number}", _Piece',
        f"{_SAID}::test_pieces_of_memory_share_bytes_only_in_turn",
    ),
)

SITE = (
    (
        "a comment of several declarations",
        ".ci/site/comments.py",
        'return block[:1] + more.replace(_MARK, f"{said}\\n")',
        'return block[:1] + more.replace(_MARK, "")',
        "tests/house/test_site_comments.py",
    ),
    (
        "the second line of a field",
        ".ci/site/comments.py",
        'f"{found[-1][1]} {line.strip()}"',
        'f"{found[-1][1]}"',
        "tests/house/test_site_comments.py",
    ),
    (
        "a sign that Doxygen reads as HTML",
        ".ci/site/comments.py",
        r'r"([@\\<>#%&\"])"',
        r'r"([@\\#%&\"])"',
        "tests/house/test_site_comments.py",
    ),
    (
        "a page that is on no menu",
        ".ci/site/nav.yml",
        "      - file: regions\n        title: Use several memories\n",
        "",
        "tests/house/test_site.py",
    ),
    (
        "options of the last group",
        ".ci/site/pages.py",
        "    for group in command._action_groups:\n",
        "    for group in command._action_groups[:-1]:\n",
        "tests/house/test_site.py",
    ),
)

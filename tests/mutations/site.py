"""Mutations of what the site is made of, for mutate.py: its five fields."""

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

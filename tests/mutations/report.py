"""Mutations of the report as a page, for mutate.py: its five fields."""

_PAGE = "tests/html/test_report_page.py"

REPORT_PAGE = (
    (
        "a name that ends the page's data",
        "pybuild/html/page.py",
        'for sign in "<>&":',
        'for sign in "&":',
        f"{_PAGE}::test_names_are_text",
    ),
    (
        "names as markup",
        "pybuild/html/parts.js",
        "if (child !== null && child !== undefined) made.append(child);",
        'if (typeof child === "string") made.insertAdjacentHTML("beforeend", child);'
        " else if (child !== null && child !== undefined) made.append(child);",
        f"{_PAGE}::test_names_are_text",
    ),
    (
        "a time that lasts one too long",
        "pybuild/package/occupancy.py",
        "found.append((now, now + count))",
        "found.append((now, now + count + 1))",
        f"{_PAGE}::test_shapes_do_not_overlap",
    ),
    (
        "bytes alive that are not taken away again",
        "pybuild/package/occupancy.py",
        "changes.get(stop, 0) - (piece.end - piece.at)",
        "changes.get(stop, 0)",
        f"{_PAGE}::test_numbers_of_a_mobile_net",
    ),
    (
        "a bar of another layer",
        "pybuild/html/cost.js",
        "data: rows.map((row) => ({ value: row.instructions,",
        "data: rows.map((row) => ({ value: row.macs,",
        f"{_PAGE}::test_numbers_of_a_mobile_net",
    ),
)

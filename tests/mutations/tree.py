"""Mutations of the generated folder, its names and its page, for mutate.py: its five
fields."""

_KEPT = "tests/package/test_tree_kept.py"
_BUILDS = "tests/package/test_tree_builds.py::test_"

TREE = (
    (
        "products and sums apart, by make",
        "pybuild/package/templates/Makefile.in",
        "    -std=c99 $(CONTRACT)\n",
        "    -std=c99\n",
        f"{_BUILDS}make_keeps_its_flags",
    ),
    (
        "the flags of a tree after the user's",
        "pybuild/package/templates/Makefile.in",
        "$(CPPFLAGS) $(CFLAGS) \\\n    -std=c99 $(CONTRACT)\n",
        "\\\n    -std=c99 $(CONTRACT) $(CPPFLAGS) $(CFLAGS)\n",
        f"{_BUILDS}make_keeps_its_flags",
    ),
    (
        "a header that has changed",
        "pybuild/package/templates/Makefile.in",
        " -MMD -MP -c",
        " -c",
        f"{_BUILDS}make_knows_what_has_changed",
    ),
    (
        "flags that have changed",
        "pybuild/package/templates/Makefile.in",
        "%.o: %.c $(BUILD)/compiled-with",
        "%.o: %.c",
        f"{_BUILDS}make_compiles_for_other_cores",
    ),
    (
        "the archiver of the compiler",
        "pybuild/package/templates/Makefile.in",
        "-print-prog-name=ar 2",
        "-print-prog-name=as 2",
        f"{_BUILDS}the_archiver_is_the_compilers_or_the_users",
    ),
    (
        "products and sums apart, by CMake",
        "pybuild/package/templates/CMakeLists.txt.in",
        "GNU,Clang,AppleClang,ARMClang>",
        "Intel>",
        f"{_BUILDS}cmake_and_meson_keep_their_flags",
    ),
    (
        "products and sums apart, by Meson",
        "pybuild/package/templates/meson.build.in",
        "get_supported_arguments('-ffp-contract=off')",
        "get_supported_arguments('-ffp-no-such')",
        f"{_BUILDS}cmake_and_meson_keep_their_flags",
    ),
    (
        "an example that is empty where nobody wants it",
        "pybuild/package/templates/main.c.in",
        "#ifdef CRT_WITH_SELFTEST\n",
        "#if 1\n",
        f"{_BUILDS}every_file_beside_a_main_of_the_users",
    ),
    (
        "an example that the user has changed",
        "pybuild/package/folder.py",
        "in (ours, before):",
        "is not None:",
        _KEPT,
    ),
    (
        "an example of ours that nobody has changed",
        "pybuild/package/folder.py",
        "in (ours, before):",
        "== ours:",
        _KEPT,
    ),
    (
        "what is said of an example once",
        "pybuild/package/folder.py",
        "return chosen if ours == before else {",
        "return {",
        _KEPT,
    ),
    (
        "what a board lacks, before anything is built",
        "pybuild/cli/models.py",
        "    boards.must_be_here(args)\n",
        "",
        "tests/installed/test_board_cli.py",
    ),
    (
        "a simulator of both cores",
        "pybuild/boards/device.py",
        "None if both else find_unicorn(board)",
        "find_unicorn(board)",
        "tests/installed/test_board_cli.py",
    ),
    (
        "a macro that compilers have by themselves",
        "pybuild/c_words.py",
        "i386 linux m68k",
        "i386 m68k",
        "tests/emit/test_names.py",
    ),
    (
        "a macro as a tensor's name",
        "pybuild/emit/tables/names.py",
        "return text in WORDS",
        "return text in WORDS and text != 'unix'",
        "tests/emit/test_names.py",
    ),
    (
        "layers one by one",
        "pybuild/host/trace.py",
        "if net.pushed.rows or not all(",
        "if True or not all(",
        "tests/installed/test_cli.py::test_bench",
    ),
    (
        "what it costs to watch layers",
        "pybuild/host/trace.py",
        "np.array(rows) - cost * calls",
        "np.array(rows)",
        "tests/installed/test_host.py::test_layers_take_together_what_a_run_takes",
    ),
    (
        "a cast in what users' C++ compiles",
        "pybuild/emit/c/regions.py",
        'there.get(one, f"sizeof({one})")',
        'there.get(one, f"(uint32_t)sizeof({one})")',
        "tests/package/test_tree_warnings.py",
    ),
)

_PAGE = "tests/html/test_report_page.py"
_SAMPLES = "tests/verify/test_over_samples.py"

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
    (
        "error of a layer beside another scale",
        "pybuild/verify/real_numbers.py",
        "scales = np.asarray(w.scale) * x.scale[0]",
        "scales = np.asarray(w.scale)",
        f"{_SAMPLES}::test_errors_are_those_by_hand",
    ),
    (
        "ReLU by its range as something lost",
        "pybuild/verify/real_numbers.py",
        "(values <= low - step / 2)) if low < 0 else 0",
        "(values <= low - step / 2))",
        f"{_SAMPLES}::test_errors_are_those_by_hand",
    ),
    (
        "errors beside integers that are no real numbers",
        "pybuild/verify/over_samples.py",
        "{name: real(value, graph.tensor(name)) for",
        "{name: value for",
        f"{_SAMPLES}::test_what_is_integers_by_itself",
    ),
    (
        "what checks samples is loaded for every build",
        "pybuild/library.py",
        "        own = given_samples(self, data, labels)\n",
        "        import pybuild.verify.over_samples\n\n"
        "        own = given_samples(self, data, labels)\n",
        "tests/cli/test_manners.py -k nothing_of_another",
    ),
    (
        "a model's memory at another's address",
        "pybuild/package/image_report.py",
        "ImageBlock(piece.name, piece.together.at[one.name],",
        "ImageBlock(piece.name, 0,",
        "tests/html/test_image_page.py::test_shared_weights_are_counted_once",
    ),
    (
        "calls of a kernel without its bands",
        "pybuild/watch/stages.py",
        "sum(row.images * row.bands for row in rows)",
        "sum(row.images for row in rows)",
        "tests/watch/test_stages.py::test_assembly_is_counted",
    ),
    (
        "an axis that is never logarithmic",
        "pybuild/html/sweep.js",
        "Math.max(...values) / least > DECADES",
        "Math.max(...values) / least < 0",
        "tests/html/test_sweep_page.py",
    ),
    (
        "layers that differ and are not told",
        "pybuild/html/comparison.py",
        "        if pair[0] != pair[1]:",
        "        if pair[0] is None or pair[1] is None:",
        "tests/html/test_compare_page.py::test_figures_are_those_of_both_reports",
    ),
    (
        "a block of one instruction too many",
        "pybuild/watch/stages.py",
        "{end - index - 1} instructions",
        "{end - index} instructions",
        "tests/watch/test_stages.py::test_assembly_is_counted",
    ),
    (
        "nodes that passes put in and nobody sees",
        "pybuild/watch/stages.py",
        'if line[:2] in ("- ", "+ ")',
        'if line[:2] in ("- ",)',
        "tests/watch/test_stages.py::test_passes_lead_from_the_file_to_the_final_graph",
    ),
)

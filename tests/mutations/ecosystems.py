"""Mutations of packages for firmware projects, for mutate.py: its five fields."""

_ROOM = "pybuild/ecosystems"
_TESTS = "tests/ecosystems"

ECOSYSTEMS = (
    (
        "the header by which Arduino finds the runtime",
        f"{_ROOM}/packages.py",
        '\'#include "crt.h"\\n#include "crt/\'',
        "'#include \"crt/'",
        f"{_TESTS}/test_arduino.py::test_the_sketch_prints_its_result",
    ),
    (
        "the self-test where nobody gives a macro",
        f"{_ROOM}/templates/crt/crt.h.in",
        "(defined(ARDUINO) || defined(PLATFORMIO)) &&",
        "defined(PLATFORMIO) &&",
        f"{_TESTS}/test_arduino.py::test_the_sketch_prints_its_result",
    ),
    (
        "a component that ESP-IDF asks in a script",
        f"{_ROOM}/templates/crt/CMakeLists.txt.in",
        "if(ESP_PLATFORM OR CMAKE_BUILD_EARLY_EXPANSION)",
        "if(ESP_PLATFORM)",
        f"{_TESTS}/test_esp_idf.py::test_the_example_runs",
    ),
    (
        "one runtime of several networks, in CMake",
        f"{_ROOM}/templates/model/CMakeLists.txt.in",
        "if(NOT TARGET crt::crt AND EXISTS",
        "if(EXISTS",
        f"{_TESTS}/test_cmake.py::test_two_networks_share_one_runtime",
    ),
    (
        "the runtime beside a network, in make",
        f"{_ROOM}/templates/model/name.mk.in",
        "$(@{name}_DIR)/../crt)/crt.mk",
        "$(@{name}_DIR)/crt)/crt.mk",
        f"{_TESTS}/test_make.py::test_two_networks_share_one_runtime",
    ),
    (
        "the runtime that Zephyr's Kconfig brings",
        f"{_ROOM}/templates/model/zephyr-Kconfig.in",
        "\tselect CRT\n",
        "",
        f"{_TESTS}/test_zephyr.py::test_the_sample_runs",
    ),
    (
        "a component that requires the runtime",
        f"{_ROOM}/manifests.py",
        'about, "Model", part, about.description, files, "runtime"',
        'about, "Model", part, about.description, files, ""',
        f"{_TESTS}/test_cmsis_pack.py",
    ),
    (
        "the length of a part of CMSIS-Pack",
        f"{_ROOM}/manifests.py",
        "_CSUB = 32",
        "_CSUB = 64",
        f"{_TESTS}/test_cmsis_pack.py::test_a_long_name_is_a_short_part",
    ),
    (
        "the folder in Arduino's archive",
        f"{_ROOM}/archive.py",
        '_zip(held, f"{name}/")',
        '_zip(held, "")',
        f"{_TESTS}/test_packages.py::test_archives_hold_the_folder",
    ),
    (
        "a newer runtime that is there",
        f"{_ROOM}/write.py",
        "if name != RUNTIME or not _newer(self.out / name, files):",
        "if True:",
        f"{_TESTS}/test_packages.py::test_runtimes_of_other_builds",
    ),
    (
        "a runtime of another ABI",
        f"{_ROOM}/write.py",
        'if force or there is None or there["abi"] == ours["abi"]:',
        "if True:",
        f"{_TESTS}/test_packages.py::test_runtimes_of_other_builds",
    ),
    (
        "exact floats without a flag",
        "crt/include/crt/intrin.h",
        '#pragma GCC optimize("fp-contract=off")',
        "",
        f"{_TESTS}/test_packages.py::test_floats_are_exact_without_a_flag",
    ),
    (
        "names left out by a macro",
        "crt/include/crt/abi.h",
        "#ifdef CRT_NO_NAMES",
        "#ifdef CRT_NO_NAME",
        f"{_TESTS}/test_cmake.py::test_without_hook_and_names",
    ),
)

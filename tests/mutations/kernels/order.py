"""Mutations of what depends on the order of bytes, for mutate.py: its fields."""

_BITS = "tests/evidence/test_byte_order.py::{}"
_CASES = "tests/ops/test_big_endian.py::{}"

ORDER = (
    (
        "a copy to a home that may be none, for the analyser",
        "crt/src/device.c",
        "void *to = crt_place(g, tensor);",
        "void *to = crt_home(g, tensor);",
        "tests/crt/test_analyzer.py::test_nothing_is_found_in_crt",
    ),
    (
        "words that are loaded where the high byte is first",
        "pybuild/emit/c/model.py",
        "moved = any(has_words(func) or has_vectors(func) for func, _ in funcs)",
        "moved = False",
        _CASES.format("test_words_are_refused"),
    ),
    (
        "words that are stored, the high byte first",
        "pybuild/ir/loop_verify.py",
        "return loads or any(isinstance(s, Store) and s.wide for s in every)",
        "return False",
        _CASES.format("test_words_are_refused"),
    ),
    (
        "packed words where the high byte is first",
        "pybuild/plan/buffers/compressed.py",
        "packed.array.itemsize > 1",
        "False",
        _BITS.format("test_what_would_be_wrong_is_refused"),
    ),
    (
        "parameter images where the high byte is first",
        "crt/src/params.c",
        '#include "crt/little.h" /* payloads are used in place */',
        "",
        _BITS.format("test_what_would_be_wrong_is_refused"),
    ),
    (
        "a checksum of words in the other order",
        "crt/include/crt/verify.h",
        "#define CRT_BY_ORDER(little, big) (big)",
        "#define CRT_BY_ORDER(little, big) (little)",
        _BITS.format("test_networks_have_the_bits_of_this_machine"),
    ),
)

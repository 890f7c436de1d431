"""Mutations of NAME_verify, which finds bits that flip in flash, for mutate.py: its
five fields."""

_TEST = "tests/evidence/test_flash.py"

FLASH = (
    (
        "a slice ends before its last byte is compared",
        "crt/src/verify.c",
        "for (i = 0; i < bytes; i++) {",
        "for (i = 1; i < bytes; i++) {",
        _TEST,
    ),
    (
        "checksums are never compared",
        "crt/src/verify.c",
        "return state->crc != sum->crc;",
        "return 0;",
        _TEST,
    ),
    (
        "a damaged list is followed",
        "crt/src/verify.c",
        "if (!is_same(sum, &both->again[v->next], (uint32_t)sizeof *sum)) {",
        "if (both->again == NULL) {",
        _TEST,
    ),
    (
        "weights are left out of the pass",
        "pybuild/emit/tables/sums.py",
        "for c in tables.constants\n",
        "for c in tables.constants[1:]\n",
        _TEST,
    ),
    (
        "an object compares a table with itself",
        "pybuild/emit/llvm/sums.py",
        'copy = f"ptr @{row.symbol}{AGAIN}" if',
        'copy = f"ptr @{row.symbol}" if',
        _TEST,
    ),
)

"""Where evidence would be wrong: tags, what the checker is believed, coverage."""

from __future__ import annotations

_TAGS = "tests/evidence/test_misra.py"

MUTATIONS = [
    (
        "a tag for the next function, too",
        "tests/evidence/misra.py",
        'if lines[at] == "}" or',
        'if lines[at] == "?" or',
        _TAGS,
    ),
    (
        "braces around a body",
        "pybuild/emit/c/braces.py",
        'found.append(f"{pad}}}")\n    return after',
        "return after",
        "tests/golden",
    ),
    (
        "the tag of restrict",
        "pybuild/emit/kernels/misra.py",
        'found.add("8.14")',
        "pass",
        "tests/golden",
    ),
    (
        "a condition that decides nothing",
        "crt/include/crt/slots.h",
        "(tensor->flags & CRT_TENSOR_LAZY) == 0u &&",
        "1 &&",
        "tests/evidence/test_mcdc.py",
    ),
]

"""Mutations of what large models go through, for mutate.py."""

_FILE = "tests/models/test_large_graphs.py"
_CHUNKS = f"{_FILE}::test_chunks_of_weights_make_the_whole"

LARGE = (
    (
        "blocks of channels that are cut in two",
        "pybuild/ops/fixed_point/chunks.py",
        "step = max(1, MOST // max(1, together * each)) * together",
        "step = max(1, MOST // max(1, each))",
        _CHUNKS,
    ),
    (
        "chunks of weights one over the other",
        "pybuild/ops/fixed_point/chunks.py",
        "        at += part.size\n",
        "",
        _CHUNKS,
    ),
)

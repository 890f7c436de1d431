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
    (
        "steps of thousands of channels looked at together",
        "pybuild/kernels/epilogues/staircase.py",
        "for part in chunks(np.arange(count), each):",
        "for part in [np.arange(count)]:",
        "tests/kernels/test_affine.py -k at_a_time",
    ),
    (
        "sums of runs of all channels at once",
        "pybuild/kernels/layers/sums16.py",
        "for w in chunks(kernels, kernels.shape[1]))",
        "for w in [kernels.astype(np.int64)])",
        f"{_FILE}::test_layers_of_any_kind_are_few_times_in_memory",
    ),
)

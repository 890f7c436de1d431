"""Breaks the code in one place at a time; some test must notice each.

python tests/mutate.py [NAME...]: copies the tree, applies a mutation, runs the
tests that watch that place. Exit status 1 if a mutation survives.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from board_mutations import BOARDS  # of the folder of this script
from general_mutations import GENERAL
from paired_mutations import PAIRED
from push_mutations import PUSHED
from quantise_mutations import QUANTISE
from region_mutations import REGIONS
from remote_mutations import REMOTE
from scalar_mutations import SCALAR
from state_mutations import KEPT
from wide_mutations import WIDE

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = (".git", ".venv", "build", "__pycache__", ".*_cache")


@dataclass(frozen=True)
class Mutation:
    """`old` becomes `new`, once, in `file`; `tests` must then fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTATIONS = (
    Mutation(
        "a weight in the C",
        "pybuild/emit/constants_c.py",
        "flat = array.reshape(-1)\n",
        "flat = array.reshape(-1).copy()\n    flat[-1] ^= flat.dtype.kind == 'i'\n",
        "tests/unit/test_generated_c.py",
    ),
    Mutation(
        "a weight in the LLVM IR",
        "pybuild/emit/model_llvm.py",
        "for b in array.tobytes())",
        "for b in array.tobytes()[:-1] + b'\\x07')",
        "tests/installed/test_host.py",
    ),
    Mutation(
        "an object's bond to crt's version",
        "pybuild/emit/obj.py",
        "f'section \".rodata.{name}_model\"'",
        "f'section \".rodata.{name}_abi\"'",
        "tests/objects/test_linked.py",
    ),
    Mutation(
        "the form of the model that a tree no longer holds",
        "pybuild/package/folder.py",
        "            path.unlink()\n        return",
        "            path.exists()\n        return",
        "tests/objects/test_object_file.py",
    ),
    Mutation(
        "a shift",
        "pybuild/kernels/epilogues/requantise.py",
        "shifts = tuple(min(max(-s, 0), 30) for s in bits)",
        "shifts = tuple(min(max(-s, 1), 30) + (s < -6) for s in bits)",
        "tests/installed/test_host.py",
    ),
    Mutation(
        "a tie",
        "pybuild/kernels/epilogues/requantise.py",
        "_PRODUCT + (_HALF - 1)",
        "_PRODUCT + _HALF",
        "tests/unit/test_requant.py",
    ),
    Mutation(
        "a row of padding",
        "pybuild/kernels/layers/weights.py",
        "row = np.full(x.shape[2] * x.shape[3], fill, x.dtype.numpy)",
        "row = np.full(x.shape[2] * x.shape[3], 0, x.dtype.numpy)",
        "tests/installed/test_host.py",
    ),
    Mutation(
        "the column of padding",
        "pybuild/kernels/portable/conv.py",
        'self.x_zero = k.arg("x_zero", layer.x_zero)',
        'self.x_zero = k.arg("x_zero", 0)',
        "tests/installed/test_host.py",
    ),
    Mutation(
        "a ring length",
        "crt/src/run.c",
        "row % r->ring",
        "row % (r->ring + 1u)",
        "tests/crt",
    ),
    Mutation(
        "a use count",
        "pybuild/plan/order.py",
        "now -= _bytes(graph, name)\n    return peak",
        "now -= 0\n    return peak",
        "tests/unit/test_plan.py",
    ),
    Mutation(
        "a wait before the CPU reads what a device writes",
        "pybuild/plan/waits.py",
        "_meet(touch.reads, work.writes)\n        or ",
        "",
        "tests/unit/test_placement.py tests/devices/test_devices.py",
    ),
    Mutation(
        "a lifetime",
        "pybuild/plan/storage.py",
        "touch(name, after)\n    return lives",
        "touch(name, 0)\n    return lives",
        "tests/unit/test_plan.py tests/installed/test_host.py",
    ),
    Mutation(
        "a result in place of a living input",
        "pybuild/plan/storage.py",
        "if life.last == index and",
        "if",
        "tests/unit/test_plan.py",
    ),
    Mutation(
        "an error check in C",
        "crt/src/graph.c",
        "if (regions[i].bytes < model->region_bytes[i])",
        "if (regions[i].bytes + 1u < model->region_bytes[i])",
        "tests/crt",
    ),
    Mutation(
        "the check of a used-up input",
        "crt/src/graph.c",
        "if ((g->fresh[i / 32u] & crt_fresh_bit(i)) == 0)",
        "if (g->fresh == NULL)",
        "tests/crt",
    ),
    Mutation(
        "the number of a parameter without a name",
        "crt/src/weights.c",
        "'0' + number % 10u",
        "'0' + number % 9u",
        "tests/unit/test_names_ids.py",
    ),
    Mutation(
        "an input that predict binds",
        "pybuild/emit/stateless.py",
        "{role}->{row.symbol});",
        "{role}->{rows[0].symbol});",
        "tests/unit/test_stateless.py",
    ),
    Mutation(
        "the order of a function's pointers",
        "pybuild/kernels/base/external.py",
        "[next(last) if name in known else next(order) for",
        "[next(order) for",
        "tests/frontends/test_functions.py",
    ),
    Mutation(
        "a pointer of a C function, in C",
        "pybuild/emit/external.py",
        "q[{i}] = p[{from_}];",
        "q[{i}] = p[{i}];",
        "tests/unit/test_c_functions.py",
    ),
    Mutation(
        "a pointer of a C function, in LLVM IR",
        "pybuild/emit/external.py",
        "%f{i} = getelementptr inbounds ptr, ptr %p, i32 {from_}",
        "%f{i} = getelementptr inbounds ptr, ptr %p, i32 {i}",
        "tests/unit/test_c_functions.py",
    ),
    Mutation(
        "a view that keeps its block of the file in use",
        "pybuild/frontends/graphjson/storage.py",
        "return document.entries[item.first].storage in (shown.storage, FREE)",
        "return document.entries[item.first].storage == shown.storage",
        "tests/unit/test_given_storage.py",
    ),
    Mutation(
        "the size of a block of the file",
        "pybuild/plan/given.py",
        "size = max(known.bytes, group.bytes)",
        "size = group.bytes",
        "tests/unit/test_given_storage.py",
    ),
    Mutation(
        "a block of the file that is still in use",
        "pybuild/plan/given.py",
        "ends.get(number, -2) >= group.first",
        "ends.get(number, -2) > group.first",
        "tests/unit/test_given_storage.py",
    ),
    Mutation(
        "passes on a graph that gives storage",
        "pybuild/passes/__init__.py",
        "AS_GIVEN if graph.storage or graph.is_placed else PIPELINE",
        "PIPELINE",
        "tests/unit/test_given_storage.py",
    ),
    Mutation(
        "flattened arguments",
        "pybuild/ops/function.py",
        'shape=(tensor.size,)) if node.attrs["flat"] else tensor',
        "shape=tensor.shape)",
        "tests/frontends/test_functions.py",
    ),
    Mutation(
        "a call that is computed ahead",
        "pybuild/passes/fold.py",
        'stays = node.op == CALL or node.attrs.get("simulated")',
        'stays = node.attrs.get("simulated")',
        "tests/frontends/test_functions.py",
    ),
    Mutation(
        "a constant shared by its bytes alone",
        "pybuild/emit/tables.py",
        "hashlib.sha256(raw.data).digest()",
        "array.tobytes()[:8]",
        "tests/installed/test_several_models.py",
    ),
    Mutation(
        "a kernel shared by its name",
        "pybuild/emit/pool.py",
        'key = replace(func, name="")',
        'key = replace(func, name="", body=())',
        "tests/installed/test_several_models.py",
    ),
    Mutation(
        "the buffer of a connection",
        "pybuild/plan/together.py",
        "        places.append(top)\n",
        "        places.append(top - 16)\n",
        "tests/unit/test_several_models_c.py",
    ),
    Mutation(
        "the largest model of a group",
        "pybuild/plan/together.py",
        "max(arenas[member] for member in group)",
        "min(arenas[member] for member in group)",
        "tests/installed/test_several_models.py",
    ),
    Mutation(
        "the turns of an image",
        "pybuild/emit/image_c.py",
        "    if turn is None:\n        return init",
        "    if turn is None or turn >= 0:\n        return init",
        "tests/unit/test_several_models_c.py",
    ),
    Mutation(
        "the quantisation of a connection",
        "pybuild/plan/connect.py",
        "return tensor.dtype, tensor.shape, tensor.quant",
        "return tensor.dtype, tensor.shape",
        "tests/installed/test_several_models.py",
    ),
    Mutation(
        "the overflow proof",
        "pybuild/ops/conv.py",
        "if bool((reach >= _INT32).any()):",
        "if bool((reach >= _INT32 * 4).any()):",
        "tests/ops tests/unit",
    ),
    Mutation(
        "the use count of an image that is replaced",
        "crt/src/weights.c",
        "before->users--;",
        "(void)before;",
        "tests/crt/test_crt.py::test_calls[test_weights.c-gcc-]",
    ),
    Mutation(
        "the check of a layout",
        "crt/src/weights.c",
        "found->layout != g->model->layouts[index]",
        "g->model->layouts == NULL",
        "tests/crt/test_crt.py::test_calls[test_weights.c-gcc-]",
    ),
    Mutation(
        "the check of content",
        "crt/src/weights.c",
        "want != 0 && have != 0 && want != have",
        "want != want + have * 0",
        "tests/crt/test_crt.py::test_calls[test_weights.c-gcc-]",
    ),
    Mutation(
        "a sharer in the home of the donor",
        "crt/src/weights.c",
        "        there = theirs.data;",
        "        there = *slot_of(donor, donor_index);",
        "tests/crt/test_crt.py::test_calls[test_weights.c-gcc-]",
    ),
    Mutation(
        "the flag of shared storage",
        "crt/src/graph.c",
        "    if (g->turn != NULL && crt_raise_flag(&g->turn->running))\n"
        "        return CRT_ERR_BUSY;\n",
        "",
        "tests/crt/test_crt.py::test_calls[test_binding.c-gcc-]",
    ),
    Mutation(
        "whose results lie in shared storage",
        "crt/src/graph.c",
        "error = CRT_ERR_NO_OUTPUT;\n    else if",
        "error = CRT_OK;\n    else if",
        "tests/crt/test_crt.py::test_calls[test_binding.c-gcc-]",
    ),
    Mutation(
        "the atomic flag",
        "crt/include/crt/port.h",
        "return __atomic_exchange_n(flag, 1u, __ATOMIC_ACQUIRE) != 0;",
        "uint32_t was = *flag;\n\n    *flag = 1;\n    return was != 0;",
        "tests/crt/test_crt.py::test_instances_run_at_the_same_time",
    ),
    Mutation(
        "the check of a lazy input",
        "crt/src/graph.c",
        "if ((tensor->flags & CRT_TENSOR_LAZY) != 0)\n        return CRT_ERR_LAZY;",
        "",
        "tests/crt/test_crt.py::test_calls[test_binding.c-gcc-]",
    ),
    Mutation(
        "the wait after a run",
        "crt/src/run.c",
        "late = g->model->accelerator->wait(g);",
        "late = CRT_OK;",
        "tests/crt/test_crt.py::test_calls[test_devices.c-gcc-]",
    ),
    Mutation(
        "the wait after a copy to a device",
        "crt/src/device.c",
        "to, from, tensor->bytes) != 0 ||\n"
        "                  d->api->wait(d->context) != 0);\n}\n\nstatic int copy_out",
        "to, from, tensor->bytes) != 0);\n}\n\nstatic int copy_out",
        "tests/crt/test_crt.py::test_calls[test_devices.c-gcc-]",
    ),
    *(
        Mutation(*words)
        for words in (
            *BOARDS,
            *GENERAL,
            *PAIRED,
            *PUSHED,
            *QUANTISE,
            *REGIONS,
            *REMOTE,
            *SCALAR,
            *WIDE,
            *KEPT,
        )
    ),
)


def passes(tests: str, mutation: Mutation | None = None) -> bool:
    """Whether the tests pass in a copy of the tree, mutated or as it is."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        tree = Path(temporary) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        if mutation is not None:
            _apply(mutation, tree / mutation.file)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        done = subprocess.run([*command, *tests.split()], cwd=tree, capture_output=True)
        return done.returncode == 0


def _apply(mutation: Mutation, file: Path) -> None:
    text = file.read_text()
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.name}: its place in {mutation.file} is gone")
    file.write_text(text.replace(mutation.old, mutation.new))


def main(names: list[str]) -> int:
    chosen = [m for m in MUTATIONS if not names or m.name in names]
    watching = sorted({test for m in chosen for test in m.tests.split()})
    if not passes(" ".join(watching)):
        print("the tests fail without a mutation: nothing can be said")
        return 1
    left = 0
    for mutation in chosen:
        alive = passes(mutation.tests, mutation)
        left += alive
        print(f"{'SURVIVED' if alive else 'caught  '}  {mutation.name}", flush=True)
    print(f"{len(chosen) - left} passed, {left} failed")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Programs as torch.export saves them, without torch: what they compute is what torch
computed, int8 what PT2E's nodes mean. Made by tests/exported/export_pt2.py.
"""

from __future__ import annotations

import importlib.util
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.frontends.torch import converted
from pybuild.frontends.torch.reader.archive import read
from pybuild.frontends.torch.reader.program import Call, Program, Ref
from pybuild.ops.interpret import interpret
from pybuild.verify.standard import standard
from tests.toolchains import require_module

FOLDER = Path(__file__).resolve().parents[2] / "exported"
FILES = {path.stem: path for path in sorted((FOLDER / "pt2").glob("*.pt2"))}
FLOAT = [name for name in FILES if not name.endswith("_int8")]
WHOLE = [name for name in FILES if name.endswith("_int8")]
OPEN = {"ds_cnn": {"s31": 1}}
# built and run, too: of every kind one
BUILT = (
    "mobilenetv3",
    "u_net_bilinear",
    "lstm",
    "bert",
    "mobilenetv2_int8",
    "tcn_int8",
)


@pytest.fixture(scope="module")
def arrays() -> Any:
    return np.load(FOLDER / "pt2.npz")


def given(arrays: Any, name: str, run: int, side: str) -> list[np.ndarray]:
    keys = [key for key in arrays.files if key.startswith(f"{name}.{run}.{side}")]
    return [arrays[key] for key in sorted(keys)]


def model(name: str) -> pybuild.Model:
    return pybuild.load(FILES[name], input_dims=OPEN.get(name, {}))


def results(made: pybuild.Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    graph = made.lower()
    found = interpret(graph, dict(zip(graph.inputs, inputs, strict=True)))
    return [found[name] for name in graph.outputs]


@pytest.mark.parametrize("name", FLOAT)
def test_float(name: str, arrays: Any) -> None:
    """Within 1e-5 of the range of what torch computed."""
    made = model(name)
    want = given(arrays, name, 0, "y")
    for have, wanted in zip(
        results(made, given(arrays, name, 0, "x")), want, strict=True
    ):
        assert have.shape == wanted.shape
        assert abs(have - wanted).max() <= 1e-5 * np.ptp(wanted)


def _scales(program: Program, ref: Any) -> np.ndarray | None:
    maker = next((c for c in program.calls if ref.name in c.outputs), None)
    if maker is None or ".dequantize_per_" not in maker.target:
        return None
    scale = maker.get("scale", maker.get("scales"))
    return program.weights[scale.name] if isinstance(scale, Ref) else np.asarray(scale)


def whole_biases(program: Program) -> Program:
    """Biases as PT2E's reference representation has them, and XNNPACK: int32 of scale
    x * weight.
    """
    weights = dict(program.weights)
    for call in program.calls:
        bias = call.get("bias")
        if not isinstance(bias, Ref) or _scales(program, bias) is not None:
            continue  # none, or int32 already
        scales = [_scales(program, call.get(name)) for name in ("input", "weight")]
        if None in [s if s is None else 0 for s in scales]:
            continue
        scale = np.float64(scales[0]) * np.float64(scales[1])
        name = bias.name
        steps = np.rint(weights[name].astype(np.float64) / scale)
        weights[name] = (steps * scale).astype(np.float32)
    return replace(program, weights=weights)


@pytest.mark.parametrize("name", WHOLE)
def test_int8(name: str, arrays: Any, tmp_path: Path) -> None:
    """Equal by the bit to the program's own nodes in float64 with biases of int32; with
    its biases as they are, real numbers, these nodes are what torch computes.
    """
    made, inputs = model(name), given(arrays, name, 0, "x")
    have = results(made, inputs)
    program = read(name, FILES[name].read_bytes(), {})
    fair, real = (
        standard_of_program(tmp_path, one, inputs)
        for one in (whole_biases(program), program)
    )
    for number, theirs in enumerate(given(arrays, name, 0, "y")):
        np.testing.assert_allclose(have[number], fair[number], 1e-5, 1e-6)
        far = abs(real[number] - theirs)
        assert far.max() <= 0.01 * np.ptp(theirs)
        assert (far > 1e-5 * np.ptp(theirs)).mean() <= 0.03


def standard_of(folder: Path, path: Path, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """As standard_of_program, of a file."""
    return standard_of_program(folder, read(path.stem, path.read_bytes(), {}), inputs)


def standard_of_program(
    folder: Path, program: Program, inputs: list[np.ndarray]
) -> list[np.ndarray]:
    """The outputs by the program's nodes in float64."""
    onnx.save(converted(program)[0], folder / "net.onnx")
    run = standard(folder / "net.onnx", program.outputs)
    found = run(dict(zip(program.inputs, inputs, strict=True)))
    return [found[name] for name in program.outputs]


@pytest.mark.parametrize("name", BUILT)
def test_built(name: str, arrays: Any) -> None:
    made, inputs = model(name), given(arrays, name, 0, "x")
    net = made.build().host("llvm")
    found = net.run(**dict(zip(made.graph.inputs, inputs, strict=True)))
    net.close()
    for have, want in zip(found.values(), given(arrays, name, 0, "y"), strict=True):
        assert abs(have - want).max() <= 1e-5 * np.ptp(want)


def test_buffers_are_state(arrays: Any) -> None:
    """Keys and values of the tokens before are there in the next run."""
    made = model("gpt_cached")
    assert sorted(made.graph.state) == ["b_keys", "b_values"]
    assert made.graph.inputs == ("token",)
    net = made.build().host("llvm")
    for run in range(3):
        [token] = given(arrays, "gpt_cached", run, "x")
        [have] = net.run(token=token).values()
        [want] = given(arrays, "gpt_cached", run, "y")
        assert abs(have - want).max() <= 1e-5 * np.ptp(want)
    net.close()


def test_the_command_builds_it(tmp_path: Path, capsys: Any) -> None:
    from pybuild.cli import main

    assert main(["build", str(FILES["tcn_int8"]), "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "src").is_dir() or list((tmp_path / "out").iterdir())
    assert main(["check", str(FILES["tcn_int8"]), "--backend", "llvm"]) == 0
    assert "equal" in capsys.readouterr().out


def test_an_open_batch_is_asked_for() -> None:
    with pytest.raises(BuildError) as caught:
        pybuild.load(FILES["ds_cnn"])
    said = "ds_cnn.pt2: axis 0 of input 'input' is open: 's31'. Hint: --input-dim "
    assert str(caught.value) == said + "input.0=1"
    with pytest.raises(BuildError, match=r"names of Dim; open are input\.0 \(s31\)"):
        pybuild.load(FILES["ds_cnn"], input_dims={"batch": 1})
    with pytest.raises(BuildError, match="there is no dimension 'n'"):
        pybuild.load(FILES["tcn"], input_dims={"n": 1})
    for name in ("s31", "input.0"):
        graph = pybuild.load(FILES["ds_cnn"], input_dims={name: 3}).graph
        assert graph.tensor("input").shape == (3, 1, 25, 10)


# ---- what is refused ------------------------------------------------------------


def changed(name: str, change: Any) -> bytes:
    """A file whose program was changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(FILES[name]) as given, zipfile.ZipFile(made, "w") as kept:
        for one in given.namelist():
            data = given.read(one)
            if "/models/" in one:
                document = json.loads(data)
                change(document["graph_module"])
                data = json.dumps(document).encode()
            kept.writestr(one, data)
    return made.getvalue()


def refused(name: str, change: Any) -> str:
    with pytest.raises(BuildError) as caught:
        pybuild.load(changed(name, change))
    return str(caught.value)


def test_an_unknown_operator_is_named() -> None:
    def change(module: Any) -> None:
        for node in module["graph"]["nodes"][:2]:
            node["target"] = "torch.ops.aten.strange.default"

    said = refused("tcn", change)
    assert said.count("the operator aten.strange is not supported") == 2
    assert "model.pt2: node 'pad' (aten.strange.default)" in said


def test_a_transform_of_complex_numbers_has_a_hint() -> None:
    def change(module: Any) -> None:
        module["graph"]["nodes"][0]["target"] = "torch.ops.aten.stft.default"

    assert "torch.onnx.export(..., dynamo=True)" in refused("tcn", change)


@pytest.mark.parametrize(
    ("operator", "made"),
    [("relu_copy", None), ("exp_", ["map"]), ("log10", ["map", "mul"])],
)
def test_operators_in_other_forms(
    operator: str, made: list[str] | None, arrays: Any
) -> None:
    """In place, or no view, they mean what the plain ones do."""

    def change(module: Any) -> None:
        node = next(n for n in module["graph"]["nodes"] if "aten.relu" in n["target"])
        node["target"] = f"torch.ops.aten.{operator}.default"

    graph = pybuild.load(changed("autoencoder", change)).lower()
    if made is None:
        assert graph.nodes == model("autoencoder").lower().nodes
        return
    assert [n.op for n in graph.nodes[1 : 1 + len(made)]] == made
    x = abs(given(arrays, "autoencoder", 0, "x")[0])
    values = interpret(graph, {graph.inputs[0]: x})
    before, after = (values[graph.nodes[i].output] for i in (0, len(made)))
    with np.errstate(invalid="ignore"):
        meant = np.exp(before) if operator == "exp_" else np.log10(before)
    np.testing.assert_allclose(after, meant, 1e-5, 1e-6)


def _inside(module: Any, kind: str, *before: Any) -> None:
    """The first relu in a graph of its own, as under torch.no_grad, whose names are
    those of other tensors outside.
    """
    graph = module["graph"]
    node = next(n for n in graph["nodes"] if "aten.relu" in n["target"])
    values, x = graph["tensor_values"], node["inputs"][0]["arg"]
    result, other = node["outputs"][0], graph["nodes"][0]["outputs"][0]
    a, b = x["as_tensor"]["name"], result["as_tensor"]["name"]
    first = {**node, "outputs": [other], "name": b}
    second = {**node, "inputs": [{**node["inputs"][0], "arg": other}]}
    within = other["as_tensor"]["name"]
    part = {
        "inputs": [x], "outputs": [result], "nodes": [first, second],
        "tensor_values": {name: values[b] for name in (a, b, within)},
    }  # fmt: skip
    args = [*before, {"as_graph": {"name": "part", "graph": part}}, x]
    graph["nodes"][graph["nodes"].index(node)] = {
        "target": f"torch.ops.higher_order.{kind}", "name": "wrapped",
        "inputs": [{"name": "", "arg": arg, "kind": 1} for arg in args],
        "outputs": [result], "metadata": {},
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["wrap_with_autocast", "wrap_with_set_grad_enabled"])
def test_a_part_with_a_graph_of_its_own_is_opened(kind: str, arrays: Any) -> None:
    """LLaMA's places are made under autocast(enabled=False)."""
    no = {"as_bool": False}
    cpu = [{"as_string": "cpu"}, {"as_scalar_type": 13}, no, no]
    before = cpu if "autocast" in kind else [no]
    data = changed("autoencoder", lambda module: _inside(module, kind, *before))
    inputs = given(arrays, "autoencoder", 0, "x")
    have, want = (
        results(pybuild.load(one), inputs)
        for one in (data, FILES["autoencoder"].read_bytes())
    )
    assert (have[0] == want[0]).all()


def test_types_that_autocast_chooses_are_refused() -> None:
    yes = {"as_bool": True}
    before = [{"as_string": "cpu"}, {"as_scalar_type": 13}, yes, yes]
    said = refused(
        "autoencoder", lambda module: _inside(module, "wrap_with_autocast", *before)
    )
    what = "(autocast): its types are chosen when it runs. Hint: export without"
    assert what in said


def test_damage_is_an_error() -> None:
    def no_nodes(module: Any) -> None:
        del module["graph"]["nodes"][0]["inputs"]

    def other_sizes(module: Any) -> None:
        module["graph"]["tensor_values"]["x"]["sizes"] = 7

    for change in (no_nodes, other_sizes, dict.clear):
        assert "is not a valid .pt2 file" in refused("tcn", change)


def test_weights_that_are_too_short_are_an_error() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(FILES["tcn"]) as given, zipfile.ZipFile(made, "w") as kept:
        for one in given.namelist():
            data = given.read(one)
            kept.writestr(one, data[:-4] if one.endswith("weight_0") else data)
    with pytest.raises(BuildError, match="do not fit its shape"):
        pybuild.load(made.getvalue())


def test_a_view_that_is_changed_in_place_is_refused() -> None:
    def change(module: Any) -> None:
        nodes = module["graph"]["nodes"]
        at = next(i for i, n in enumerate(nodes) if "relu" in n["target"])
        nodes[at]["target"] = "torch.ops.aten.relu_.default"
        nodes[at - 1]["target"] = "torch.ops.aten.expand.default"

    assert "run_decompositions({})" in refused("tcn", change)


def test_a_call_says_what_it_lacks() -> None:
    call = Call("aten.relu.default", "r", {}, ("r",), "m: node 'r'")
    with pytest.raises(BuildError, match="m: node 'r': has no tensor 'self'"):
        call.tensor("self")


# ---- with torch -----------------------------------------------------------------


def test_a_program_in_memory() -> None:
    """pybuild.load(torch.export.export(...)): also with what is done in place."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch: pip install pybuild-crt[exporters]")
    require_module("torch")
    import torch
    from torch import nn

    class Count(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: Any) -> Any:
            self.total[1:].add_(x[0, 1:])
            return torch.relu_(x + 1) + self.total

    exported = torch.export.export(Count().eval(), (torch.zeros(1, 4),))
    x = np.asarray([[1, -2, 3, -4]], np.float32)
    net = pybuild.load(exported).build().host("llvm")
    for run in (1, 2):
        [have] = net.run(x=x).values()
        total = run * x[0] * np.asarray([0, 1, 1, 1], np.float32)
        assert (have == np.maximum(x + 1, 0) + total).all()
    net.close()

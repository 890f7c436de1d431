"""`crt params`: what it writes, lists and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.params.blob import read_blob, write_blob
from pybuild.params.image_read import read_image

Capture = pytest.CaptureFixture[str]
ARRAYS = {
    "conv/w": np.arange(64, dtype=np.int8).reshape(4, 16),
    "mask": np.zeros((2, 500), np.int8),
    "bias": np.ones(4, np.float32),
}


@pytest.fixture
def blob(tmp_path: Path) -> Path:
    path = tmp_path / "net.params"
    path.write_bytes(write_blob(ARRAYS))
    return path


def crt(capture: Capture, *words: object) -> tuple[int, dict[str, Any], str]:
    code = main(["params", *map(str, words), "--json"])
    out, err = capture.readouterr()
    return code, json.loads(out), err


def test_pack_compresses_and_lists_what_it_saved(
    blob: Path, tmp_path: Path, capsys: Capture
) -> None:
    image = tmp_path / "made" / "net.crtp"
    words = ("pack", blob, "-o", image, "--compress", "lz4", "--align", "64")
    code, facts, err = crt(capsys, *words)
    assert (code, err) == (0, "")
    assert facts == crt(capsys, "list", image)[1]
    assert facts["kind"] == "image" and facts["align"] == 64
    mask = next(p for p in facts["parameters"] if p["name"] == "mask")
    assert mask["codec"] == "lz4" and mask["bytes"] == 1000 and mask["stored"] < 30
    assert all(p["at"] % 64 == 0 for p in facts["parameters"])
    assert np.array_equal(read_image(image.read_bytes()).value("mask"), ARRAYS["mask"])
    assert [p.name for p in image.parent.iterdir()] == ["net.crtp"]


def test_tables(blob: Path, tmp_path: Path, capsys: Capture) -> None:
    image = tmp_path / "net.crtp"
    assert (
        main(["params", "pack", str(blob), "-o", str(image), "--compress", "lz4"]) == 0
    )
    shown = capsys.readouterr().out
    assert (
        "1,000   14 lz4   98.6 %" in shown
        and "int8[2,500]" in shown
        and "wrote " in shown
    )
    assert main(["params", "list", str(blob)]) == 0
    shown = capsys.readouterr().out
    assert "net.params: blob" in shown and "3 parameters, 1,080 bytes; file" in shown
    assert main(["params", "verify", str(image)]) == 0
    assert capsys.readouterr().out == "net.crtp: 3 parameters, nothing wrong (image)\n"


def test_convert_goes_round(blob: Path, tmp_path: Path, capsys: Capture) -> None:
    names = ["a.crtp", "b.npz", "c.params", "d.npz"]
    before = blob
    for name in names:
        assert crt(capsys, "convert", before, "-o", tmp_path / name)[0] == 0
        before = tmp_path / name
    assert (tmp_path / "c.params").read_bytes() == blob.read_bytes()
    assert (tmp_path / "b.npz").read_bytes() == (tmp_path / "d.npz").read_bytes()
    with np.load(tmp_path / "b.npz") as archive:
        assert np.array_equal(archive["conv/w"], ARRAYS["conv/w"])
    np.savez_compressed(tmp_path / "by_numpy.npz", **ARRAYS)
    code, facts, _ = crt(
        capsys, "convert", tmp_path / "by_numpy.npz", "-o", tmp_path / "e.params"
    )
    assert code == 0 and facts["kind"] == "blob"
    assert sorted(read_blob((tmp_path / "e.params").read_bytes())) == sorted(ARRAYS)


def test_verify_says_what_is_damaged(
    blob: Path, tmp_path: Path, capsys: Capture
) -> None:
    image = tmp_path / "net.crtp"
    crt(capsys, "pack", blob, "-o", image)
    data = image.read_bytes()
    image.write_bytes(data[:-1] + b"\xff")
    code, facts, err = crt(capsys, "verify", image)
    assert code == 2
    assert err == "net.crtp: is damaged: its checksum does not fit\n"
    assert facts["error"][0]["where"] == "net.crtp"
    image.write_bytes(data[:-1])
    assert crt(capsys, "verify", image)[0] == 2
    blob.write_bytes(blob.read_bytes()[:-1])
    assert "ends in array 'mask'" in crt(capsys, "verify", blob)[2]
    (tmp_path / "z.npz").write_bytes(b"PK\3\4" + b"?" * 50)
    assert "z.npz: is a damaged .npz file" in crt(capsys, "list", tmp_path / "z.npz")[2]


def test_what_is_refused(blob: Path, tmp_path: Path, capsys: Capture) -> None:
    code, _, err = crt(capsys, "pack", blob, "-o", tmp_path / "net.params2")
    assert code == 64 and "net.params2: is not a name of an image (.crtp)" in err
    code, _, err = crt(capsys, "convert", blob, "-o", tmp_path / "net.bin")
    assert code == 64 and "net.bin: is not a name of a parameter file" in err
    code, _, err = crt(capsys, "pack", blob, "-o", tmp_path / "n.crtp", "--align", "3")
    assert code == 2 and "cannot be aligned to 3 bytes" in err
    (tmp_path / "text.params").write_text("hello")
    assert "holds no parameters" in crt(capsys, "list", tmp_path / "text.params")[2]
    assert crt(capsys, "list", tmp_path / "absent.params")[0] == 2
    np.savez(tmp_path / "c.npz", h=np.zeros(2, np.complex64))
    code, _, err = crt(capsys, "pack", tmp_path / "c.npz", "-o", tmp_path / "n.crtp")
    assert code == 2 and "parameter 'h': no tensor has the type complex64" in err
    assert not (tmp_path / "n.crtp").exists()


@pytest.mark.parametrize("words", [[], ["fly"], ["pack", "x"], ["list"]])
def test_usage(words: list[str], capsys: Capture) -> None:
    assert main(["params", *words]) == 64
    assert capsys.readouterr().err.startswith("crt params")


def test_pack_arranges_for_a_model(tmp_path: Path, capsys: Capture) -> None:
    """What crt accepts for that model, and only then; other weights as it has them."""
    from pybuild.frontends import graphjson
    from pybuild.host.abi import CrtError
    from pybuild.host.parameter_image import Weights
    from tests.graphs.networks import classifier

    network = classifier()
    model = network.model()
    text, params = graphjson.dump(network.graph())
    path = tmp_path / "tiny.json"
    path.write_text(text)
    path.with_suffix(".params").write_bytes(params)
    new = {
        "logits/b": np.arange(5, dtype=np.int32) * 1000,
        "unknown": np.zeros(3, np.float32),
    }
    np.savez(tmp_path / "new.npz", **new)
    image = tmp_path / "new.crtp"
    words = ("pack", tmp_path / "new.npz", "-o", image, "--model", path)
    assert crt(capsys, *words)[0] == 0
    library = model.build(params="replaceable")
    assert image.read_bytes() == library.image({"logits/b": new["logits/b"]})
    net = library.instance()
    net.load_params(Weights.read(image))
    assert crt(capsys, *words[:-2])[0] == 0
    with pytest.raises(CrtError, match="CRT_ERR_LAYOUT"):
        net.load_params(Weights.read(image))


def test_pack_for_a_model_that_was_built_with_options(
    tmp_path: Path, capsys: Capture
) -> None:
    from tests.failing.bad import DIGITS

    model = DIGITS / "digits_f32.onnx"
    new = {"conv_b": np.arange(8, dtype=np.float32)}
    np.savez(tmp_path / "new.npz", **new)
    image = tmp_path / "new.crtp"
    words = ("pack", tmp_path / "new.npz", "-o", image, "--model", model)
    more = ("--params", "replaceable", "--names", "ids", "--layout", "image=nhwc")
    assert crt(capsys, *words, *more)[0] == 0
    library = pybuild.load(model).build(
        params="replaceable", names="ids", layout={"image": "nhwc"}
    )
    assert image.read_bytes() == library.image(new) != library.image()


def test_pack_for_a_model_needs_one_of_its_parameters(
    blob: Path, tmp_path: Path, capsys: Capture
) -> None:
    from tests.failing.bad import DIGITS

    model = DIGITS / "digits_f32.onnx"
    words = ("pack", blob, "-o", tmp_path / "x.crtp", "--model", model)
    code, _, err = crt(capsys, *words)
    assert code == 2 and "net.params: has no parameter of digits_f32.onnx" in err
    assert not (tmp_path / "x.crtp").exists()

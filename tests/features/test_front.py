"""--front FRONT.toml: features and decisions of a file around the model of a file, by
every verb; what is wrong in it is told, all at once.

"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.features import Decision, log_mel, micro_frontend
from pybuild.front import read_front
from pybuild.frontends import graphjson
from pybuild.ir.graph import Graph
from tests.features.nets import BANDS, PLAIN, conv_net, sound

FRONT = f"""
every = 2
stream = true

[features]
window = 128
hop = 80
bands = {BANDS}
subtract_noise = false
gain = false

[decision]
smooth = 3
threshold = 0.45
ignore = [0]
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    net, front = tmp_path / "net.json", tmp_path / "front.toml"
    text, weights = graphjson.dump(conv_net(16))
    net.write_text(text)
    net.with_suffix(".params").write_bytes(weights)
    front.write_text(FRONT)
    return str(net), str(front)


def test_a_file_says_what_python_says(files: tuple[str, str]) -> None:
    model = pybuild.load(files[0], front=files[1])
    mel = log_mel(window=128, hop=80, bands=BANDS, **PLAIN)
    decision = Decision(smooth=3, threshold=0.45, ignore=(0,))
    chain = pybuild.chain(mel, files[0], decision, every=2, stream=True)
    pcm, net = sound(1600), model.build().host()
    assert net.push_samples(pcm) == 10
    for name, rows in chain(pcm).items():
        np.testing.assert_array_equal(net.get_output(name), rows[-1])


def test_joined_paths_and_json_say_the_same(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, front = files
    wanted = pybuild.load(net, front=front).graph.dump()
    as_json = tmp_path / "front.json"
    as_json.write_text(json.dumps(tomllib.loads(FRONT)))
    assert pybuild.load(f"{front}+{net}").graph.dump() == wanted
    assert pybuild.load(f"{as_json}+{net}").graph.dump() == wanted
    made = []
    for name, words in (("a", [f"{front}+{net}"]), ("b", [net, "--front", front])):
        out = tmp_path / name
        assert main(["build", *words, "-o", str(out)]) == 0
        made.append((out / "net.c").read_bytes())
    assert made[0] == made[1] and b"push_samples" in made[0]
    other = tmp_path / "plain.json"
    for path in (Path(net), Path(net).with_suffix(".params")):
        other.with_suffix(path.suffix).write_bytes(path.read_bytes())
    out = tmp_path / "two"
    assert main(["build", f"{front}+{net}", str(other), "-o", str(out)]) == 0
    assert "push_samples" in (out / "net.h").read_text()
    assert "push_samples" not in (out / "plain.h").read_text()
    capsys.readouterr()
    assert main(["build", f"{front}+{net}", "--front", front]) == 64
    assert "both say what stands before the model" in capsys.readouterr().err


def test_a_net_whose_name_has_a_plus(tmp_path: Path) -> None:
    text, weights = graphjson.dump(conv_net(16))
    (tmp_path / "a.json+b.json").write_text(text)
    (tmp_path / "a.json+b.params").write_bytes(weights)
    assert pybuild.load(str(tmp_path / "a.json+b.json")).graph.sampled == ""


def test_every_verb_takes_it(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, front = files
    out = tmp_path / "made"
    assert main(["build", net, "--front", front, "-o", str(out)]) == 0
    assert "int net_push_samples(struct net *m," in (out / "net.h").read_text()
    capsys.readouterr()
    check = ["check", net, "--front", front, "--samples", "3", "--backend", "llvm"]
    assert main([*check, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] and said["reference"].startswith("numpy")
    assert main(["inspect", net, "--front", front]) == 0
    assert "samples" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[feature]\n", "there is no 'feature'. Hint: did you mean 'features'?"),
        ("every = -1\nstream = 3\n", "every is -1. Hint: so many rows"),
        ("[features]\nkind = 'mel'\n", "there is no kind 'mel'. Hint: "),
        ("[features]\nbans = 3\n[decision]\nsmoth = 1\n", "there is no 'smoth'"),
        ("[features]\nbands = 0\n", "0 bands, not from 1 to 256"),
        ("[features]\nbands = 'x'\n", "front.toml: [features]: "),
        ("features = 3\n", "[features] and [decision] are tables"),
        ("= 3\n", "front.toml:1: invalid statement"),
    ],
)
def test_what_is_wrong_is_told(text: str, what: str, tmp_path: Path) -> None:
    front = tmp_path / "front.toml"
    front.write_text(text)
    with pytest.raises(BuildError) as error:
        read_front(front)
    assert what in str(error.value)


def test_a_kind_alone_is_a_front() -> None:
    """Its features as they are by default; a kind that is not there gets a hint."""
    front = read_front("micro_frontend")
    assert front.decision is None and not front.stream
    assert isinstance(front.features, Graph)
    made = micro_frontend().graph
    assert front.features.dump() == made.dump()
    with pytest.raises(BuildError, match=r"cannot be read.*Hint: .*micro_frontend"):
        read_front("microfrontend")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"--front no.toml: cannot be read \(No such"):
        read_front(tmp_path / "no.toml")


@pytest.mark.parametrize("text", ["{", "[]", "[" * 9999])
def test_a_json_that_is_none(text: str, tmp_path: Path) -> None:
    front = tmp_path / "front.json"
    front.write_text(text)
    with pytest.raises(
        BuildError,
        match=r"--front front.json(:1)?: is (not JSON|not a table|nested too deep)",
    ):
        read_front(front)

"""`nearid lipschitz` as a user types it: table, JSON, report; a sentence for bad input."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from nearid import lipschitz
from nearid.cli.commands import app
from nearid.questions.extract.weights import BurgessDecoder

FACTORY = """
import torch
from torch import nn
def decoder():
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 5))
def ready():
    return torch.sinh
def hidden():
    module = decoder()
    return lambda z: module(z)
def wanting(width):
    return nn.Linear(width, 2)
def broken():
    raise FileNotFoundError("there are no weights\\nat all.")
"""


@pytest.fixture
def files(tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 5))
    torch.save(module.state_dict(), tmp_path / "decoder.pt")
    torch.save(BurgessDecoder(2).state_dict(), tmp_path / "known.pt")
    (tmp_path / "my_cli_decoders.py").write_text(FACTORY)
    (tmp_path / "my_cli_mistake.py").write_text("def decoder(:")
    z = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    np.savez(tmp_path / "z.npz", z=z, other=z[:, :2])
    return module, z


def test_json_alone_on_stdout_and_a_report(nearid, files, tmp_path):
    module, z = files
    done = nearid(
        "lipschitz", "decoder.pt", "z.npz", "--key", "z", "--factory", "my_cli_decoders:decoder", "--points", "40",
        "--directions", "5", "--constant", "2", "--seed", "3", "--json", "--report", "out.html",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    direct = lipschitz(module, z, points=40, directions=5, constant=2.0, random_state=3).to_dict()
    np.testing.assert_allclose(told["sampled"]["values"], direct["sampled"]["values"], rtol=1e-5)
    assert told["scaled_bound"]["constant"] == 2 and told["name"] == "decoder.pt" and told["n"] == 40
    assert "Report written to out.html" in done.stderr and "Singular values" in (tmp_path / "out.html").read_text(
        "utf-8"
    )


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Call the command in this process, where torch is loaded already; gives what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments):
        app(["lipschitz", *arguments], standalone_mode=False)
        told = capsys.readouterr()
        assert told.err == ""
        return told.out

    return call


def test_a_table_of_a_known_decoder_at_draws(run, files):
    told = run("known.pt", "--normal", "20")
    assert "20 points, 2 latents" in " ".join(told.split()) and "Theorem 1" in told
    assert max(map(len, told.splitlines())) <= 80


def test_a_factory_alone(run, files):
    told = json.loads(run("my_cli_decoders:ready", "--normal", "1500", "--width", "4", "--no-exact", "--json"))
    assert (told["n"], told["latents"], told["exact"]) == (1500, 4, None)


def test_latents_of_another_precision(run, files, tmp_path):
    _, z = files
    np.save(tmp_path / "double.npy", z.astype(np.float64))
    for arguments in (("my_cli_decoders:hidden",), ("decoder.pt", "--factory", "my_cli_decoders:decoder")):
        told = json.loads(run(*arguments, "double.npy", "--json"))
        assert told["provenance"]["dtype"] == "float32" and told["n"] == 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("known.pt",), "Give either latents"),
        (("known.pt", "z.npz", "--normal", "5"), "Give either latents"),
        (("known.pt", "z.npz", "--key", "z"), "cannot take latents of shape (3, 3)"),
        (("known.pt", "z.npz"), "--key"),
        (("decoder.pt", "--normal", "5"), "--factory package.module:function"),
        (("my_cli_decoders:ready", "--normal", "5"), "--width"),
        (("nowhere.pt", "--normal", "5"), "nowhere.pt"),
        (("my_cli_decoders:broken", "--normal", "5"), "broken failed: FileNotFoundError: there are no weights. It is"),
        (("decoder.pt", "--normal", "5", "--factory", "my_cli_decoders:wanting"), "missing 1 required positional"),
        (("my_cli_mistake:decoder", "--normal", "5"), "cannot be imported: SyntaxError: "),
        (("my_cli_decoders:decoders", "--normal", "5"), "cannot be imported: AttributeError: module"),
        (("known.pt", "--normal", "5", "--report", "out.npy"), "something.html"),
        (("known.pt", "--normal", "1"), "normal is 1, but a whole number of at least 2 or None is expected"),
    ],
)
def test_bad_arguments_get_a_sentence(refused, files, arguments, message):
    assert message in refused("lipschitz", *arguments)

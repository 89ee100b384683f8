"""`nearid extract` and `nearid layers` as a user types them."""

import json

import numpy as np
import pytest
import torch

from nearid import extract
from nearid.cli.commands import app

FACTORY = """
from torch import nn
def make():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.Flatten(), nn.Linear(80, 6))
"""


@pytest.fixture
def files(tmp_path, rng):
    (tmp_path / "my_cli_nets.py").write_text(FACTORY)
    spaces = {}
    exec(FACTORY, spaces)
    for seed in (1, 2):
        torch.manual_seed(seed)
        torch.save(spaces["make"]().state_dict(), tmp_path / f"net{seed}.pt")
    pixels = rng.integers(0, 256, (90, 8, 8, 3), dtype=np.uint8)
    np.savez(tmp_path / "x.npz", images=pixels, names=np.array([f"i{k}" for k in range(90)]))
    return pixels


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments):
        app(list(arguments), standalone_mode=False)
        return capsys.readouterr()

    return call


OPTIONS = ("--factory", "my_cli_nets:make", "--key", "images", "--mean", "0.5", "--std", "0.2,0.3,0.4")


def test_extract_then_compare_layers(run, files, tmp_path):
    done = run("extract", "net1.pt", "x.npz", "-o", "one", *OPTIONS, "--layers", "*", "--json")
    told = json.loads(done.out)
    assert told["rows"] == 90 and list(told["layers"]) == ["0", "1", "2", "3", "4"] and told["folder"] == "one"
    assert "Layers written to one" in done.err
    said = run("extract", "net2.pt", "x.npz", "-o", "two", *OPTIONS, "--format", "zarr", "--ids", "names")
    assert "net2.pt: 90 rows, pool mean" in said.out and "4.zarr" in said.out
    direct = extract("net1.pt", files, factory="my_cli_nets:make", mean=0.5, std=[0.2, 0.3, 0.4])
    np.testing.assert_allclose(np.load(tmp_path / "one" / "4.npy"), direct["4"].read(0, 90), rtol=1e-4, atol=1e-5)
    table = run("layers", "one", "one").out
    assert "linear CKA, debiased" in table and "5 x 5 layers, n = 90" in table
    layers = json.loads(run("layers", "one", "--layers", "[02]", "--measures", "cka,r2", "--json").out)
    assert layers["layers"] == [["0", "2"], ["0", "2"]] and layers["values"]["r2"][0][0] > 0.999
    run("layers", "one", "one", "--report", "out.html")
    assert "linear CKA, debiased" in (tmp_path / "out.html").read_text("utf-8")
    # Files of single layers are rows like any other.
    assert json.loads(run("compare", "one/4.npy", "one/2.npy", "--json").out)["n"] == 90


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("extract", "net1.pt", "x.npz", "-o", "one"), "Name the function that makes the module"),
        (("extract", "net1.pt", "x.npz", "-o", "one", *OPTIONS, "--layers", "7"), "nothing named '7'"),
        (("extract", "net1.pt", "x.npz", "-o", "one.npy", *OPTIONS), "written to a folder"),
        (("extract", "net1.pt", "x.npz", "-o", "one", *OPTIONS, "--pool", "most"), "most"),
        (("compare", "here", "here"), "holds 2 layers: 0, 2"),
        (("layers", "here", "here", "here"), "unexpected extra argument"),
        (("layers", "x.npz", "here"), "not a folder of extracted layers"),
    ],
)
def test_bad_arguments_get_a_sentence(refused, files, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    if arguments[0] != "extract":
        extract("net1.pt", files, factory="my_cli_nets:make", layers="0,2", out="here")
    assert message in refused(*arguments)

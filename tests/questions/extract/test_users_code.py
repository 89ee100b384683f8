"""Factories that print, seed and change the folder, and modules with odd names."""

import json
import os
import random

import numpy as np
import pytest
import torch
from torch import nn

from nearid import compare_layers, extract, open_rows
from nearid.base.errors import InputError

MAKER = """
import os, random, sys
import numpy as np, torch
from torch import nn

print("imported")

class Talking(nn.Linear):
    def forward(self, x):
        print("forward")
        return super().forward(x)

def make():
    print("made", flush=True)
    os.system("echo shell")
    os.chdir("/")
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    return nn.Sequential(Talking(4, 3), nn.Tanh())
"""


@pytest.fixture
def noisy(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy_maker.py").write_text(MAKER)
    np.save("x.npy", rng.normal(size=(30, 4)).astype(np.float32))
    return tmp_path


def test_a_factory_leaves_folder_and_random_states(noisy):
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    rows = extract("noisy_maker:make", "x.npy", out="out")
    assert os.getcwd() == str(noisy) and (noisy / "out").is_dir() and rows["1"].shape == (30, 3)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]
    # What it seeds for itself counts.
    torch.manual_seed(7)
    made = nn.Linear(4, 3)
    wanted = made(torch.from_numpy(np.load("x.npy"))).detach()
    np.testing.assert_allclose(rows["0"].read(0, 30), wanted, rtol=1e-5, atol=1e-6)


def test_a_failing_factory_leaves_them_too(noisy):
    (noisy / "failing_maker.py").write_text("import os\ndef make():\n    os.chdir('/')\n    raise ValueError('no')\n")
    with pytest.raises(InputError, match="failed: ValueError: no"):
        extract("failing_maker:make", "x.npy")
    assert os.getcwd() == str(noisy)


def test_json_stays_pure(noisy, process, nearid):
    done = process("extract", "noisy_maker:make", "x.npy", "-o", "out", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 30
    assert {"imported", "made", "shell", "forward"} <= set(done.stderr.split())
    done = nearid("lipschitz", "noisy_maker:make", "x.npy", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n"] == 30 and {"made", "forward"} <= set(done.stderr.split())


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"[CLS]": nn.Linear(4, 3), "a:b": nn.LSTM(4, 3, batch_first=True), "C": nn.Tanh()})

    def forward(self, x):
        return self.parts["C"](self.parts["[CLS]"](x) + self.parts["a:b"](x[:, None])[0][:, 0])


def test_names_with_brackets_and_colons_are_layers(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    x = rng.normal(size=(40, 4)).astype(np.float32)
    model = Odd()
    layers = extract(model, x, out="run")
    assert set(layers) == {"parts.[CLS]", "parts.a:b", "parts.C"}
    wanted = model.parts["[CLS]"](torch.from_numpy(x)).detach()
    for rows in (layers["parts.[CLS]"], open_rows("run:parts.[CLS]"), open_rows("run", key="parts.[CLS]")):
        np.testing.assert_allclose(rows.read(0, 40), wanted, rtol=1e-5, atol=1e-6)
    assert open_rows("run:parts.a:b").shape == (40, 3)
    for pattern in ("parts.[CLS]", "parts.a:b", "parts.a:b:1.0", "parts.C"):
        chosen = extract(model, x, layers=[pattern], pool=lambda x, mask: x.reshape(len(x) if len(x) > 1 else -1, 3))
        assert list(chosen) == [pattern]
    table = compare_layers("run", layers=["parts.[CLS]", "parts.a:b"], permutations=0)
    table.save_report("page.html")
    for shown in (str(layers), str(table), (tmp_path / "page.html").read_text()):
        assert "parts.[CLS]" in shown and "parts.a:b" in shown


def test_tensors_without_shape_or_numbers_get_a_sentence(rng):
    model = nn.Linear(4, 3)
    nested = [torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(2, 4)])]
    nested.append(torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(2, 4)], layout=torch.jagged))
    for tensor in nested:
        for data in (tensor, [tensor], {"input": tensor}, iter([{"input": tensor}])):
            with pytest.raises(InputError, match=r"is a nested tensor. Pad it first"):
                extract(model, data)
        giving = nn.Sequential(nn.Linear(4, 3))
        giving[0].register_forward_hook(lambda *_, tensor=tensor: tensor)
        with pytest.raises(InputError, match="The layer 0 gave a nested tensor"):
            extract(giving, np.ones((5, 4), np.float32))
    messages = []

    def traced(x):
        for call in (lambda: extract(model, x), lambda: open_rows(x)):
            with pytest.raises(InputError, match=r"inside torch\.func") as caught:
                call()
            messages.append(str(caught.value))
        return x.sum()

    torch.vmap(traced)(torch.ones(2, 5, 4))
    torch.func.grad(traced)(torch.ones(5, 4))
    assert len(messages) == 4

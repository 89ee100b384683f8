"""The state dict among what a training script saved: found by its shape, chosen by a prefix, or listed."""

import pytest
import torch
from torch import nn

from nearid.base.errors import InputError
from nearid.questions.extract.weights import load_weights


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def weights():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 7)).state_dict()


def trained():
    """A state dict, and what an optimiser keeps beside it."""
    module = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 7))
    optimiser = torch.optim.Adam(module.parameters())
    module(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    return module.state_dict(), optimiser.state_dict()


def test_whatever_is_around_the_state_dict_is_passed_over():
    state, optimiser = trained()
    by_name = {name: {"exp_avg": torch.ones(2), "step": torch.ones(())} for name in state}
    for saved in (
        {"net": state, "acc": 0.9},
        {"a": {"b": [1, {"c": state}]}, "optimizer": optimiser, "rng": torch.ones(3)},
        {"net": state, "optimizer": {"state": by_name}},
        {"net": state, "best": {"epoch=1.ckpt": torch.tensor(0.5)}},
        {"net": {"weight": torch.ones(2, 2)}, "best": {"epoch=1.ckpt": torch.tensor(0.5)}},
    ):
        torch.save(saved, "x.pt")
        expected = saved.get("net", state)
        found = load_weights("x.pt")
        assert {name: w.tolist() for name, w in found.items()} == {name: w.tolist() for name, w in expected.items()}


def test_the_prefix_works_on_what_was_found():
    inside = {f"model.{name}": w for name, w in weights().items()} | {"loss.weight": torch.ones(2)}
    torch.save({"net": inside, "acc": 0.9}, "x.ckpt")
    assert load_weights("x.ckpt", "model.").keys() == weights().keys()
    assert load_weights("x.ckpt", "net.model.").keys() == weights().keys()
    assert load_weights("x.ckpt", "net.").keys() == inside.keys()
    with pytest.raises(InputError, match=r"x.ckpt has nothing named 'decoder.' \(given as prefix\)"):
        load_weights("x.ckpt", "decoder.")


def test_several_state_dicts_are_listed_and_a_prefix_chooses():
    state = weights()
    shadow = {f"module.{name}": w + 1 for name, w in state.items()}
    torch.save({"model": state, "ema": shadow}, "x.pt")
    listed = (
        r"x.pt holds 2 state dicts: 'model' \(4 tensors: 0.weight \(5, 3\), 0.bias \(5,\), ...\), "
        r"'ema' \(4 tensors: module.0.weight \(5, 3\), module.0.bias \(5,\), ...\)\. "
        r"Choose one with prefix='model.' \(on the command line --prefix model.\)\.$"
    )
    for prefix in (None, "0."):
        with pytest.raises(InputError, match=listed):
            load_weights("x.pt", prefix)
    assert torch.equal(load_weights("x.pt", "model.")["0.bias"], state["0.bias"])
    assert torch.equal(load_weights("x.pt", "ema.module.")["0.bias"], state["0.bias"] + 1)
    assert torch.equal(load_weights("x.pt", "model.0.")["bias"], state["0.bias"])


@pytest.mark.parametrize(
    ("saved", "contents"),
    [
        ({"x": torch.ones(3, 2), "epoch": 3}, r"It holds 'x' \(3, 2\), 'epoch' int\."),
        ({"args": {"lr": 0.1}, "who": ["a", "b"]}, r"It holds 'args.lr' float, 'who' list\."),
        (torch.ones(3), r"It is one tensor of shape \(3,\)\."),
        ({}, r"It is empty\."),
        (3, r"It is of type int\."),
    ],
)
def test_what_is_there_instead_of_a_state_dict_is_listed(saved, contents):
    torch.save(saved, "x.pt")
    with pytest.raises(InputError, match=rf"x.pt holds no state dict, .* {contents} Save one with"):
        load_weights("x.pt")


def test_lists_of_what_is_there_are_bounded():
    torch.save({"a" * 1_000 + str(i): i for i in range(300)}, "none.pt")
    torch.save({f"{i}" * 1_000: {"x" * 1_000 + ".y": torch.ones(2)} for i in range(100)}, "many.pt")
    for file in ("none.pt", "many.pt"):
        with pytest.raises(InputError) as caught:
            load_weights(file)
        assert len(str(caught.value)) < 6_000

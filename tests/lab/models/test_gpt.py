"""A small GPT-2: its loss against PyTorch's, causality, and that it learns."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.lab.models.gpt import GPT
from nearid.lab.models.trainer import (
    Training,
    seeded,
    train,
)


def made(tokens=11, width=8, depth=3, heads=2, context=6):
    with seeded(0):
        return GPT(tokens, width, depth, heads, context)


def test_the_loss_and_its_gradients_are_those_of_a_softmax_over_the_tied_head(rng):
    model = made().double()
    ids = torch.tensor(rng.integers(0, 11, (4, 7)))
    loss = model(ids)
    loss.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    logits = model.hidden_states(ids[:, :-1])[-1] @ model.tokens.weight.T
    expected = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    expected.backward()
    torch.testing.assert_close(loss, expected)
    for name, p in model.named_parameters():
        torch.testing.assert_close(found[name], p.grad)
    assert len(found) == len(list(model.parameters()))


def test_no_token_sees_what_follows(rng):
    model = made()
    ids = torch.tensor(rng.integers(0, 11, (2, 6)))
    other = ids.clone()
    other[:, 4:] = (other[:, 4:] + 1) % 11
    for before, after in zip(model.hidden_states(ids), model.hidden_states(other), strict=True):
        torch.testing.assert_close(before[:, :4], after[:, :4])
        assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_hidden_states_are_those_of_gpt2(rng):
    """The same weights in the model of the library transformers give the same states."""
    transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    model = made()
    config = transformers.GPT2Config(
        vocab_size=11, n_positions=6, n_embd=8, n_layer=3, n_head=2, activation_function="gelu", attn_pdrop=0.0
    )
    peer = transformers.GPT2Model(config).eval()
    ours = dict(model.named_parameters())
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())))
        state = {"wte.weight": ours["tokens.weight"], "wpe.weight": ours["places.weight"]}
        state |= {"ln_f.weight": ours["norm.weight"], "ln_f.bias": ours["norm.bias"]}
        names = {"ln_1": "before_attention", "ln_2": "before_perceptron", "attn.c_attn": "project"}
        names |= {"attn.c_proj": "merge", "mlp.c_fc": "perceptron.0", "mlp.c_proj": "perceptron.2"}
        for k in range(3):
            for theirs, own in names.items():
                weight = ours[f"blocks.{k}.{own}.weight"]
                state[f"h.{k}.{theirs}.weight"] = weight.T if weight.ndim == 2 else weight
                state[f"h.{k}.{theirs}.bias"] = ours[f"blocks.{k}.{own}.bias"]
        peer.load_state_dict(state)
        ids = torch.tensor(rng.integers(0, 11, (2, 6)))
        expected = peer(ids, output_hidden_states=True).hidden_states
        found = model.hidden_states(ids)
    assert len(found) == len(expected) == 4
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_it_starts_at_chance_and_learns_a_rule():
    model = made(tokens=5)
    start = np.arange(5)

    def batches(rng):
        # Each token follows from the one before.
        return ((rng.choice(start, (16, 1)) + np.arange(6)) % 5,)

    ids = torch.tensor(batches(np.random.default_rng(0))[0])
    assert float(model(ids).detach()) == pytest.approx(math.log(5), abs=0.05)
    train(model, batches, Training(60, 1e-2, optimiser="adamw", weight_decay=0.1))
    assert float(model(ids).detach()) < 0.1


def test_decay_is_for_matrices_of_blocks_alone():
    model = made()
    spared = {id(p) for p in model.undecayed()}
    decayed = [name for name, p in model.named_parameters() if id(p) not in spared]
    assert len(decayed) == 3 * 4 and all(n.startswith("blocks.") and n.endswith("weight") for n in decayed)


@pytest.mark.parametrize("ids", [[[0, 11]], [[-1, 0]], [[1]], [[0.5, 1.0]]])
def test_odd_tokens_are_refused(ids):
    with pytest.raises(InputError, match="Tokens"):
        made()(torch.tensor(ids))


def test_impossible_shapes_are_refused():
    with pytest.raises(InputError, match="too long"):
        made().hidden_states(torch.zeros(1, 7, dtype=torch.int64))
    with pytest.raises(InputError, match="a multiple of the heads"):
        made(heads=3)

"""The log-bilinear word model: its loss by hand, and that noise-contrastive estimation finds probabilities."""

import math

import numpy as np
import pytest
import torch

from nearid.base.errors import InputError
from nearid.lab.models.log_bilinear import LogBilinear
from nearid.lab.models.trainer import (
    Training,
    seeded,
    train,
)


def made(shares=(4.0, 3.0, 2.0, 1.0), width=3, places=2):
    with seeded(0):
        model = LogBilinear(torch.tensor(shares), width, places)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.5 * torch.randn(p.shape))
    return model


def test_the_loss_by_hand(rng):
    model = made()
    contexts, targets, noise = (torch.tensor(rng.integers(0, 4, shape)) for shape in ((5, 2), (5,), (5, 6)))
    with torch.no_grad():
        found, log_p = float(model(contexts, targets, noise)), model.log_scores(contexts).double().numpy()
        r, q = model.context.weight.numpy(), model.target.weight.numpy()
        c, b = model.weights.numpy(), model.bias.numpy()
    share, expected = np.array([0.4, 0.3, 0.2, 0.1]), 0.0
    for row in range(5):
        f = sum(c[i] * r[contexts[row, i]] for i in range(2))
        np.testing.assert_allclose(log_p[row], q @ f + b, rtol=1e-5)
        right = [1 / (1 + 6 * share[w] / math.exp(log_p[row, w])) for w in range(4)]
        expected -= math.log(right[targets[row]]) + sum(math.log(1 - right[w]) for w in noise[row])
    assert found == pytest.approx(expected / 5, rel=1e-5)


def test_it_starts_at_the_frequencies():
    model = LogBilinear(torch.tensor([4.0, 3.0, 2.0, 1.0]), 3, 2)
    with torch.no_grad():
        found = model.log_scores(torch.tensor([[0, 1]])).exp()[0]
    np.testing.assert_allclose(found, [0.4, 0.3, 0.2, 0.1], atol=0.01)


def test_noise_contrastive_estimation_finds_normalised_probabilities():
    # p(word | context) for four contexts of one word, each with a row of its own.
    truth = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], [0.05, 0.05, 0.45, 0.45]])
    share = truth.mean(axis=0)
    with seeded(0):
        model = LogBilinear(torch.tensor(share), 4, 1)

    def batches(rng):
        contexts = rng.integers(0, 4, 2000)
        targets = (rng.random(2000)[:, None] > truth[contexts].cumsum(axis=1)).sum(axis=1)
        noise = rng.choice(4, (2000, 25), p=share)
        return contexts[:, None], targets, noise

    train(model, batches, Training(150, 0.05, schedule="cosine"))
    with torch.no_grad():
        found = model.log_scores(torch.arange(4)[:, None]).exp().numpy()
    np.testing.assert_allclose(found, truth, atol=0.03)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=0.05)


def test_odd_shapes_are_refused():
    model = made()
    with pytest.raises(InputError, match=r"\(rows, 2\)"):
        model(torch.zeros(5, 3, dtype=torch.int64), torch.zeros(5, dtype=torch.int64), torch.zeros(5, 6).long())
    with pytest.raises(InputError, match="above 0"):
        LogBilinear(torch.tensor([1.0, 0.0]), 2, 2)
    with pytest.raises(InputError, match="at least 1"):
        LogBilinear(torch.tensor([1.0, 1.0]), 0, 2)


def test_vectors_start_within_a_spread():
    for table in (made := LogBilinear(torch.ones(500), 4, 2, spread=0.001)).context, made.target:
        assert 0.0009 < float(table.weight.detach().abs().max()) <= 0.001

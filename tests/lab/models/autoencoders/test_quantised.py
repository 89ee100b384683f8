"""Codebooks against brute force, and where the gradients go."""

import itertools

import numpy as np
import pytest
import torch

from dense_networks import Dense
from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.quantised import QLAE, VQVAE, straight_through
from nearid.lab.models.trainer import seeded

LATENTS = 3


def model(kind, **options):
    with seeded(0):
        return kind(LATENTS, Dense(8, (6,)), **options).double()


def vq(**options):
    return model(VQVAE, size=11, dimension=4, **options)


def test_vectors_are_the_nearest_of_one_codebook(rng):
    m = vq()
    z = torch.tensor(rng.normal(size=(20, LATENTS * 4)))
    codes, book = m.nearest(z), m.codebook.detach().numpy()
    assert codes.shape == (20, LATENTS)
    entries = m.entries(codes).detach().numpy()
    for i, k in itertools.product(range(20), range(LATENTS)):
        own = z[i, 4 * k : 4 * k + 4].numpy()
        nearest = min(range(11), key=lambda e: np.sum((own - book[e]) ** 2))
        assert codes[i, k] == nearest
        np.testing.assert_array_equal(entries[i, 4 * k : 4 * k + 4], book[nearest])


def test_scalars_are_the_nearest_of_each_latents_own(rng):
    m = model(QLAE, values=5)
    with torch.no_grad():
        m.codebook.copy_(torch.tensor(rng.normal(size=(LATENTS, 5))))  # neither sorted nor shared
    z = torch.tensor(rng.normal(size=(50, LATENTS)))
    codes, book = m.nearest(z), m.codebook.detach().numpy()
    entries = m.entries(codes).detach().numpy()
    for i, k in itertools.product(range(50), range(LATENTS)):
        nearest = int(np.argmin(np.abs(z[i, k].item() - book[k])))
        assert codes[i, k] == nearest and entries[i, k] == book[k, nearest]


def test_codebooks_start_as_published():
    m = model(QLAE)
    np.testing.assert_allclose(m.codebook.detach(), np.tile(np.linspace(-0.5, 0.5, 10), (LATENTS, 1)), atol=1e-7)
    book = VQVAE(2, Dense(8)).codebook.detach()
    assert book.shape == (512, 64) and book.abs().max() <= (3 / 64) ** 0.5
    assert book.var().item() == pytest.approx(1 / 64, rel=0.05)


@pytest.mark.parametrize("make", [vq, lambda **o: model(QLAE, **o)])
def test_representations_are_entries(rng, make):
    m, x = make(), torch.tensor(rng.uniform(size=(6, 8)))
    codes = m.codes(x)
    torch.testing.assert_close(m.encode(x), m.entries(codes))
    assert not codes.is_floating_point() and m.decode(m.encode(x)).shape == x.shape


def test_gradients_pass_by_the_quantisation(rng):
    z, entries = (torch.tensor(rng.normal(size=(4, 3)), requires_grad=True) for _ in range(2))
    weights = torch.tensor(rng.normal(size=(4, 3)))
    found = straight_through(z, entries)
    torch.testing.assert_close(found, entries)
    (found * weights).sum().backward()
    torch.testing.assert_close(z.grad, weights)
    assert entries.grad is None


@pytest.mark.parametrize("make", [vq, lambda **o: model(QLAE, **o)])
def test_each_term_has_its_own_gradients(rng, make):
    x = torch.tensor(rng.uniform(size=(6, 8)))

    def gradients(**weights):
        m = make(**weights)
        m(x).backward()
        return m.encoder[-1].weight.grad, m.codebook.grad, m

    bare_encoder, bare_book, m = gradients(quantisation=0.0, commitment=0.0)
    assert not bare_book.any() and bare_encoder.any()
    # The encoder is moved as if the decoder had seen its outputs, but at the entries.
    z = m.encoder(x)
    entries = m.encode(x).detach().requires_grad_()
    (at_entries,) = torch.autograd.grad(m.error(x, entries), entries)
    torch.testing.assert_close(torch.autograd.grad(z, m.encoder[-1].weight, at_entries)[0], bare_encoder)

    encoder, book, m = gradients(quantisation=2.0, commitment=0.0)
    torch.testing.assert_close(encoder, bare_encoder)
    codes, z = m.codes(x), m.encoder(x).detach()
    pull = 2.0 * 2 * (m.encode(x).detach() - z) / z.numel()
    expected = torch.zeros_like(m.codebook)
    for i, k in itertools.product(range(6), range(LATENTS)):
        if expected.shape[0] == LATENTS:
            expected[k, codes[i, k]] += pull[i, k]
        else:
            expected[codes[i, k]] += pull[i, 4 * k : 4 * k + 4]
    torch.testing.assert_close(book, expected)

    encoder, book, m = gradients(quantisation=0.0, commitment=2.0)
    assert not book.any()
    extra = torch.autograd.grad(m.encoder(x), m.encoder[-1].weight, 4 * (z - m.encode(x).detach()) / z.numel())[0]
    torch.testing.assert_close(encoder, bare_encoder + extra)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: VQVAE(2, Dense(8), size=1), "but 1 entries and 64 coordinates"),
        (lambda: VQVAE(2, Dense(8), commitment=-1), "commitment is -1"),
        (lambda: QLAE(2, Dense(8), values=1), "at least 2 values, but 1"),
        (lambda: QLAE(2, Dense(8), quantisation=float("nan")), "quantisation is nan"),
        (lambda: QLAE(0, Dense(8)), "cannot have 0 latents"),
    ],
)
def test_options_that_cannot_be(make, told):
    with pytest.raises(InputError, match=told):
        make()

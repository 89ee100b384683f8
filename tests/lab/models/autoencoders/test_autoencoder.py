"""Autoencoders with continuous latents."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from dense_networks import Dense
from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.autoencoder import (
    Autoencoder,
    BetaTCVAE,
    BetaVAE,
    BioAE,
    check_images,
    kl_from_standard_normal,
    per_input,
    total_correlation,
)
from nearid.lab.models.autoencoders.convolutional import Light
from nearid.lab.models.autoencoders.masked import MaskedAutoencoder
from nearid.lab.models.autoencoders.orthogonal import Orthogonal
from nearid.lab.models.autoencoders.quantised import QLAE, VQVAE
from nearid.lab.models.trainer import (
    Training,
    seeded,
    train,
)


def test_images_come_channels_first():
    check_images(torch.zeros(0, 3, 8, 8), 3, 8)
    with pytest.raises(InputError, match=r"\(2, 8, 8, 3\), but \(rows, 3, 8, 8\) is expected"):
        check_images(torch.zeros(2, 8, 8, 3), 3, 8)


SIDE, LATENTS = 16, 3
LIGHT = Light(1, SIDE)
MODELS = {
    "plain": lambda: Autoencoder(LATENTS, LIGHT),
    "dense": lambda: Autoencoder(LATENTS, Dense(SIDE**2, (32,)), reconstruction="squared"),
    "orthogonal": lambda: Autoencoder(LATENTS, Orthogonal(SIDE**2, (32, 8)), reconstruction="squared"),
    "beta-VAE": lambda: BetaVAE(LATENTS, LIGHT, beta=0.1),
    "beta-TCVAE": lambda: BetaTCVAE(LATENTS, LIGHT, beta=2.0),
    "BioAE": lambda: BioAE(LATENTS, LIGHT),
    "VQ-VAE": lambda: VQVAE(LATENTS, LIGHT, size=16, dimension=4),
    "QLAE": lambda: QLAE(LATENTS, LIGHT),
    "masked": lambda: MaskedAutoencoder(1, SIDE, ratio=0.25, width=16, depth=1, heads=2, decoder_width=16),
}
ROWS = {"dense", "orthogonal"}
# Bright bars at eight places, easy to tell apart.
BARS = np.stack([np.where(np.arange(SIDE) // 4 == k % 4, 0.9, 0.1) * np.ones((SIDE, 1)) for k in range(4)])
IMAGES = np.concatenate([BARS, BARS.swapaxes(1, 2)])[:, None]
# Mean squared error of the best constant image.
MEAN_IMAGE = float(IMAGES.var(axis=0).mean())


def made(name):
    with seeded(0):
        return MODELS[name]()


def shown(name):
    # Three coordinates of near-isometric networks without biases hold three images.
    images = BARS[:3, None] if name.startswith("orthogonal") else IMAGES
    return images.reshape(len(images), -1) if name in ROWS else images


def batches(name):
    images = shown(name)
    return lambda rng: (images[rng.integers(0, len(images), size=16)],)


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"masked"}))
def test_learns_a_few_images(name):
    model = made(name)
    rate = 3e-2 if name.startswith("orthogonal") else 1e-2
    found = train(model, batches(name), Training(300, rate, log_every=10, score_every=10))
    # No cross-entropy is below the entropy of the images.
    least = 0.0 if name in ROWS else float(-(IMAGES * np.log(IMAGES) + (1 - IMAGES) * np.log(1 - IMAGES)).mean())
    first, last = (found.records[k]["loss"] - least for k in (0, -1))
    assert 0 < last < 0.5 * first
    with torch.no_grad():
        x = torch.as_tensor(batches(name)(np.random.default_rng(0))[0], dtype=torch.float32)
        z = model.encode(x)
        again = model.decode(z)
    assert z.shape == (16, 12 if name == "VQ-VAE" else LATENTS) and again.shape == x.shape
    assert (again - x).square().mean() < 0.05 < MEAN_IMAGE


def test_the_masked_one_learns_more_than_the_mean_image():
    found = train(made("masked"), batches("masked"), Training(600, 1e-2, log_every=50, score_every=50))
    assert found.records[-1]["loss"] < 0.5 * MEAN_IMAGE


@pytest.mark.parametrize("name", MODELS)
def test_killed_and_resumed_equals_undisturbed(tmp_path, name):
    options = Training(12, 1e-2, optimiser="adamw", weight_decay=0.1, log_every=3, score_every=3, checkpoint_seconds=0)
    whole, draw, calls = made(name), batches(name), 0
    train(whole, draw, options)

    class Killed(Exception):
        pass

    def dying(rng):
        nonlocal calls
        calls += 1
        if calls == 8:
            raise Killed
        return draw(rng)

    with pytest.raises(Killed):
        train(made(name), dying, options, folder=tmp_path)
    with seeded(1):  # another start, all of which the checkpoint must replace
        resumed = MODELS[name]()
    train(resumed, dying, options, folder=tmp_path)
    assert calls < 20
    assert same(state(whole), state(resumed))
    assert not same(state(whole), state(made(name)))


@pytest.mark.parametrize("name", MODELS)
def test_the_seed_decides(name):
    runs = []
    for seed in (0, 0, 1):
        model = made(name)
        train(model, batches(name), Training(4, 1e-2, log_every=2, score_every=2, seed=seed))
        runs.append(state(model))
    assert same(runs[0], runs[1]) and not same(runs[0], runs[2])


@pytest.mark.parametrize("name", MODELS)
def test_all_parameters_learn(name):
    model = made(name)
    model(torch.as_tensor(batches(name)(np.random.default_rng(0))[0], dtype=torch.float32)).backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())


def test_the_errors_are_the_means_of_torchs(rng):
    x = torch.tensor(rng.uniform(size=(5, 12)), dtype=torch.float32)
    model = Autoencoder(2, Dense(12, (6,)))
    logits = model.decoder(model.encoder(x))
    by_hand = -(x * logits.sigmoid().log() + (1 - x) * (1 - logits.sigmoid()).log()).mean()
    assert model(x).item() == pytest.approx(by_hand.item(), rel=1e-5)
    torch.testing.assert_close(model.decode(model.encode(x)), logits.sigmoid())
    squared = Autoencoder(2, Dense(12, (6,)), reconstruction="squared")
    again = squared.decode(squared.encode(x))
    torch.testing.assert_close(again, squared.decoder(squared.encoder(x)))
    assert squared(x).item() == pytest.approx(((again - x) ** 2).mean().item(), rel=1e-6)


def test_a_sum_over_latents_is_put_on_the_scale_of_pixels():
    assert per_input(torch.tensor([2.0, 4.0]), torch.zeros(2, 3, 5)).item() == pytest.approx(3 / 15)


def test_biases_and_codebooks_are_spared_by_decay():
    model = made("QLAE")
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    optimiser = Training(1, 0.5, optimiser="adamw", weight_decay=1.0).torch_optimiser(model)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimiser.step()
    for name, p in model.named_parameters():
        torch.testing.assert_close(p, before[name] * (1.0 if p.ndim == 1 or name == "codebook" else 0.5))


@pytest.mark.parametrize(
    ("options", "told"),
    [({"latents": 0}, "cannot have 0 latents"), ({"reconstruction": "huber"}, "no reconstruction 'huber'")],
)
def test_options_that_cannot_be(options, told):
    with pytest.raises(InputError, match=told):
        Autoencoder(**{"latents": 2, "networks": Dense(4)} | options)


def test_inputs_that_cannot_be():
    model = Autoencoder(2, Dense(4, (3,)))
    with pytest.raises(InputError, match="run from 0 to 255"):
        model(torch.tensor([[0.0, 1.0, 255.0, 3.0]]))
    with pytest.raises(InputError, match=r"shape \(2, 1, 4\), but their reconstructions have shape \(2, 4\)"):
        model.error(torch.zeros(2, 1, 4), torch.zeros(2, 2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BetaVAE(LATENTS, LIGHT, beta=1.0), BetaVAE(LATENTS, LIGHT, beta=9.0)),
        (BioAE(LATENTS, LIGHT, activity=0.0), BioAE(LATENTS, LIGHT, activity=9.0)),
        (Autoencoder(LATENTS, LIGHT), Autoencoder(LATENTS, LIGHT, reconstruction="squared")),
        (QLAE(LATENTS, LIGHT, commitment=0.1), QLAE(LATENTS, LIGHT, commitment=0.2)),
        (MaskedAutoencoder(1, SIDE, ratio=0.5), MaskedAutoencoder(1, SIDE, ratio=0.75)),
    ],
    ids=["beta", "activity", "reconstruction", "commitment", "ratio"],
)
def test_a_run_of_another_objective_is_not_taken_up(one, other, tmp_path):
    batch = np.random.default_rng(0).random((8, 1, SIDE, SIDE), np.float32)
    train(one, lambda rng: (batch,), Training(2), folder=tmp_path)
    with pytest.raises(InputError, match="another"):
        train(other, lambda rng: (batch,), Training(2), folder=tmp_path)


def pair():
    found = []
    for kind in (Autoencoder, BioAE):
        with seeded(0):
            found.append(kind(3, Dense(6, (5,))))
    return found


def test_the_penalty_by_hand(rng):
    plain, bio = pair()
    with torch.no_grad():
        for model in (plain, bio):
            model.encoder[-1].bias.copy_(torch.tensor([-0.5, 0.0, 0.5]))
    x = torch.tensor(rng.uniform(size=(4, 6)), dtype=torch.float32)
    z = bio.encode(x).detach().numpy()
    expected = np.maximum(-z, 0).mean() + 0.01 * (z**2).mean()
    assert (z < 0).any() and (bio(x) - plain(x)).item() == pytest.approx(expected, rel=1e-4)


def test_latents_become_nonnegative(rng):
    x = rng.uniform(size=(8, 6))
    for model, expected in zip(pair(), (False, True), strict=True):
        with torch.no_grad():
            model.encoder[-1].bias.fill_(-0.5)
        train(model, lambda rng: (x,), Training(150, 1e-2))
        with torch.no_grad():
            z = model.encode(torch.tensor(x, dtype=torch.float32))
        assert bool((z > -0.05).all()) == expected


@pytest.mark.parametrize("activity", [-0.1, float("nan")])
def test_an_activity_that_cannot_be(activity):
    with pytest.raises(InputError, match="activity is"):
        BioAE(3, Dense(6), activity=activity)


Normal = torch.distributions.Normal


def posteriors(rng, rows, latents):
    mean, deviation = rng.normal(size=(rows, latents)), rng.uniform(0.3, 2, size=(rows, latents))
    z = mean + deviation * rng.normal(size=(rows, latents))
    return [torch.tensor(a) for a in (z, mean, deviation)]


def log_density(z, mean, deviation):
    return -(((z - mean) / deviation) ** 2) / 2 - math.log(deviation) - math.log(2 * math.pi) / 2


def by_loops(z, mean, deviation, data=1):
    """log q(z_i) - sum_k log q(z_ik), each a mixture over the batch with weights 1 / (rows data)."""
    rows, latents = z.shape
    found = []
    for i in range(rows):
        logs = np.array(
            [[log_density(z[i, k], mean[j, k], deviation[j, k]) for k in range(latents)] for j in range(rows)]
        )
        joint = math.log(sum(math.exp(row.sum()) for row in logs) / (rows * data))
        marginals = [math.log(sum(math.exp(v) for v in logs[:, k]) / (rows * data)) for k in range(latents)]
        found.append(joint - sum(marginals))
    return float(np.mean(found))


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 6), latents=st.integers(1, 4))
def test_total_correlation_is_that_of_loops(seed, rows, latents):
    given_ = posteriors(np.random.default_rng(seed), rows, latents)
    expected = by_loops(*(a.numpy() for a in given_))
    assert total_correlation(*given_).item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_published_weights_shift_it_by_a_constant(rng):
    given_ = posteriors(rng, 5, 3)
    gap = by_loops(*(a.numpy() for a in given_), data=1000) - total_correlation(*given_).item()
    assert gap == pytest.approx(2 * math.log(1000), rel=1e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_total_correlation_of_a_normal_distribution(rng, correlation):
    # Normal means with constant deviations: the mixture of all posteriors is normal, and its total correlation known.
    spread, rows = 0.6, 1500
    covariance = np.array([[1, correlation], [correlation, 1]]) - spread**2 * np.eye(2) / 4
    mean = rng.multivariate_normal([0, 0], covariance, size=rows)
    deviation = np.full_like(mean, spread / 2)
    z = mean + deviation * rng.normal(size=mean.shape)
    found = total_correlation(*(torch.tensor(a) for a in (z, mean, deviation))).item()
    assert found == pytest.approx(-math.log(1 - correlation**2) / 2, abs=0.05)


def test_one_latent_has_no_total_correlation(rng):
    assert total_correlation(*posteriors(rng, 7, 1)).item() == pytest.approx(0, abs=1e-12)


def test_kl_is_torchs(rng):
    _, mean, deviation = posteriors(rng, 6, 4)
    own = Normal(mean, deviation)
    expected = torch.distributions.kl_divergence(own, Normal(0.0, 1.0)).sum(dim=1)
    torch.testing.assert_close(kl_from_standard_normal(mean, deviation), expected)


def model(kind, **options):
    with seeded(0):
        return kind(3, Dense(8, (6,)), **options).double()


def loss_of(m, x):
    with seeded(1):
        return m(x)


def test_the_loss_is_the_error_and_beta_kl_for_each_pixel(rng):
    x = torch.tensor(rng.uniform(size=(5, 8)))
    m = model(BetaVAE, beta=3.0)
    mean, raw = m.encoder(x).chunk(2, dim=1)
    deviation = torch.nn.functional.softplus(raw) + 1e-6
    with seeded(1):
        z = mean + deviation * torch.randn_like(mean)
    error = torch.nn.functional.binary_cross_entropy_with_logits(m.decoder(z), x, reduction="sum") / 5
    kl = torch.distributions.kl_divergence(Normal(mean, deviation), Normal(0, 1)).sum() / 5
    assert loss_of(m, x).item() == pytest.approx(((error + 3 * kl) / 8).item(), rel=1e-10)
    torch.testing.assert_close(m.encode(x), mean)


def test_beta_tcvae_is_the_published_decomposition_on_average(rng):
    # With z from the posteriors: mutual information + beta total correlation + KL latent by latent. The sampled KL
    # differs from the closed form by noise of mean 0, which many samples average out.
    x, beta = torch.tensor(rng.uniform(size=(4, 8))), 4.0
    m = model(BetaTCVAE, beta=beta)
    mean, deviation = (a.detach() for a in m.posterior(x))
    gaps = []
    for seed in range(400):
        with seeded(seed):
            z = mean + deviation * torch.randn_like(mean)
        own = Normal(mean, deviation).log_prob(z).sum(dim=1)
        every = Normal(mean, deviation).log_prob(z[:, None])
        joint = torch.logsumexp(every.sum(dim=2), dim=1) - math.log(4)
        marginals = (torch.logsumexp(every, dim=1) - math.log(4)).sum(dim=1)
        prior = Normal(0, 1).log_prob(z).sum(dim=1)
        published = ((own - joint) + beta * (joint - marginals) + (marginals - prior)).mean()
        gaps.append((m.divergence(z, mean, deviation).mean() - published).item())
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / math.sqrt(len(gaps)) and np.std(gaps) < 2


def test_at_beta_one_both_are_the_same(rng):
    x = torch.tensor(rng.uniform(size=(5, 8)))
    assert loss_of(model(BetaVAE), x).item() == pytest.approx(loss_of(model(BetaTCVAE), x).item(), rel=1e-12)


def test_deviations_that_underflow_keep_the_loss_finite():
    m = model(BetaVAE).float()
    with torch.no_grad():
        m.encoder[-1].bias.fill_(-200)
    assert torch.isfinite(m(torch.rand(4, 8)))


@pytest.mark.parametrize("beta", [-1, float("nan"), float("inf")])
def test_a_beta_that_cannot_be(beta):
    with pytest.raises(InputError, match="beta is"):
        BetaVAE(3, Dense(8), beta=beta)

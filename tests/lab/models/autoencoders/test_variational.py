"""The KL against torch's own, the total correlation against loops and closed forms, and the published loss."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.base.errors import InputError  # noqa: E402
from dense_networks import Dense  # noqa: E402
from nearid.lab.models.autoencoders.variational import (  # noqa: E402
    BetaTCVAE,
    BetaVAE,
    kl_from_standard_normal,
    total_correlation,
)
from nearid.lab.models.trainer import seeded  # noqa: E402

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

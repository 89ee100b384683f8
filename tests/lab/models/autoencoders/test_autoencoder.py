"""What all autoencoders share: they learn through the trainer, repeat themselves, survive being killed."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.models.autoencoders.autoencoder import Autoencoder, per_input  # noqa: E402
from nearid.lab.models.autoencoders.bioae import BioAE  # noqa: E402
from nearid.lab.models.autoencoders.convolutional import Light  # noqa: E402
from nearid.lab.models.autoencoders.masked import MaskedAutoencoder  # noqa: E402
from dense_networks import Dense  # noqa: E402
from nearid.lab.models.autoencoders.orthogonal import Orthogonal  # noqa: E402
from nearid.lab.models.autoencoders.quantised import QLAE, VQVAE  # noqa: E402
from nearid.lab.models.autoencoders.variational import BetaTCVAE, BetaVAE  # noqa: E402
from nearid.lab.models.options import Training  # noqa: E402
from nearid.lab.models.trainer import seeded, train  # noqa: E402

SIDE, LATENTS = 16, 3
LIGHT = Light(1, SIDE)
MODELS = {
    "plain": lambda: Autoencoder(LATENTS, LIGHT),
    "dense": lambda: Autoencoder(LATENTS, Dense(SIDE**2, (32,)), reconstruction="squared"),
    "orthogonal": lambda: Autoencoder(LATENTS, Orthogonal(SIDE**2, (32, 8)), reconstruction="squared"),
    "orthogonal, torch's map": lambda: Autoencoder(
        LATENTS, Orthogonal(SIDE**2, (32, 8), orthogonal_map="cayley"), reconstruction="squared"
    ),
    "beta-VAE": lambda: BetaVAE(LATENTS, LIGHT, beta=0.1),
    "beta-TCVAE": lambda: BetaTCVAE(LATENTS, LIGHT, beta=2.0),
    "BioAE": lambda: BioAE(LATENTS, LIGHT),
    "VQ-VAE": lambda: VQVAE(LATENTS, LIGHT, size=16, dimension=4),
    "QLAE": lambda: QLAE(LATENTS, LIGHT),
    "masked": lambda: MaskedAutoencoder(1, SIDE, ratio=0.25, width=16, depth=1, heads=2, decoder_width=16),
}
ROWS = {"dense", "orthogonal", "orthogonal, torch's map"}
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
    with pytest.raises(InputError, match=r"shape \(2, 1, 4\) and their reconstructions \(2, 4\)"):
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

"""Cells of the disentanglement experiment: every model, its scores and views; determinism."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.framework.settings import changed  # noqa: E402
from nearid.lab.models.trainer import seeded  # noqa: E402
from nearid.lab.papers.common.images import Judge, image_source  # noqa: E402
from nearid.lab.papers.nelson.autoencoding import (  # noqa: E402
    MODELS,
    Parameters,
    autoencoder,
    cell,
    judged_model,
    spectrum,
)

TINY = Parameters(data="solids", steps=2, batch=4, judged=200, dci_rows=60, looks=1, looked=60)


@pytest.fixture(scope="module")
def judge():
    source = image_source("solids", 32)
    return Judge(source, source.sample(200, np.random.default_rng(0)), 60)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_judged(model, judge):
    p = replace(TINY, model=model, strength=1.0)
    with seeded(0):
        made = autoencoder(p, judge.source).eval()
    scores, views = judged_model(p, made, judge)
    assert made.latents == 12 and np.shape(views["raw"]) == (12, 6)
    assert {"infom", "infoe", "infoc", "explained"} <= scores.keys()
    # Latents that are vectors of a codebook have no ICA.
    assert ("infom_ica" in scores) == ("traversals" in views) == (model != "vq-vae")
    if model != "vq-vae":
        assert np.shape(views["ica"]) == (12, 6) and 1 <= len(views["traversed"]) <= 6
        assert {"mcc_ica", "dci_d_ica"} <= scores.keys()


def test_idle_latents_are_told_by_the_decoder(judge):
    """A decoder that reads three of twelve latents, one of them twice as strongly."""

    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def decode(self, z):
            return (z * torch.tensor([2.0, 1.0, 1.0] + [1e-3] * 9))[:, :, None, None]

    found = spectrum(Reads(), np.random.default_rng(0).normal(size=(100, 12)))
    assert found["directions"] == 3 and found["condition"] == pytest.approx(2, rel=1e-3)
    assert found["gap"] == pytest.approx(1000, rel=0.05) and found["lipschitz"] == pytest.approx(2**0.5, rel=1e-3)


@pytest.mark.parametrize("model", ["ae", "vq-vae", "qlae"])
def test_modularity_is_followed_in_training(model, tmp_path):
    found = cell(replace(TINY, model=model, looks=2, dci_rows=0), 0, tmp_path)
    keys = {"look_infom", "explained"} | ({"look_infom_ica"} if model != "vq-vae" else set())
    assert keys <= set(found["curves"]) and all(found["curves"][key]["x"] == [1.0, 2.0] for key in keys)
    assert ("look_infom_ica" in found["curves"]) == (model != "vq-vae")


def test_latents_that_do_not_vary_are_judged_without_ica(judge):
    p = replace(TINY, dci_rows=0)
    with seeded(0):
        made = autoencoder(p, judge.source).eval()
    for value in made.encoder[-1].parameters():
        torch.nn.init.zeros_(value)
    scores, views = judged_model(p, made, judge)
    assert scores["infom"] == 0 and "infom_ica" not in scores and "traversals" not in views


def test_strengths_reach_their_models():
    source = image_source("sprites", 32)
    assert autoencoder(replace(TINY, model="beta-vae", strength=3.0), source).beta == 3
    assert autoencoder(replace(TINY, model="beta-tcvae", strength=2.0), source).beta == 2
    made = autoencoder(replace(TINY, model="bioae", strength=0.1, latents=3), source)
    assert made.activity == 0.1 and made.latents == 15


def test_weights_decay_in_training(tmp_path):
    told = [cell(replace(TINY, dci_rows=0, decay=d), 0, tmp_path / str(d))["scores"]["explained"] for d in (0.0, 50.0)]
    assert told[0] != told[1]


def test_training_reconstructs(tmp_path):
    p = changed(TINY, {"steps": 300, "batch": 32, "rate": 3e-3, "dci_rows": 0})
    found = cell(p, 0, tmp_path)["scores"]
    assert found["explained"] > 0.3


def test_images_that_are_not_there_are_named():
    with pytest.raises(InputError, match="no source of images named 'stars'"):
        Parameters(data="sprites, stars")

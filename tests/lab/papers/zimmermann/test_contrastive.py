"""Cells of the contrastive experiments: process and objective, determinism, resuming, and what they recover."""

from dataclasses import replace

import numpy as np
import pytest

from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.zimmermann.contrastive import (
    Parameters,
    cell,
    objective,
    options,
    process,
    scores,
    views,
)
from nearid.lab.papers.zimmermann.contrastive_tables import CONTRASTIVE_SPHERE
from nearid.lab.processes.mixing import draw_mixing
from nearid.lab.processes.spaces import Box, Unbounded

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

QUICK = parameters_for(
    CONTRASTIVE_SPHERE, "smoke", {"steps": 300, "width": 32, "batch": 256, "rate": 3e-3, "held_out": 1000}
)


def made(**changes):
    return process(Parameters(n=3, **changes), np.random.default_rng(0))


def test_the_process_is_the_one_that_is_asked_for():
    assert (made().similarity, made(kappa=10.0).conditional.label) == ("dot", "vMF(10)")
    boxed = made(space="box", conditional="generalised normal", marginal="laplace", marginal_scale=0.3)
    assert boxed.similarity == 3 and boxed.space == Box(3) and boxed.marginal.label == "Laplace(0.3)"
    free = made(space="unbounded", conditional="normal", scale=1.0, marginal="normal")
    assert free.space == Unbounded(3) and free.conditional.label == free.marginal.label == "normal(1)"
    assert len(free.mixing.weights) == 3 and free.mixing.slope == 0.2


def test_all_rows_of_a_seed_have_the_same_mixing():
    weights = [made(**c).mixing.weights for c in ({}, {"space": "box", "conditional": "normal"})]
    np.testing.assert_array_equal(*weights)
    np.testing.assert_array_equal(weights[0], draw_mixing(3, 3, np.random.default_rng(0)).weights)


def test_the_unit_of_distances_is_a_temperature():
    p = Parameters(output="unbounded", exponent=3.0, unit=0.1)
    assert objective(p).temperature == pytest.approx(1e-3) and objective(p).p == 3
    # The loss sees lengths in units of `unit` alone.
    a, b = torch.randn(2, 20, 4, generator=torch.Generator().manual_seed(0))
    long, short = objective(replace(p, unit=1.0)), objective(p)
    long.encoder = short.encoder = torch.nn.Identity()
    assert float(short(a * 0.1, b * 0.1)) == pytest.approx(float(long(a, b)), rel=1e-5)
    assert objective(Parameters()).temperature == 1 and objective(Parameters()).p is None


def test_the_published_protocol():
    p = parameters_for(CONTRASTIVE_SPHERE, "paper")
    shapes = [tuple(w.shape) for w in objective(p).parameters() if w.ndim == 2]
    assert shapes == [(100, 10), (500, 100), (500, 500), (500, 500), (500, 500), (100, 500), (10, 100)]
    how = options(p, 7)
    assert (how.steps, how.learning_rate, how.rate(0), how.rate(299_999)) == (300_000, 1e-4, 1e-4, 1e-4)
    assert how.seed == 7 and how.log_every == 50 and how.score_every == 15_000


@pytest.mark.parametrize(("steps", "looks"), [(1, 5), (7, 3), (130, 1), (2000, 20)])
def test_scores_are_taken_about_as_often_as_asked(steps, looks):
    how = options(Parameters(steps=steps, looks=looks), 0)
    assert min(steps, looks) <= steps / how.score_every <= max(2 * looks, 1)


def test_scores_in_percent_know_a_rotation_from_a_permutation():
    z = np.random.default_rng(0).uniform(size=(2000, 2))
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    rotated, permuted = scores(z @ turn, z), scores(-3 * z[:, ::-1], z)
    assert rotated["r2"] == pytest.approx(100) and rotated["mcc"] == pytest.approx(100 / np.sqrt(2), abs=2)
    assert permuted["r2"] == pytest.approx(100) == permuted["mcc"]
    noise = np.random.default_rng(1).normal(size=(50, 2))
    assert scores(noise, z[:50], folds=1)["mcc"] > scores(noise, z[:50])["mcc"]


def test_a_killed_cell_goes_on_where_it_was(tmp_path, monkeypatch):
    from nearid.lab.models import trainer

    p = parameters_for(CONTRASTIVE_SPHERE, "smoke", {"steps": 40, "looks": 4})
    whole = cell(p, 0, tmp_path / "whole")
    how = options(p, 0)
    monkeypatch.setattr(
        "nearid.lab.papers.zimmermann.contrastive.options",
        lambda p, seed: replace(how, seed=seed, checkpoint_seconds=0.0),
    )
    plain, steps = trainer._Run.step, []

    def killed(run, step):
        steps.append(step)
        if step == 25:
            raise KeyboardInterrupt
        return plain(run, step)

    monkeypatch.setattr(trainer._Run, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        cell(p, 0, tmp_path / "killed")
    monkeypatch.setattr(trainer._Run, "step", lambda run, step: (steps.append(step), plain(run, step))[1])
    steps.clear()
    assert cell(p, 0, tmp_path / "killed") == whole and steps[0] == 20


def test_a_little_training_inverts_the_process(tmp_path):
    # On a circle training may end in a map that does not wind around it once; on a sphere it has found the way in every
    # draw, with less than 1% unexplained.
    found = cell(replace(QUICK, n=3, steps=600, kappa=10.0), 0, tmp_path)["scores"]
    assert found["r2"] > 97 and found["r2"] > found["identity_r2"] + 2
    assert found["r2_in_sample"] == pytest.approx(found["r2"], abs=0.5)


def test_supervision_recovers_the_latents_one_by_one(tmp_path):
    p = replace(QUICK, space="box", conditional="normal", objective="supervised", output="unbounded")
    found = cell(p, 0, tmp_path)["scores"]
    assert found["r2"] > 95 and found["mcc"] > 97 and found["mcc"] > found["identity_mcc"] + 5


def test_views_are_in_the_order_of_the_latents():
    z = np.random.default_rng(0).uniform(size=(4000, 7))
    v = views(z[:, [1, 2, 0, 6, 3, 5, 4]], z, z)
    assert np.asarray(v["recovered"]).shape == (300, 5) and v["recovered"] == v["true"]
    np.testing.assert_allclose(np.diag(v["matched"]), 1)
    np.testing.assert_allclose(v["observed"], v["matched"])
    assert np.max(np.asarray(v["matched"]) - np.eye(7)) < 0.2
    # Of images there is no correlation with the latents.
    assert views(z, z) == {key: value for key, value in v.items() if key != "observed"}

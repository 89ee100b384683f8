"""A cell of the cross-entropy experiments: right for the model of the theorem, deterministic, resumable."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import ortho_group

from nearid.lab.papers.reizinger import cross_entropy
from nearid.lab.papers.reizinger.cross_entropy import LABELS, Held, Parameters, cell, process_of, scores_of, views_of
from nearid.lab.processes.noise import Laplace, Normal, VonMisesFisher

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

SMALL = Parameters(d=3, classes=20, instances=60, draws=50, widths=(16,), steps=12, batch=64, held_out=400, looks=4)
DIET = replace(SMALL, labels="instances")


class Inverse(torch.nn.Module):
    """The inverse of a mixing and a linear map after it."""

    def __init__(self, mixing, matrix):
        super().__init__()
        self.mixing, self.matrix = mixing, matrix

    def forward(self, x):
        return torch.as_tensor(self.mixing.inverse(x.double().numpy()) @ self.matrix)


def ideal(p, *, matrix, shift=0.0):
    """The held-out rows of a process, and the model with features z @ matrix that has the true posterior."""
    from nearid.lab.models.objectives import CrossEntropy

    rng = np.random.default_rng(0)
    process = process_of(p, rng)
    z, labels = process.sample(p.held_out, rng)
    instances = p.labels == "instances"
    count = p.instances if instances else p.classes
    vectors = process.vectors[process.class_of(np.arange(count))]
    model = CrossEntropy(
        Inverse(process.mixing, matrix),
        p.d,
        count,
        learn_beta=p.learn_beta,
        normalise_features=p.unit_features,
        normalise_weights=p.normalise,
    ).double()
    with torch.no_grad():
        model.weights[:] = torch.as_tensor(p.kappa * vectors @ np.linalg.inv(matrix).T + shift)
    return model.eval(), Held(
        process, z, process.observe(z), labels if instances else process.class_of(labels), vectors
    )


@pytest.mark.parametrize("labels", LABELS)
def test_the_model_of_the_theorem_has_perfect_scores(labels):
    p = replace(SMALL, labels=labels)
    model, held = ideal(p, matrix=p.kappa * ortho_group.rvs(3, random_state=1))
    with torch.no_grad():
        found = scores_of(p, model, held)
    assert found["r2_z"] == pytest.approx(100) and found["r2_w"] == pytest.approx(100)
    assert max(found["singular_z"], found["singular_w"], abs(found["excess"])) < 1e-9 and found["missing"] == 0
    assert found.get("within", 0.0) < 1e-9 and ("within" in found) == (labels == "instances")


def test_free_heads_may_be_any_affine_map(rng):
    p = replace(DIET, normalise=False)
    model, held = ideal(p, matrix=rng.normal(size=(3, 3)), shift=rng.normal(size=3))
    with torch.no_grad():
        found, views = scores_of(p, model, held), views_of(p, model, held)
    assert found["r2_z"] == pytest.approx(100) and found["r2_w"] == pytest.approx(100)
    assert abs(found["excess"]) < 1e-9 and "singular_z" not in found
    np.testing.assert_allclose(views["recovered"], views["true"], atol=2e-4)
    np.testing.assert_allclose(np.diag(views["after"]), 1)
    assert np.diag(views["before"]).min() < 0.99


def test_a_model_that_is_off_is_seen(rng):
    p = DIET
    rotation = ortho_group.rvs(3, random_state=1)
    model, held = ideal(p, matrix=p.kappa * rotation @ np.diag([1, 1, 0.5]))
    with torch.no_grad():
        found = scores_of(p, model, held)
    assert found["r2_z"] == pytest.approx(100)
    # One of three singular values is 2 / kappa.
    assert found["singular_z"] == pytest.approx(1 / (3 * p.kappa)) and found["excess"] > 0.01


@pytest.mark.parametrize(("normalise", "missing"), [(True, 12 - 4), (False, 6 - 3)])
def test_few_classes_lack_dimensions(normalise, missing, tmp_path):
    found = cell(replace(SMALL, d=6, classes=4, steps=1, normalise=normalise), 0, tmp_path)["scores"]
    assert found["missing"] == missing and "r2_w" not in found


def test_conditionals():
    rng = np.random.default_rng(0)
    kinds = {
        name: process_of(replace(SMALL, conditional=name), rng).conditional for name in ("vmf", "laplace", "normal")
    }
    assert [type(kinds[k]) for k in kinds] == [VonMisesFisher, Laplace, Normal]


def test_noise_of_a_scale_is_projected_or_not(rng):
    made = {
        projected: process_of(replace(SMALL, conditional="laplace", scale=2.0, projected=projected), rng)
        for projected in (True, False)
    }
    assert all(process.conditional == Laplace(2.0) for process in made.values())
    z, _ = made[True].sample(5000, rng)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1)
    z, instance = made[False].sample(50_000, rng)
    noise = z - made[False].vectors[made[False].class_of(instance)]
    # The mean absolute value of Laplace noise is its scale.
    assert np.abs(noise).mean() == pytest.approx(2, rel=0.03)


@pytest.mark.parametrize("normalise", [True, False])
def test_features_of_length_one_are_a_rotation(normalise):
    p = replace(SMALL, unit_features=True, normalise=normalise, learn_beta=normalise)
    model, held = ideal(p, matrix=ortho_group.rvs(3, random_state=1))
    with torch.no_grad():
        if normalise:
            # The heads have lost their length, which is the inverse temperature.
            model.log_factor.fill_(np.log(p.kappa))
        found = scores_of(p, model, held)
    assert found["rotation_z"] < 1e-9 and abs(found["excess"]) < 1e-9
    assert ("singular_w" in found) == normalise and found.get("beta", 1.0) == pytest.approx(1)


def test_looks_are_even_and_the_last_one_is_at_the_end(tmp_path):
    curves = cell(DIET, 0, tmp_path)["curves"]
    assert curves["r2_z"]["x"] == [3, 6, 9, 12] and len(curves["loss"]["y"]) == 4


def test_both_heads_meet_the_same_latents(tmp_path):
    views = [cell(replace(DIET, normalise=n), 0, tmp_path / str(n))["views"]["true"] for n in (True, False)]
    assert views[0] == views[1]


def test_killed_and_resumed_equals_undisturbed(tmp_path, monkeypatch):
    undisturbed = cell(DIET, 0, tmp_path / "whole")
    ticks = iter(range(0, 100_000, 100))
    # Time flies, so that every record is a checkpoint.
    monkeypatch.setattr("nearid.lab.models.trainer.time", SimpleNamespace(monotonic=lambda: next(ticks)))
    fits, calls = cross_entropy.fits_of, []

    def killed_at_the_third(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fits(*args)

    monkeypatch.setattr(cross_entropy, "fits_of", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        cell(DIET, 0, tmp_path / "killed")
    assert cell(DIET, 0, tmp_path / "killed") == undisturbed
    # Looks at steps 3 and 6, the one that was cut short, those at 9 and 12, the final scores and the views.
    assert len(calls) == 2 + 1 + 2 + 2


def test_a_little_training_inverts_an_easy_process(tmp_path):
    p = replace(SMALL, layers=1, widths=(32,), steps=400, batch=256, rate=3e-2, kappa=5.0)
    found = cell(p, 0, tmp_path)["scores"]
    assert found["r2_z"] > 95 and found["r2_w"] > 95 and found["singular_w"] < 0.15
    assert -0.02 < found["excess"] < 0.1


def test_labels_that_are_noise_teach_nothing(tmp_path):
    p = replace(DIET, layers=1, widths=(32,), steps=200, batch=256, rate=3e-2, noise=1.0)
    found = cell(p, 0, tmp_path)
    assert found["scores"]["r2_w"] < 20
    # What the theorem says of the optimum has no meaning there.
    assert not {"excess", "singular_z", "rotation_z"} & found["scores"].keys()

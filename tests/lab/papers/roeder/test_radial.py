"""The radial experiment: its data, its determinism, and that a little training already relates the runs."""

import json
import math

import numpy as np
import pytest

from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.roeder.radial import (
    RADIAL,
    Parameters,
    cell,
    classifier,
    draw,
    heads_agree,
    pairs_of_classes,
    rows,
    transforms,
)
from nearid.lab.processes.classes import RadialClasses

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")


def test_rows_are_in_units_of_their_spread(rng):
    x, y = draw(Parameters(spread=7.0), 20_000, rng)
    assert x.std() == pytest.approx(1, abs=0.02)
    np.testing.assert_array_equal(y, np.degrees(np.arctan2(x[:, 1], x[:, 0])) % 360 // 20)


def test_the_start_of_a_classifier():
    zero, usual, control = (classifier(Parameters(**changes), 5) for changes in ({}, {"head": 1.0}, {"classes": 2}))
    assert not zero.weights.any() and 0.5 < usual.weights.abs().max() <= 2**-0.5
    for a, b, c in zip(*(m.encoder.parameters() for m in (zero, usual, control)), strict=True):
        assert torch.equal(a, b) and torch.equal(a, c)


def test_looks_from_start_to_end(tmp_path):
    p = parameters_for(RADIAL, "smoke", {"steps": 10, "looks": 3})
    assert cell(p, 0, tmp_path)["curves"]["cca"]["x"] == [0, 3, 6, 9, 10]


def test_killed_and_resumed_equals_undisturbed(tmp_path, monkeypatch):
    p = parameters_for(RADIAL, "smoke", {"steps": 30, "looks": 6})
    expected = cell(p, 0, tmp_path / "undisturbed")
    sample, drawn = RadialClasses.sample, []

    class Killed(Exception):
        pass

    def dying(self, size, rng):
        drawn.append(size)
        if len(drawn) in (24, 48):
            raise Killed
        return sample(self, size, rng)

    monkeypatch.setattr(RadialClasses, "sample", dying)
    for _ in range(2):
        with pytest.raises(Killed):
            cell(p, 0, tmp_path / "killed")
    assert cell(p, 0, tmp_path / "killed") == expected
    # Two runs of 30 steps, and what was done twice after two kills: fewer than 5 steps each.
    assert 60 < drawn.count(p.batch) < 60 + 2 * 10


def test_the_control_has_no_map_from_heads(tmp_path):
    p = parameters_for(RADIAL, "smoke", {"classes": 2, "steps": 40})
    found = cell(p, 0, tmp_path)["scores"]
    assert found["missing"] == 1 and "r2_fitted" in found
    assert not {"r2_heads", "disagreement", "condition"} & found.keys()


def test_transforms_of_twins(rng):
    # Equal likelihoods by construction: (f A) . (A^-1 g) = f . g.
    f, g, matrix = rng.normal(size=(300, 2)), rng.normal(size=(5, 2)), rng.normal(size=(2, 2))
    found = transforms((g, g @ np.linalg.inv(matrix).T), (f, f @ matrix))
    assert found["missing"] == 0 and found["r2_heads"] == pytest.approx(1) and found["r2_fitted"] == pytest.approx(1)
    assert found["disagreement"] < 1e-8 and found["condition"] >= np.linalg.cond(g - g.mean(axis=0)) * (1 - 1e-9)


def twins(rng, noise=0.0):
    f, g, matrix = rng.normal(size=(300, 2)), rng.normal(size=(12, 2)), np.array([[2.0, 0.5], [-1.0, 0.7]])
    # The likelihoods see differences of g alone: a constant changes nothing.
    other = g @ np.linalg.inv(matrix).T + [3.0, -1.0]
    return (g, other + noise * rng.normal(size=g.shape)), (f, f @ matrix)


def test_class_vectors_of_twins(rng):
    found = heads_agree(*twins(rng))
    assert found["r2_g"] == pytest.approx(1) and found["r2_g_features"] == pytest.approx(1)
    heads, features = twins(rng)
    # Without the transpose, and with vectors that are unrelated, it fails.
    wrong = heads[0], (heads[0] - heads[0].mean(axis=0)) @ np.linalg.inv(np.array([[2.0, 0.5], [-1.0, 0.7]]))
    assert heads_agree(wrong, features)["r2_g_features"] < 0.9 and heads_agree(wrong, features)["r2_g"] > 0.99
    unrelated = heads_agree((heads[0], rng.normal(size=(12, 2))), features)
    assert unrelated["r2_g"] < 0.6 and unrelated["r2_g_features"] < 0.6
    assert heads_agree((heads[0][:3], heads[1][:3]), features) == {}


def test_each_class_is_predicted_without_itself(rng):
    heads, features = twins(rng, noise=0.3)
    g, h = heads
    errors = []
    for k in range(len(g)):
        others = np.arange(len(g)) != k
        design = np.column_stack([g, np.ones(len(g))])
        errors.append(h[k] - design[k] @ np.linalg.lstsq(design[others], h[others])[0])
    expected = 1 - np.sum(np.square(errors)) / np.sum((h - h.mean(axis=0)) ** 2)
    assert heads_agree(heads, features)["r2_g"] == pytest.approx(expected)


def test_pairs_that_are_ill_conditioned_enlarge_errors(rng):
    exact = pairs_of_classes(*twins(rng))
    assert exact["r2_well"] == pytest.approx(1) and exact["r2_ill"] == pytest.approx(1)
    found = pairs_of_classes(*twins(rng, noise=0.02))
    assert found["r2_well"] > 0.9 and found["r2_ill"] < found["r2_well"] - 0.1
    heads, features = twins(rng)
    assert pairs_of_classes((heads[0][:2], heads[1][:2]), features) == {}


def test_runs_become_alike_while_they_learn(tmp_path):
    p = parameters_for(RADIAL, "smoke", {"steps": 500, "rate": 5e-3})
    found = cell(p, 0, tmp_path)
    assert found["scores"]["cca"] > 0.97 and found["scores"]["accuracy"] > 70
    # The map from the heads alone is nearly as good as the best there is.
    assert found["scores"]["r2_heads"] > 0.9 and found["scores"]["r2_heads"] <= found["scores"]["r2_fitted"] + 0.01
    assert found["curves"]["loss"]["y"][0] == pytest.approx(math.log(18)) and found["curves"]["loss"]["y"][-1] < 1
    v = found["views"]
    after = np.asarray(v["after"])
    assert np.diag(after).min() > 0.95
    # The linear map is a fit: it leaves less of the second run unexplained than the first run's own features.
    second, mapped = np.asarray(v["second"]), np.asarray(v["mapped"])
    assert np.var(second - mapped) < 0.1 * np.var(second)


def test_the_published_value_is_that_of_18_classes_and_two_features():
    assert rows(Parameters())[0].published["iterations"].value == 4000
    assert not rows(Parameters(classes=12))[0].published and not rows(Parameters(features=3))[0].published
    assert "18" not in RADIAL.about


def test_the_control_has_too_few_classes():
    by_key = {r.key: r for r in rows(Parameters(features=3))}
    assert by_key["control"].changes == {"classes": 3} and "head" in by_key["random-head"].changes


@pytest.mark.own_seeds
def test_a_cell_in_a_process_of_its_own_gives_what_it_gives_here(tmp_path, monkeypatch):
    # One process that loads torch is enough.
    monkeypatch.setattr("nearid.engines.local.cores", lambda: 1)
    found = reproduce(RADIAL, tmp_path / "out", preset="smoke", seeds=1, rows=["published"])
    here = cell(found.cells[0].cell.parameters, 0, tmp_path / "here")
    assert found.cells[0].data == json.loads(json.dumps(here))

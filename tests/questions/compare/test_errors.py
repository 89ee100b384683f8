"""Errors by blocks and threads are those of whole arrays; chance is what permuted rows reach, whatever the relation."""

import numpy as np
import pytest

import nearid.engines.local as local
import nearid.questions.compare.chance as chance
from nearid import compare


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_change_nothing(rng, monkeypatch, dtype):
    x = rng.normal(size=(3000, 7)).astype(dtype)
    y = (x @ rng.normal(size=(7, 7)) + rng.normal(size=(3000, 7))).astype(dtype)
    whole = compare(x, y)
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    cut = compare(x, y)
    for name, g in whole.groups.items():
        e = cut.groups[name]
        assert (e.epsilon.value, e.max) == pytest.approx((g.epsilon.value, g.max), rel=1e-6)
    assert cut.similarity.cka == pytest.approx(whole.similarity.cka, rel=1e-6)
    assert cut.diameter.lower == pytest.approx(whole.diameter.lower, rel=1e-12)


def test_inputs_are_left_as_they_are(rng):
    x, y = rng.normal(size=(500, 3)) + 5, rng.normal(size=(500, 3))
    before = x.copy(), y.copy()
    compare(x, y, in_sample=True)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_mixed_precision_uses_the_higher(rng):
    x = rng.normal(size=(500, 3)).astype(np.float32)
    found = compare(x, x.astype(np.float64) * 2 + 1)
    assert found.groups["permutation"].max < 1e-12


def test_chance_of_identical_rows_is_the_constant_guess(rng):
    x = rng.normal(size=(4000, 5))
    found = compare(x, x, names=["x", "same x"])
    guess = np.linalg.norm(x - x.mean(axis=0), axis=1).mean() / found.diameter.lower
    for g in found.groups.values():
        assert g.epsilon.chance == pytest.approx(guess, rel=0.02)
        assert abs(g.r2.chance) < 0.01
    assert abs(np.mean(found.chance_similarity.cca)) < 0.03


def test_chance_is_measured_on_a_sample_of_many_rows(rng, monkeypatch):
    monkeypatch.setattr(chance, "ROWS", 400)
    x = rng.normal(size=(5000, 3))
    found = compare(x, x)
    assert found.provenance["chance_rows"] == 400
    whole = np.linalg.norm(x - x.mean(axis=0), axis=1).mean() / found.diameter.lower
    assert found.groups["rigid"].epsilon.chance == pytest.approx(whole, rel=0.1)


@pytest.mark.parametrize("scale", [True, False])
def test_chance_of_a_sample_is_held_down_to_the_guess_where_fits_can_shrink(rng, monkeypatch, scale):
    monkeypatch.setattr(chance, "ROWS", 100)
    x, y = rng.laplace(size=(4000, 4)), rng.laplace(size=(4000, 4))
    found = compare(x, y, groups="all", scale=scale, permutations=5)
    assert found.provenance["chance_rows"] == 100
    r2 = {name: g.r2.chance for name, g in found.groups.items()}
    # These have scales of their own, whatever `scale` says.
    assert r2.pop("linear") >= 0 and r2.pop("scaled_permutation") >= 0
    # Without a scale unrelated rows are as far apart as two draws.
    assert all(r >= 0 if scale else r < -0.3 for r in r2.values())
    guess = found.groups["linear"].epsilon.chance
    assert all((found.groups[name].epsilon.chance > 1.15 * guess) != scale for name in r2)


def test_rows_left_out_stay_out(rng):
    x = rng.normal(size=(200, 3))
    x[:50] = np.nan
    found = compare(x, x, drop_nonfinite=True)
    assert found.provenance["chance_rows"] == 150 and np.isfinite(found.groups["rigid"].epsilon.chance)


def test_a_target_that_varies_in_few_rows_gives_no_nan(rng):
    y = np.zeros((40, 2))
    y[:3] = rng.normal(size=(3, 2))
    found = compare(rng.normal(size=(40, 3)), y)
    assert found.verdict.group == "none" and all(np.isfinite(g.r2.chance) for g in found.groups.values())

"""Parallel analysis without permutations, and the number of components that it suggests."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import nearid
from nearid import ICA
from nearid.ica.noise_floor import directions_above_noise, largest_by_chance


def directions(x):
    """Principal directions times their standard deviations, by a decomposition of the rows."""
    _, sizes, vt = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    return vt.T * sizes / np.sqrt(len(x))


def unmixed(x, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ICA(**options).fit(x)


def suggestions(ica):
    return [alert.message for alert in ica.alerts if alert.code == "noise_floor"]


def planted(rng, n=800, sources=5, columns=40, noise=0.3):
    """Sources, and many columns of them with noise."""
    drawn = rng.laplace(size=(n, sources))
    return drawn, drawn @ rng.normal(size=(sources, columns)) + noise * rng.normal(size=(n, columns))


def noisy_sources(rng):
    return planted(rng)[1]


@pytest.mark.parametrize(("n", "p"), [(200, 40), (1000, 10), (100, 300)])
def test_the_level_is_that_of_unrelated_columns(rng, n, p):
    """Oracle: the largest eigenvalue of the correlations of columns that were drawn apart from each other."""
    largest = []
    for _ in range(100):
        x = rng.normal(size=(n, p))
        largest.append(np.linalg.norm((x - x.mean(axis=0)) / x.std(axis=0), 2) ** 2 / n)
    level = largest_by_chance(n, p)
    # 1% of the draws lie above the level; more than 8 of 100 with probability 1e-6.
    assert np.sum(np.array(largest) > level) <= 8
    # And the level is not far above them all.
    assert level < 1.1 * np.max(largest)


def test_permuted_columns_have_no_direction_and_sources_as_many_as_they_are(rng):
    x = noisy_sources(rng)
    assert directions_above_noise(directions(x), x.std(axis=0), len(x)) == 5
    permuted = np.column_stack([rng.permutation(column) for column in x.T])
    assert directions_above_noise(directions(permuted), permuted.std(axis=0), len(x)) <= 1
    # Units of the columns change nothing, nor do columns that are constant.
    units = np.append(10.0 ** rng.uniform(-3, 3, size=40), 0)
    scaled = np.column_stack([x, np.ones(len(x))]) * units
    assert directions_above_noise(directions(scaled)[:, :40], scaled.std(axis=0), len(x)) == 5


# Rows that are many, and fewer than columns; a quarter of the directions and fewer are found one by one.
@pytest.mark.parametrize(("n", "p"), [(500, 40), (60, 200)])
@pytest.mark.parametrize("k", [None, 20, 10, 3])
def test_noise_has_no_direction_however_few_are_kept(n, p, k):
    x = np.random.default_rng(5).normal(size=(n, p)) * np.geomspace(0.1, 10, p)
    assert unmixed(x, n_components=k, starts=1).diagnostics_.above_noise == 0


@pytest.mark.parametrize(("n", "p", "k"), [(500, 40, 10), (500, 40, 20), (500, 40, None), (60, 200, 3)])
def test_sizes_are_those_of_the_columns_and_constant_ones_have_none(rng, n, p, k):
    """Oracle: variances of the rows that the kept directions give back, in units of the columns of all rows."""
    x = planted(rng, n, columns=p, noise=1.0)[1] * np.geomspace(0.1, 10, p)
    constant = np.column_stack([x, np.full(n, 0.1)])
    vt = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2][:k]
    kept = (x - x.mean(axis=0)) @ vt.T @ vt / x.std(axis=0)
    above = int(np.sum(np.linalg.svd(kept)[1] ** 2 / n > largest_by_chance(n, p)))
    for rows in (x, constant):
        assert unmixed(rows, n_components=k, starts=1).diagnostics_.above_noise == above


def test_fewer_components_are_suggested_and_these_are_the_sources(rng):
    sources, x = planted(rng)
    every = unmixed(x)
    [text] = suggestions(every)
    assert every.diagnostics_.above_noise == 5 and every.diagnostics_.trusted <= 5
    assert text.startswith("35 of 40 principal directions") and text.endswith("--n-components 5 (n_components=5).")
    few = unmixed(x, n_components=5)
    assert suggestions(few) == [] and few.diagnostics_.trusted == 5
    alike = np.abs(np.corrcoef(few.transform(x).T, sources.T)[:5, 5:])
    assert alike.max(axis=0).min() > 0.9 and set(alike.argmax(axis=0)) == set(range(5))
    assert few.to_dict()["diagnostics"]["above_noise"] == 5
    assert few.view.facts["directions with more variance than unrelated columns have"] == "5 of 5"


def test_small_directions_that_are_sources_are_not_called_noise(rng):
    """A square mixing has small directions too, but their components come out of every start."""
    mixing = np.linalg.qr(rng.normal(size=(12, 12)))[0] * np.geomspace(1, 1e-3, 12)
    x = rng.laplace(size=(6000, 12)) @ np.linalg.qr(rng.normal(size=(12, 12)))[0] @ mixing.T
    ica = unmixed(x)
    assert ica.diagnostics_.above_noise < 12 and ica.diagnostics_.trusted == 12
    assert suggestions(ica) == []


def test_nothing_is_said_without_whitening_or_where_no_direction_is_small(rng):
    rotation = unmixed(noisy_sources(rng), whiten=False)
    assert rotation.diagnostics_.above_noise is None and suggestions(rotation) == []
    assert suggestions(unmixed(rng.normal(size=(500, 20)))) == []


def test_the_number_is_kept_with_the_model(rng, tmp_path):
    ica = unmixed(noisy_sources(rng), n_components=8)
    ica.save(tmp_path / "model")
    again = ICA.load(tmp_path / "model")
    assert again.diagnostics_.above_noise == ica.diagnostics_.above_noise == 5
    np.testing.assert_array_equal(again.diagnostics_.kurtosis, ica.diagnostics_.kurtosis)
    np.testing.assert_array_equal(again.diagnostics_.agreement, ica.diagnostics_.agreement)


DATA = Path(os.environ.get("NEARID_DATA", "")) / "ensembles"


@pytest.mark.skipif(not (DATA / "ani_C.npz").is_file(), reason="NEARID_DATA has no ensembles")
def test_the_suggestion_brings_two_runs_closer_on_real_rows(rng):
    """Matched correlation, on other rows, of the components of two networks, with all and with the suggested number."""
    from scipy.optimize import linear_sum_assignment

    def matched(sides, fitted, k):
        found = [unmixed(side[fitted], n_components=k) for side in sides]
        x, y = (ica.transform(side) for ica, side in zip(found, sides, strict=True))
        k = x.shape[1]
        own, other = linear_sum_assignment(-np.abs(np.corrcoef(x[fitted].T, y[fitted].T)[:k, k:]))
        return np.abs(np.corrcoef(x[~fitted].T, y[~fitted].T)[:k, k:][own, other]).mean(), found

    gains = []
    with np.load(DATA / "ani_C.npz") as runs:
        for pair in (("ani1x_0", "ani1x_1"), ("ani1x_2", "ani1x_3")):
            sides = [runs[name].astype(float) for name in pair]
            fitted = rng.permutation(len(sides[0])) < len(sides[0]) // 2
            before, found = matched(sides, fitted, None)
            assert all(len(suggestions(ica)) == 1 for ica in found)
            gains.append(matched(sides, fitted, min(ica.diagnostics_.above_noise for ica in found))[0] - before)
    # 0.47 against 0.24 in the mean of nine pairs and halves.
    assert np.mean(gains) > 0.05


@pytest.mark.skipif(not (DATA / "ani_H.npz").is_file(), reason="NEARID_DATA has no ensembles")
def test_hydrogen_has_far_fewer_directions_than_columns():
    with np.load(DATA / "ani_H.npz") as runs:
        ica = unmixed(runs["ani1x_0"])
    assert 8 <= ica.diagnostics_.above_noise <= 20
    assert f"n_components={ica.diagnostics_.above_noise}" in suggestions(ica)[0]


def test_the_page_and_the_command_name_the_number(rng):
    text = str(nearid.unmix(noisy_sources(rng)))
    assert "more variance than unrelated columns have: 5 of 40" in text and "n_components=5" in text

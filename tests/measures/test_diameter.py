"""The diameter against all pairs; brackets; shapes that prune well and shapes that do not."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.distance import pdist

import nearid.measures.diameter as room
from nearid import InputError, diameter, open_rows


def clouds(rng):
    sphere = rng.normal(size=(3000, 12))
    return {
        "gaussian": rng.normal(size=(3000, 20)),
        "heavy": rng.standard_t(2, size=(3000, 8)),
        "sphere": sphere / np.linalg.norm(sphere, axis=1, keepdims=True),
        "cube corners": rng.integers(0, 2, size=(3000, 9)).astype(float),
        "two clusters": np.concatenate([rng.normal(size=(1500, 6)), rng.normal(size=(1500, 6)) + 50]),
        "offset": rng.normal(size=(3000, 6)) + 1e4,
        "line": rng.normal(size=(3000, 1)),
        "copies": np.repeat(rng.normal(size=(3, 5)), 1000, axis=0),
    }


@pytest.mark.parametrize("name", clouds(np.random.default_rng(0)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_all_pairs(rng, name, dtype):
    points = clouds(rng)[name].astype(dtype)
    found = diameter(points)
    assert found.exact and found.lower == found.upper
    assert found.lower == pytest.approx(pdist(points.astype(np.float64)).max(), rel=1e-12)
    i, j = found.pair
    assert np.linalg.norm(points[i].astype(np.float64) - points[j]) == pytest.approx(found.lower, rel=1e-12)


@given(st.integers(2, 60), st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from([1e-20, 1.0, 1e15]))
def test_small_sets_in_any_units(n, d, seed, unit):
    points = np.random.default_rng(seed).standard_t(2, size=(n, d)) * unit
    assert diameter(points).lower == pytest.approx(pdist(points / unit).max() * unit, rel=1e-9)


@pytest.mark.parametrize("name", clouds(np.random.default_rng(0)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bracket_holds_the_truth(rng, name, dtype):
    points = clouds(rng)[name].astype(dtype)
    truth = pdist(points.astype(np.float64)).max()
    found = diameter(points, budget=0)
    if not found.exact:  # where pruning leaves nothing to search, it is exact at no cost
        assert found.lower <= truth * (1 + 1e-12) and truth <= found.upper * (1 + 1e-12)
    assert found.lower >= 0.85 * truth


def test_some_bracket_is_really_a_bracket(rng):
    assert not diameter(clouds(rng)["gaussian"], budget=0).exact


def test_rows_are_searched_in_tiles(rng, monkeypatch):
    monkeypatch.setattr(room, "TILE", 7)
    monkeypatch.setattr(room, "WIDTH", 11)
    monkeypatch.setattr(room, "EXTREMES", 16)
    points = rng.normal(size=(200, 10))
    assert diameter(points).lower == pytest.approx(pdist(points).max(), rel=1e-12)


def test_rows_with_nan_radii_are_left_out(rng):
    points = rng.normal(size=(50, 3))
    points[7] = 1e6
    centre = np.delete(points, 7, axis=0).mean(axis=0)
    radii = np.linalg.norm(points - centre, axis=1)
    radii[7] = np.nan
    found = room.search(open_rows(points), None, radii, centre)
    assert found.lower == pytest.approx(pdist(np.delete(points, 7, axis=0)).max())


def test_from_a_file(tmp_path, rng):
    points = rng.normal(size=(100, 3))
    np.save(tmp_path / "points.npy", points)
    assert diameter(tmp_path / "points.npy").lower == pytest.approx(pdist(points).max())


@pytest.mark.parametrize("unit", [1e-22, 1.0, 1e20])
@pytest.mark.parametrize("offset", [0, 1000])
def test_a_float32_bracket_holds_in_any_units(rng, unit, offset):
    sphere = rng.normal(size=(4000, 8))
    points = ((sphere / np.linalg.norm(sphere, axis=1, keepdims=True) + offset) * unit).astype(np.float32)
    truth = pdist(points.astype(np.float64) / unit).max() * unit
    found = diameter(points, budget=0)
    assert not found.exact and 0.95 * truth <= found.lower <= truth * (1 + 1e-9) and truth <= found.upper


@pytest.mark.parametrize(
    ("bad", "words"), [(np.nan, "nan at row 3, column 1"), (np.inf, "inf at row 3"), (1e300, "leave")]
)
def test_bad_values_are_refused(rng, bad, words):
    points = rng.normal(size=(50, 2))
    points[3, 1] = bad
    with pytest.raises(InputError, match=words):
        diameter(points)

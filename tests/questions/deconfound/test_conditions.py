"""The four conditions: the same information in other coordinates, fitted on the rows that were asked for."""

from dataclasses import replace

import numpy as np
import pytest

from deconfound_plans import plan_of
from nearid import ICA, InputError, Whitening
from nearid.base.progress import silent
from nearid.engines.local import LOCAL
from nearid.moments import Moments
from nearid.questions.deconfound.conditions import ComponentRows, fit_conditions, sample
from nearid.questions.deconfound.design import open_design
from nearid.questions.deconfound.evaluate import Timer


@pytest.fixture(scope="module")
def x():
    rng = np.random.default_rng(0)
    # Of few columns a random turn may be next to none.
    mixed = rng.laplace(size=(2000, 8)) @ rng.normal(size=(8, 8)) + 5
    return np.column_stack([mixed, np.full(2000, 2.0)]).astype(np.float32)


def fitted(x, names, most=None, **options):
    d = open_design(x, list("ab") * (len(x) // 2), np.arange(len(x)) // 4, **options)
    plan = plan_of(conditions=names, fit_rows=most)
    return d, fit_conditions(d, Moments.of(x), plan, LOCAL, silent, Timer().stage)


def test_a_sample_that_does_not_fit_the_memory_is_refused(x, monkeypatch):
    monkeypatch.setattr("nearid.base.limits.available_memory", lambda: 20_000)
    assert fitted(x, ("pca",), most=500)[1].rows == 500
    with pytest.raises(
        InputError, match=r"Fitting to 600 rows of embedding needs 21.6 kB .* with fit_rows \(--fit-rows\)"
    ):
        fitted(x, ("pca",), most=600)


def test_all_four(x):
    d, found = fitted(x, ("base", "pca", "random", "ica"))
    views = {name: ComponentRows(d.rows, c).take(np.arange(2000)) for name, c in found.conditions.items()}
    assert all(v.dtype == np.float32 and v.shape == (2000, 8) for v in views.values())
    assert np.allclose(views["base"], ((x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1))[:, :8], atol=1e-4)
    for name in ("pca", "random", "ica"):
        assert np.allclose(np.cov(views[name].T, bias=True), np.eye(8), atol=1e-4)
    with pytest.warns(UserWarning):
        assert np.allclose(np.abs(views["pca"]), np.abs(Whitening().fit_transform(x)), atol=1e-3)
    with pytest.warns(UserWarning):
        assert np.allclose(views["ica"], ICA(random_state=0).fit_transform(x), atol=5e-2)
    turn = np.linalg.lstsq(views["pca"], views["random"], rcond=None)[0]
    assert np.allclose(turn @ turn.T, np.eye(8), atol=1e-3) and np.abs(turn).max() < 0.99
    assert found.rows == 2000 and found.diagnostics is not None


def test_few_rows_have_few_components():
    """One for ten rows, at least ten; never more than are asked for, or exist."""
    rng = np.random.default_rng(0)
    for n, d, width in ((60, 40, 10), (300, 40, 30), (300, 20, 20)):
        _, found = fitted(rng.normal(size=(n, d)), ("base", "pca", "random", "ica"))
        assert [c.width for c in found.conditions.values()] == [d, *[width] * 3]
    # The rows that count are those that the maps are fitted on.
    _, found = fitted(rng.normal(size=(400, 40)), ("pca",), most=200)
    assert found.conditions["pca"].width == 20


def test_rotations_differ_and_keep_what_is_whitened(x):
    d, found = fitted(x, ("random",))
    assert len(found.turns) == 2 and found.turns[0] is found.conditions["random"]
    views = [ComponentRows(d.rows, turn).take(np.arange(2000)) for turn in found.turns]
    assert all(np.allclose(np.cov(v.T, bias=True), np.eye(8), atol=1e-4) for v in views)
    assert all(not np.allclose(views[0], v, atol=0.1) for v in views[1:])


def test_which_conditions_have_the_same_distances(x):
    _, found = fitted(x, ("base", "pca", "random", "ica"))
    base, pca, random, ica = (found.conditions[name] for name in ("base", "pca", "random", "ica"))
    assert random.turns(pca) and ica.turns(pca) and ica.turns(random)
    assert not pca.turns(base) and not base.turns(pca) and not base.turns(base)
    assert not replace(pca, matrix=1.001 * pca.matrix).turns(pca)
    assert not replace(pca, mean=pca.mean + 1).turns(pca) and not pca.some(np.arange(3)).turns(pca)


def test_some_rows_and_some_components(x):
    d, found = fitted(x, ("base", "ica"))
    for name, c in found.conditions.items():
        view = ComponentRows(d.rows, c)
        some, which = np.array([7, 3, 399]), np.array([2, 0])
        assert np.allclose(view.some(which).take(some), view.take(np.arange(2000))[some][:, which], atol=1e-5), name


def test_maps_are_fitted_on_one_row_of_each_block(x):
    x, blocks = x[:400], np.arange(400) // 2
    d, found = fitted(x, ("pca",), blocks=blocks)
    places = sample(d, None, 0)
    assert np.array_equal(blocks[places], np.arange(200)) and found.rows == 200
    part = ComponentRows(d.rows, found.conditions["pca"]).take(places)
    assert np.allclose(np.cov(part.T, bias=True), np.eye(8), atol=1e-3)
    # Names of wells repeat on every plate (of four rows).
    assert len(sample(fitted(x, ("pca",), blocks=list("ABAB") * 100)[0], None, 0)) == 200
    assert len(sample(d, 20, 0)) == 20 and sample(fitted(x, ("pca",))[0], None, 0) is None
    assert fitted(x, ("pca",), most=60)[1].rows == 60


def test_constant_columns_are_refused():
    with pytest.raises(InputError, match="constant"):
        fitted(np.ones((8, 2)), ("base",))

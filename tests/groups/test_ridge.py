"""The chosen penalty against scikit-learn on the rows: paths of errors, nested choice, generalised cross-validation."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV

from nearid.arrays import open_rows, pair_rows
from nearid.folds import assign, fold_moments
from nearid.groups.fits import apply, fit_linear
from nearid.groups.ridge import (
    GRID,
    NARROW,
    WIDE,
    Judges,
    RowShrinkage,
    Shrinkage,
    choose_penalties,
    generalised_penalty,
    penalty_of,
)
from nearid.moments import PairMoments


def related(rng, n, p, q, noise=1.0):
    x = rng.normal(size=(n, p)) * np.geomspace(3, 0.1, p) + 2
    return x, x @ rng.normal(size=(p, q)) + noise * np.sqrt(p) * rng.normal(size=(n, q)) - 1


def folded(x, y, folds, seed=0):
    fold = assign(len(x), folds, seed)
    return fold, fold_moments(pair_rows(open_rows(x), open_rows(y)), fold, folds)


def error(penalty, train, test, translation=True):
    """Squared error on rows of scikit-learn's map."""
    model = (
        Ridge(penalty, fit_intercept=translation, solver="svd")
        if penalty
        else LinearRegression(fit_intercept=translation)
    )
    return float(np.sum((model.fit(*train).predict(test[0]) - test[1]) ** 2))


@pytest.mark.parametrize("translation", [True, False])
@pytest.mark.parametrize(("n", "p", "q"), [(200, 6, 4), (40, 40, 3), (40, 39, 3), (30, 90, 5), (20, 90, 100)])
def test_errors_of_the_path_are_those_of_explicit_fits(rng, n, p, q, translation):
    x, y = related(rng, n + 25, p, q)
    train, test = (x[:n], y[:n]), (x[n:], y[n:])
    moments = [PairMoments.of(*rows) for rows in (train, test)]
    if not translation:
        moments = [m.about_origin() for m in moments]
    penalties = np.array([0.0, 0.01, 1.0, 300.0])
    path = Shrinkage.of(moments[0], penalties, centred=translation)
    (found,) = path.errors(moments[0], [moments[1]], [path.turned(*moments)])
    expected = [error(penalty, train, test, translation) for penalty in penalties]
    np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-8)
    # Least squares is tried where rows are more than columns.
    assert found[0] == (pytest.approx(expected[0], rel=1e-8) if n > p + 1 else np.inf)


def brute_force(x, y, fold, pairs, penalties, translation):
    """First and last choice of each fold's judges: the fit outside both folds of a pair is judged on the other one.

    Also whether plain least squares is the best of all.
    """
    choices = [[] for _ in range(fold.max() + 1)]
    for a, b in pairs:
        inside = (fold != a) & (fold != b)
        for left_out, judge in ((a, b), (b, a)):
            at = fold == judge
            # With too few rows least squares is not tried.
            tried = range(int(inside.sum() <= x.shape[1] + 1), len(penalties))
            errors = {k: error(penalties[k], (x[inside], y[inside]), (x[at], y[at]), translation) for k in tried}
            plain = errors.pop(0, np.inf) <= min(errors.values())
            # Where the error is flat, rounding decides: the first and the last penalty that are as good.
            good = [k for k in errors if errors[k] <= (1 + 1e-6) * min(errors.values())]
            choices[left_out].append((good[0], good[-1], plain))
    return choices


@pytest.mark.parametrize("translation", [True, False])
@pytest.mark.parametrize(
    ("n", "p", "folds"), [(150, 8, 5), (60, 40, 5), (40, 70, 4), (60, 20, 3), (60, NARROW + 1, 5), (50, WIDE + 1, 5)]
)
def test_the_choice_is_that_of_nested_cross_validation_on_rows(rng, n, p, folds, translation):
    x, y = related(rng, n, p, 3)
    fold, parts = folded(x, y, folds)
    chosen = choose_penalties(parts, translation=translation)
    about = x - x.mean(axis=0) if translation else x
    penalties = np.concatenate([[0.0], np.sum(about**2) / p * GRID])
    # Each fold is judged by all others, of a wider source by both its neighbours, of a wide one by one where possible.
    pairs = [(k, (k + 1) % folds) for k in range(0, folds, 1 if p <= WIDE else 2)]
    if p <= NARROW:
        pairs = list(combinations(range(folds), 2))
    choices = brute_force(x, y, fold, pairs, penalties, translation)
    for penalty, own in zip(
        (*chosen.folds, chosen.whole), (*choices, [at for each in choices for at in each]), strict=True
    ):
        first, last, plain = zip(*own, strict=True)
        assert not all(plain)
        least, most = (penalties[np.sort(drawn_in(ends))] for ends in (first, last))
        votes = np.sort(np.broadcast_to(penalty, len(own)))
        assert np.all(least * (1 - 1e-9) <= votes) and np.all(votes <= most * (1 + 1e-9))
    # Not at the ends, where any rule would choose the same.
    assert penalties[1] < np.median(chosen.whole) < penalties[-1]


def drawn_in(choices):
    """No choice is further than two decades from the median."""
    middle = np.median(choices)
    return np.clip(choices, np.ceil(middle - 8), np.floor(middle + 8)).astype(int)


def test_the_map_is_the_mean_of_the_maps_that_judges_choose(rng):
    x, y = related(rng, 60, 20, 3)
    fitted = fit_linear(PairMoments.of(x, y), ridge=(0.0, 2.0, 2.0, 30.0))
    each = [LinearRegression().fit(x, y), *(Ridge(a, solver="svd").fit(x, y) for a in (2.0, 2.0, 30.0))]
    np.testing.assert_allclose(apply(fitted, x), np.mean([m.predict(x) for m in each], axis=0), atol=1e-9)


def test_plain_least_squares_takes_all_judges(rng):
    x = rng.normal(size=(200, 4))
    _, parts = folded(x, x @ rng.normal(size=(4, 3)), 5)
    assert choose_penalties(parts).whole == 0
    # One fold with noise is enough for a penalty, and of no judge's map plain least squares is a part.
    fold, _ = folded(x, x, 5)
    y = x + np.where(fold[:, None] == 3, 3 * rng.normal(size=x.shape), 0)
    assert np.min(choose_penalties(folded(x, y, 5)[1]).whole) > 0


@pytest.mark.parametrize("translation", [True, False])
@pytest.mark.parametrize("rows", [40, WIDE + 80])
def test_few_rows_are_decomposed_in_their_own_space(rng, monkeypatch, rows, translation):
    x, y = related(rng, rows, WIDE + 10, 60)
    # A column that is constant, one that repeats another.
    x[:, 3], x[:, 5] = 7.0, x[:, 6]
    parts = folded(x, y, 5)[1]
    moments_alone = replace(parts, parts=[replace(part, rows=None) for part in parts.parts])
    whole = [Judges(moments_alone, translation=translation).choose(moments_alone, at) for at in (slice(60), slice(2))]
    monkeypatch.setattr(Shrinkage, "of", None)
    judges = Judges(parts, translation=translation)
    for expected, at in zip(whole, (slice(60), slice(2)), strict=True):
        found = judges.choose(parts, at)
        for own, other in zip((*found.folds, found.whole), (*expected.folds, expected.whole), strict=True):
            # Next to no penalty has the same error as less of it, where rounding chooses: maps are compared.
            mine, theirs = (apply(fit_linear(PairMoments.of(x, y[:, at]), ridge=ridge), x) for ridge in (own, other))
            np.testing.assert_allclose(mine, theirs, atol=1e-4 * y.std())


@pytest.mark.parametrize("translation", [True, False])
@pytest.mark.parametrize(("n", "p", "q"), [(40, 41, 3), (30, 90, 5), (20, 90, 100)])
def test_errors_of_few_rows_are_those_of_explicit_fits(rng, n, p, q, translation):
    x, y = related(rng, n + 25, p, q)
    train, test = (x[:n], y[:n]), (x[n:], y[n:])
    about = [rows - (rows[:n].mean(axis=0) if translation else 0) for rows in (x, y)]
    penalties = np.array([0.0, 0.01, 1.0, 300.0])
    path = RowShrinkage.of(about[0][:n], [about[0][n:]], penalties)
    (found,) = path.errors(about[1][:n], [about[1][n:]])
    np.testing.assert_allclose(found[1:], [error(p, train, test, translation) for p in penalties[1:]], rtol=1e-8)
    assert found[0] == np.inf


def test_the_penalty_of_a_fold_has_not_seen_it(rng):
    x, y = related(rng, 100, 30, 4)
    fold, parts = folded(x, y, 5)
    other = y.copy()
    other[fold == 2] = 50 * rng.normal(size=other[fold == 2].shape)
    spoilt = choose_penalties(folded(x, other, 5)[1])
    assert spoilt.folds[2] == choose_penalties(parts).folds[2]
    assert spoilt.whole != choose_penalties(parts).whole


def test_a_few_rows_far_from_all_others_do_not_choose_for_every_fold(rng):
    x, y = related(rng, 200, 30, 4)
    fold = folded(x, y, 5)[0]
    # Rows of fold 0 that no map of the others fits: it would take the largest penalty, and its errors are nearly all.
    x[fold == 0], y[fold == 0] = 30 * x[fold == 0], 0.0
    spoilt = choose_penalties(folded(x, y, 5)[1], translation=False).folds[1:]
    for own in spoilt:
        assert np.max(own) <= 101 * np.median(own) and np.median(own) < 1e-3 * np.sum(x**2) / 30 * GRID[-1]


@pytest.mark.parametrize("translation", [True, False])
@pytest.mark.parametrize(("n", "p"), [(200, 6), (30, 30), (25, 60)])
def test_generalised_cross_validation_is_its_formula(rng, n, p, translation):
    x, y = related(rng, n, p, 3)
    found = generalised_penalty(PairMoments.of(x, y), translation=translation)
    a, b = (x - x.mean(axis=0), y - y.mean(axis=0)) if translation else (x, y)
    penalties = np.sum(a**2) / p * GRID
    scores = []
    for penalty in penalties:
        hat = a @ np.linalg.solve(a.T @ a + penalty * np.eye(p), a.T)
        scores.append(np.sum((b - hat @ b) ** 2) / (n - np.trace(hat) - translation) ** 2)
    at = int(np.argmin(np.abs(penalties - found)))
    assert found == pytest.approx(penalties[at], rel=1e-9)
    assert scores[at] <= min(scores) * (1 + 1e-6)


def test_two_folds_are_chosen_by_each_training_set_alone(rng):
    x, y = related(rng, 80, 25, 3)
    fold, parts = folded(x, y, 2)
    chosen = choose_penalties(parts)
    sets = [fold != 0, fold != 1, fold >= 0]
    assert (*chosen.folds, chosen.whole) == tuple(
        pytest.approx(generalised_penalty(PairMoments.of(x[rows], y[rows])), rel=1e-6) for rows in sets
    )
    # Leaving out each row in turn, which GCV stands for, does hardly better by its own choice.
    best = RidgeCV(np.sum((x - x.mean(axis=0)) ** 2) / 25 * GRID).fit(x, y).alpha_
    assert abs(np.log10(chosen.whole / best)) < 1.0


def held_out_r2(x, y, folds=5, **options):
    """Share of the variance that is explained outside the training rows, with the penalties that were chosen."""
    fold, parts = folded(x, y, folds)
    chosen = choose_penalties(parts, **options)
    missed = spread = 0.0
    for k, penalty in enumerate(chosen.folds):
        rows, at = fold != k, fold == k
        fitted = fit_linear(PairMoments.of(x[rows], y[rows]), ridge=penalty)
        missed += np.sum((apply(fitted, x[at]) - y[at]) ** 2)
        spread += np.sum((y[rows].mean(axis=0) - y[at]) ** 2)
    return 1 - missed / spread


@pytest.mark.parametrize(("n", "p"), [(50, 5), (50, 40), (50, 50), (50, 200)])
def test_noise_explains_nothing_and_costs_little(rng, n, p):
    found = [held_out_r2(rng.normal(size=(n, p)), rng.normal(size=(n, 3))) for _ in range(10)]
    assert min(found) > -0.2 and max(found) < 0.2 and abs(np.mean(found)) < 0.1


def test_an_exact_relation_is_found_with_more_rows_than_columns(rng):
    x = rng.normal(size=(100, 20)) * np.geomspace(1, 1e-3, 20)
    assert held_out_r2(x, x @ rng.normal(size=(20, 6))) == pytest.approx(1, abs=1e-9)


def test_wide_rows_of_few_directions_are_explained(rng):
    hidden = rng.normal(size=(60, 4))
    x = hidden @ rng.normal(size=(4, 150)) + 0.05 * rng.normal(size=(60, 150))
    assert held_out_r2(x, hidden @ rng.normal(size=(4, 3))) > 0.99


def test_many_rows_change_nothing(rng):
    x, y = related(rng, 50 * 8, 8, 3, noise=0.3)
    fold, _ = folded(x, y, 5)
    plain = [error(0, (x[fold != k], y[fold != k]), (x[fold == k], y[fold == k])) for k in range(5)]
    spread = sum(np.sum((y[fold == k] - y[fold != k].mean(axis=0)) ** 2) for k in range(5))
    assert held_out_r2(x, y) == pytest.approx(1 - sum(plain) / spread, abs=1e-3)


def test_constant_and_repeated_columns_change_nothing(rng):
    x, y = related(rng, 60, 12, 3)
    base = held_out_r2(x, y)
    assert held_out_r2(np.hstack([x, np.full((60, 3), 7.0)]), y) == pytest.approx(base, abs=0.02)
    assert held_out_r2(np.hstack([x, x]), y) == pytest.approx(base, abs=0.02)


def test_columns_in_very_different_units_are_still_used_where_rows_suffice(rng):
    x = rng.normal(size=(400, 4))
    y = x @ rng.normal(size=(4, 3)) + 0.1 * rng.normal(size=(400, 3))
    assert held_out_r2(x * [1e-12, 1, 1e6, 1e12], y) == pytest.approx(held_out_r2(x, y), abs=1e-3)


@pytest.mark.parametrize(("n", "p"), [(80, 12), (40, 60)])
def test_errors_do_not_depend_on_the_axes_of_the_source(rng, n, p):
    x, y = related(rng, n, p, 3)
    turn = np.linalg.qr(rng.normal(size=(p, p)))[0]
    assert held_out_r2(x @ turn, y) == pytest.approx(held_out_r2(x, y), abs=1e-9)


def test_a_source_without_variation_is_no_error(rng):
    x, y = np.ones((40, 3)), rng.normal(size=(40, 2))
    assert held_out_r2(x, y) == pytest.approx(0, abs=1e-9)
    assert np.isfinite(generalised_penalty(PairMoments.of(x, y)))


@pytest.mark.parametrize("translation", [True, False])
def test_rows_in_memory_are_dealt_into_folds(rng, translation):
    x, y = related(rng, 60, 30, 3)
    _, parts = folded(x, y, 5)
    expected = choose_penalties(parts, translation=translation).whole
    np.testing.assert_allclose(penalty_of(x, y, translation=translation), expected, rtol=1e-9)
    assert np.min(penalty_of(x[:6], y[:6])) > 0 and penalty_of(x[:5], y[:5]) == 0


@pytest.mark.parametrize("columns", [5, WIDE + 10])
def test_targets_together_get_the_penalties_that_they_get_alone(rng, columns):
    parts = folded(*related(rng, 60, columns, 6), 5)[1]
    targets = [slice(2), slice(2, 3), slice(3, 6)]
    judges = Judges(parts)
    assert judges.choose_each(parts, targets) == [judges.choose(parts, target) for target in targets]

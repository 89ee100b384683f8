"""compare(): the issue's known answers, oracles for every figure, honest options, bad inputs."""

import inspect
import json
from typing import get_overloads

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import pdist
from sklearn.linear_model import LinearRegression, Ridge
from threadpoolctl import threadpool_limits

import nearid
from nearid import InputError, Linear, Rigid, SignedPermutation, compare
from nearid.arrays import open_rows, pair_rows
from nearid.folds import assign
from nearid.questions.compare.run import Keywords, _both_ways, rows_together


def noisy(y, rng):
    return y + 0.01 * y.std(axis=0) * rng.normal(size=y.shape)


@pytest.fixture(scope="module")
def pairs():
    """n=20,000, d=32, 1% noise: one target per answer."""
    rng = np.random.default_rng(1)
    n, d = 20_000, 32
    x = rng.laplace(size=(n, d)) * np.linspace(0.5, 2, d)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return {
        "x": x,
        "permutation": noisy(x[:, rng.permutation(d)] * rng.choice([-1, 1], d), rng),
        "rigid": noisy(3 * x @ turn + 5, rng),
        "linear": noisy(x @ rng.normal(size=(d, d)), rng),
        "none": rng.laplace(size=(n, d)),
    }


def test_errors_of_wide_rows_are_those_of_procrustes_and_ridge_in_each_fold(rng):
    n, d, penalty = 260, 150, 5.0
    x = rng.normal(size=(n, d)) * np.geomspace(1, 1e-4, d) @ np.linalg.qr(rng.normal(size=(d, d)))[0] + 3
    y = x @ np.linalg.qr(rng.normal(size=(d, d)))[0] + 1e-4 * rng.normal(size=(n, d)) - 2
    found = compare(x, y, groups="rigid,linear", ridge=penalty, blocks="none", permutations=1)
    fold, errors = assign(n, 5, 0), {"rigid": np.empty(n), "linear": np.empty(n)}
    for k in range(5):
        train, test = fold != k, fold == k
        a, b = x[train] - x[train].mean(axis=0), y[train] - y[train].mean(axis=0)
        turn, gain = orthogonal_procrustes(a, b)
        rigid = gain / np.sum(a**2) * (x[test] - x[train].mean(axis=0)) @ turn + y[train].mean(axis=0)
        errors["rigid"][test] = np.linalg.norm(rigid - y[test], axis=1)
        linear = Ridge(penalty).fit(x[train], y[train]).predict(x[test])
        errors["linear"][test] = np.linalg.norm(linear - y[test], axis=1)
    for name, own in errors.items():
        epsilon = found.groups[name].epsilon.value * found.diameter.lower
        np.testing.assert_allclose(epsilon, own.mean(), rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("answer", ["permutation", "rigid", "linear", "none"])
def test_known_answers(pairs, answer, dtype):
    found = compare(pairs["x"].astype(dtype), pairs[answer].astype(dtype))
    assert found.verdict.group == answer
    names = list(found.groups)
    if answer == "none":
        for g in found.groups.values():
            assert g.epsilon.value == pytest.approx(g.epsilon.chance, rel=0.02)
            assert g.r2.value < 0.01
        assert abs(np.mean(found.similarity.cca)) < 0.02
    else:
        for name in names[names.index(answer) :]:
            assert found.groups[name].r2.value > 0.999 and found.groups[name].max < 0.02
        for name in names[: names.index(answer)]:
            assert found.groups[name].r2.value < 0.9


def test_noise_with_fewer_rows_than_columns_is_at_chance(rng):
    found = compare(rng.normal(size=(500, 1000)), rng.normal(size=(500, 1000)), in_sample=True, permutations=1)
    assert found.verdict.group == "none"
    assert np.mean(found.in_sample_similarity.cca) == pytest.approx(1, abs=1e-9)
    assert abs(np.mean(found.similarity.cca)) < 0.02 and abs(found.similarity.cka) < 0.02
    for g in found.groups.values():
        # Chance is measured along 128 components, where fits to noise do less harm than along 1,000 columns.
        assert g.epsilon.value > 0.98 * g.epsilon.chance and g.r2.value < 0.01
    assert found.groups["linear"].r2.value > -0.05
    assert "few_rows" in {a.code for a in found.alerts}


@pytest.fixture
def partial(rng):
    x = rng.normal(size=(900, 6)) + 3
    return x, x @ rng.normal(size=(6, 4)) + rng.normal(size=(900, 4)) - 8


def test_held_out_figures_are_those_of_a_loop_over_folds(partial):
    x, y = partial
    found = compare(x, y, folds=5, random_state=3, ridge=0)
    fold = assign(len(x), 5, 3)
    size = pdist(y).max()
    spread = np.concatenate([np.sum((y[fold == k] - y[fold != k].mean(axis=0)) ** 2, axis=1) for k in range(5)])
    for name, model in (("permutation", SignedPermutation()), ("rigid", Rigid()), ("linear", LinearRegression())):
        estimate = np.empty_like(y)
        for k in range(5):
            fitted = model.fit(x[fold != k], y[fold != k])
            carry = fitted.predict if name == "linear" else fitted.transform
            estimate[fold == k] = carry(x[fold == k])
        error = np.linalg.norm(estimate - y, axis=1)
        e = found.groups[name]
        assert e.epsilon.value == pytest.approx(error.mean() / size, rel=1e-9)
        assert e.median == pytest.approx(np.median(error) / size, rel=1e-9)
        assert e.q95 == pytest.approx(np.quantile(error, 0.95) / size, rel=1e-9)
        assert e.max == pytest.approx(error.max() / size, rel=1e-9)
        assert found.groups[name].r2.value == pytest.approx(1 - np.sum(error**2) / spread.sum(), rel=1e-9)


def test_in_sample_figures_are_those_of_a_fit_on_all_rows(partial):
    x, y = partial
    found = compare(x, y, in_sample=True, ridge=0)
    for name, model in (("permutation", SignedPermutation()), ("rigid", Rigid()), ("linear", Linear(ridge=0))):
        error = np.linalg.norm(model.fit(x, y).transform(x) - y, axis=1)
        assert found.in_sample[name].epsilon.value == pytest.approx(error.mean() / pdist(y).max(), rel=1e-9)
        assert found.in_sample[name].r2.value == pytest.approx(model.score(x, y), rel=1e-9)


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(5)
    turn, hits = rng.normal(size=(3, 3)), 0
    far = rng.normal(size=(200_000, 3))
    for _ in range(60):
        x = rng.normal(size=(400, 3))
        y = x @ turn + rng.normal(size=(400, 3))
        # A pair of far rows fixes the diameter, so that only the mean error varies.
        x[:2], y[:2] = 0, [[50, 0, 0], [-50, 0, 0]]
        e = compare(x, y, groups="linear", permutations=1).groups["linear"].epsilon
        truth = (np.linalg.norm(far, axis=1).mean() * 398 + 100) / 400 / 100
        hits += e.low <= truth * 1.01 and truth * 0.99 <= e.high
    assert hits >= 50


def test_symmetric_gives_both_directions_and_the_larger_group(rng):
    x = rng.laplace(size=(1000, 4))
    wide = np.hstack([x, rng.laplace(size=(1000, 4)) * 3])
    found = compare(wide, x, symmetric=True)
    assert found.reverse.names == found.names[::-1]
    down, alone = compare(wide, x), compare(x, wide)
    assert found.reverse.groups["linear"].epsilon.value == alone.groups["linear"].epsilon.value
    order = ["permutation", "rigid", "linear", "none"]
    assert order.index(found.verdict.group) == max(order.index(one.verdict.group) for one in (down, alone))
    # x is contained in `wide` nearly exactly, but not the other way: the worse of the two is said.
    assert down.verdict.strength == "nearly exactly" and found.verdict.strength == "weakly"
    # The one alert of a single direction, that the widths differ, has no place where both are known.
    assert {a.code for a in alone.alerts} == {"widths_differ"} and not found.alerts


def test_many_runs_are_all_pairs_and_a_matrix(rng):
    x = rng.laplace(size=(300, 3))
    found = compare(x, -x[:, ::-1], rng.laplace(size=(300, 3)), names=["a", "b", "c"])
    assert len(found) == 3 and found.pairs == ((0, 1), (0, 2), (1, 2))
    m = found.matrix("linear")
    assert m[0, 1] < 1e-6 and m[0, 2] > 0.1 and not np.diag(m).any()
    assert np.isnan(m[1, 0]) and np.isnan(m[2, 0])  # errors are not symmetric, and that way was not asked
    plain = found.to_dict()
    assert plain["verdicts"] == [[0, 1, "permutation"], [0, 2, "none"], [1, 2, "none"]]
    both = compare(x, -x[:, ::-1], rng.laplace(size=(300, 3)), symmetric=True)
    assert both.matrix("rigid")[2, 0] == both[1].reverse.groups["rigid"].epsilon.value


@pytest.mark.parametrize(("p", "q"), [(4, 9), (9, 4)])
def test_different_widths(rng, p, q):
    wide = rng.laplace(size=(2000, 9))
    found = compare(wide[:, :p], wide[:, :q])
    assert found.dims == (p, q)
    assert all(np.isfinite(g.epsilon.value) for g in found.groups.values())
    if p > q:
        assert found.verdict.group == "permutation"


@pytest.mark.parametrize(
    ("unit", "offset", "dtype"),
    [
        (1e-20, 0, np.float32),
        (1e20, 0, np.float32),
        (1, 1e4, np.float32),
        (1e-60, 0, np.float64),
        (1e60, 0, np.float64),
    ],
)
def test_units_and_offsets_change_nothing(rng, unit, offset, dtype):
    x = rng.normal(size=(3000, 5))
    y = x @ rng.normal(size=(5, 5)) + 0.5 * rng.normal(size=(3000, 5))
    base = compare(x, y)
    moved = compare(((x + offset) * unit).astype(dtype), ((y - offset) * unit).astype(dtype))
    assert moved.verdict.group == base.verdict.group
    for name, g in base.groups.items():
        assert moved.groups[name].epsilon.value == pytest.approx(g.epsilon.value, rel=2e-3)
        assert moved.groups[name].r2.value == pytest.approx(g.r2.value, abs=2e-3)
    assert moved.similarity.cka == pytest.approx(base.similarity.cka, abs=2e-3)


def test_papers_conventions(rng):
    x = rng.normal(size=(500, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    strict = compare(x, 2 * x @ turn + 1, translation=False, scale=False).groups
    assert strict["rigid"].epsilon.value > 0.1
    assert compare(x, 2 * x @ turn + 1).groups["rigid"].epsilon.value < 1e-9


def test_the_same_input_is_noticed(rng):
    x = rng.normal(size=(100, 3))
    found = compare(x, x.copy())
    assert found.verdict.group == "permutation" and found.groups["permutation"].max < 1e-9
    assert found.alerts[0].code == "same_input"


def test_inputs_that_differ_in_one_row_are_not_called_the_same(rng):
    # More rows than a fingerprint samples.
    x = rng.normal(size=(1000, 3))
    other = x.copy()
    other[501] += 1e-9
    assert all(alert.code != "same_input" for alert in compare(x, other).alerts)


def test_same_seed_same_bytes_other_seed_other_folds(partial):
    x, y = partial
    assert json.dumps(compare(x, y).to_dict()) == json.dumps(compare(x, y).to_dict())
    other = compare(x, y, random_state=1)
    assert other.groups["linear"].epsilon.value != compare(x, y).groups["linear"].epsilon.value


def test_rows_with_nan_are_refused_or_dropped_in_pairs(partial):
    x, y = (z.copy() for z in partial)
    x[10, 2], y[20, 0] = np.nan, np.inf
    with pytest.raises(InputError, match=r"row 10, column 2"):
        compare(x, y)
    found = compare(x, y, drop_nonfinite=True)
    assert found.n == 898
    assert any("2 of 900 pairs of rows of array 1 and array 2 held NaN or Inf" in a.message for a in found.alerts)
    assert np.isfinite(found.groups["linear"].max)


def test_ids_pair_the_rows(partial, rng):
    x, y = partial
    order = rng.permutation(900)[:700]
    found = compare(x, y[order], ids=(np.arange(900), order))
    assert found.n == 700
    assert found.groups["linear"].r2.value == pytest.approx(compare(x, y).groups["linear"].r2.value, abs=0.03)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"folds": 1}, "between 2 and 255"),
        ({"folds": 500}, "between 2 and 255"),
        ({"folds": 200}, "too few for 200 folds"),
        ({"groups": "affine"}, "There is no group named 'affine'"),
        ({"ridge": -1.0}, "ridge is -1.0, but a number of at least 0"),
        ({"svcca_k": 0}, "svcca_k is 0"),
        ({"permutations": 0}, "between 1 and 100000"),
        ({"permutations": 10**30}, "between 1 and 100000"),
        ({"random_state": -1}, "random_state .* at least 0"),
        ({"names": ["only one"]}, "2 runs but 1 names"),
    ],
)
def test_bad_options(rng, change, message):
    x = rng.normal(size=(100, 3))
    with pytest.raises(InputError, match=message):
        compare(x, x, **change)


def test_constant_inputs_are_refused_and_constant_columns_told(rng):
    x = rng.normal(size=(100, 3))
    with pytest.raises(InputError, match="Every column of flat is constant"):
        compare(x, np.full((100, 3), 0.1), names=["x", "flat"])
    y = np.hstack([x, np.full((100, 1), 0.1), x[:, :1] * 2])
    codes = {a.code for a in compare(x, y).alerts}
    assert {"constant_columns", "duplicate_columns", "rank_deficient"} <= codes


def test_overloads_name_every_keyword():
    keywords = [p.name for p in inspect.signature(compare).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert list(Keywords.__annotations__) == keywords


def test_a_type_checker_knows_how_many_runs_are_compared():
    kinds = {str(o.__annotations__["return"]): inspect.signature(o).parameters.values() for o in get_overloads(compare)}
    assert list(kinds) == ["Comparison", "Comparisons", "Comparison | Comparisons"]
    # A list that is unpacked goes to the one overload that takes any number of runs.
    takes_any = [kind for kind, parameters in kinds.items() if any(p.kind is p.VAR_POSITIONAL for p in parameters)]
    assert takes_any == ["Comparison | Comparisons"]


def test_options_that_decide_figures_are_recorded(rng):
    import pandas as pd

    frames = [pd.DataFrame(rng.normal(size=(40, 4)), columns=["a1", "a2", "b", "c"]) for _ in range(2)]
    asked = {"symmetric": True, "features": (name for name in ("a*", "c")), "exclude": "c"}
    comparison = compare(*frames, permutations=1, **asked)
    options = comparison.provenance["options"]
    expected = {"symmetric": True, "features": ["a*", "c"], "exclude": "c", "key": None}
    assert comparison.dims == (2, 2) and {name: options[name] for name in expected} == expected


def test_json_has_what_is_promised(partial):
    plain = compare(*partial, in_sample=True).to_dict()
    assert {"n", "dims", "groups", "in_sample", "similarity", "verdict", "provenance"} <= set(plain)
    for similarity in ("similarity", "chance_similarity", "in_sample_similarity"):
        assert set(plain[similarity]) == {"cca", "svcca", "cka", "correlations", "directions"}
    for name in ("permutation", "rigid", "linear"):
        for part in (plain["groups"][name], plain["in_sample"][name]):
            assert {"value", "low", "high"} <= set(part["epsilon"]) and {"value", "low", "high"} <= set(part["r2"])
            assert {"median", "q95", "max", "degrees_of_freedom"} <= set(part)
        assert {"chance", "of"} <= set(plain["groups"][name]["epsilon"])
    assert set(plain["verdict"]) >= {"group", "reason"}
    assert plain["provenance"]["inputs"][0]["shape"] == [900, 6]
    assert plain["provenance"]["options"]["random_state"] == 0 and plain["provenance"]["nearid"] == nearid.__version__
    json.dumps(plain, allow_nan=False)


def test_results_print(partial):
    found = compare(*partial, names=["[bold]x[/bold]", "y"], symmetric=True, in_sample=True)
    text = str(found)
    assert "[bold]x[/bold]" in text and "permutation" in text and "chance" in text
    assert "linear map" in found._repr_html_() and "<script" not in found._repr_html_()


def test_a_column_that_varies_in_one_fold_only(rng):
    # Constant in the rows fitted on, another value in a row judged: that row's error is its own, and no more.
    for value in (2.94, 0.1, 1e5):
        x = rng.normal(size=(1000, 4))
        x[:, 2] = value
        x[118, 2] = 0
        y = x[:, [0, 1, 3]] @ rng.normal(size=(3, 4)) + 0.05 * rng.normal(size=(1000, 4))
        found = compare(x, y, permutations=1)
        assert found.groups["linear"].r2.value > 0.98 and found.verdict.group == "linear"


def test_without_translation_an_offset_explains_nothing(rng):
    x, y = rng.normal(size=(5000, 8)) + 5, rng.normal(size=(5000, 8)) + 5
    found = compare(x, y, translation=False)
    assert found.verdict.group == "none" and all(g.r2.value < 0.01 for g in found.groups.values())


def test_columns_of_very_different_units_in_float32(rng):
    x = rng.normal(size=(2000, 4))
    y = (x @ rng.normal(size=(4, 4))).astype(np.float32)
    found = compare((x * [1e20, 1, 1e-20, 1e5]).astype(np.float32), y)
    assert found.groups["linear"].r2.value > 0.9999 and found.verdict.group == "linear"


def test_repeated_rows_are_told(rng):
    x, y = (np.tile(rng.normal(size=(100, 20)), (10, 1)) for _ in "xy")
    assert "repeated_rows" in {a.code for a in compare(x, y, permutations=1).alerts}


def test_the_callers_rows_keep_their_names(rng):
    rows = open_rows(rng.normal(size=(50, 2)))
    found = compare(rows, rows, permutations=1)
    assert rows.name == "array" and found.names == ("array 1", "array 2")


def test_provenance_names_the_files(rng, tmp_path):
    for folder in "ab":
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "x.npy", rng.normal(size=(50, 2)))
    found = compare(tmp_path / "a" / "x.npy", str(tmp_path / "b" / "x.npy"), permutations=1)
    assert found.names == ("x.npy 1", "x.npy 2")
    assert [i["source"] for i in found.provenance["inputs"]] == [str(tmp_path / f / "x.npy") for f in "ab"]


def test_data_frames_are_paired_by_their_index(rng):
    import pandas as pd

    x = pd.DataFrame(rng.normal(size=(200, 3)), index=[f"cell{k}" for k in range(200)])
    assert compare(x, -x.iloc[rng.permutation(200)]).verdict.group == "permutation"
    x = x.reset_index(drop=True)
    turned = pd.DataFrame(x.to_numpy() @ np.linalg.qr(rng.normal(size=(3, 3)))[0])
    alerts = {}
    for name, y in {"same": turned, "shuffled": turned.sample(frac=1, random_state=1)}.items():
        found = compare(x, y, permutations=1)
        alerts[name] = [a.code for a in found.alerts]
        assert found.verdict.group == "rigid" and found.n == 200
    assert "input" not in alerts["same"] + alerts["shuffled"]
    found = compare(x.iloc[:150], turned.iloc[50:], permutations=1)
    assert found.verdict.group == "rigid" and found.n == 100
    assert [a.message for a in found.alerts if a.code == "input"] == [
        f"50 of the 150 rows of table {k} are left out: the other side has no row with the same index." for k in (1, 2)
    ]
    with pytest.raises(InputError, match="No label of the index of table 1"):
        compare(x.iloc[::2], turned.iloc[1::2])


def test_sparse_frames_are_read(rng):
    import pandas as pd

    x = rng.normal(size=(60, 2))
    found = compare(pd.DataFrame(x).astype("Sparse[float]"), -x, permutations=1)
    assert found.verdict.group == "permutation"


def test_ids_that_are_no_ids_are_refused(rng):
    x = rng.normal(size=(20, 2))
    with pytest.raises(InputError, match="one id array per run, not 5"):
        compare(x, x, ids=5)


def test_columns_that_look_like_metadata_are_told_and_can_be_left_out(rng, tmp_path):
    import pandas as pd

    # Independent noise: only the counter and the plate agree.
    for name in "xy":
        frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["f1", "f2"])
        frame.assign(cell_id=range(200), plate=np.arange(200) // 20).to_csv(tmp_path / f"{name}.csv", index=False)
    x, y = tmp_path / "x.csv", tmp_path / "y.csv"
    found = compare(x, y, permutations=1)
    told = [a.message for a in found.alerts if a.code == "metadata_columns"]
    assert len(told) == 2 and all("--exclude cell_id,plate" in text and "--ids cell_id" in text for text in told)
    assert "x.csv" in told[0] and "y.csv" in told[1]
    for chosen in ({"exclude": "cell_id,plate"}, {"features": "f*"}, {"features": ["f1", "f2"], "exclude": None}):
        found = compare(x, y, permutations=1, **chosen)
        assert found.dims == (2, 2) and found.verdict.group == "none"
        assert "metadata_columns" not in [a.code for a in found.alerts]
    # Beside a table, an array keeps its columns.
    found = compare(x, rng.normal(size=(200, 3)), exclude="cell_id,plate", permutations=1)
    assert found.dims == (2, 3)
    with pytest.raises(
        InputError, match=r"No column of x.csv or y.csv matches exclude='cel_id'. Did you mean 'cell_id'"
    ):
        compare(x, y, exclude="cel_id")


def test_control_characters_do_not_reach_the_terminal(rng):
    x = rng.normal(size=(50, 2))
    assert "\x1b" not in str(compare(x, x, names=["\x1b[31mred", "b"], permutations=1))


def test_of_groups_that_do_not_contain_each_other_both_ways_need_a_larger_one(rng):
    """One way up to a scale for each column, the other up to a rigid motion: only a linear map holds both ways."""
    x = rng.normal(size=(200, 3))
    there = nearid.compare(x, x * [1.0, 2.0, 5.0], groups="scaled_permutation,rigid,linear", permutations=1)
    back = nearid.compare(x, x @ np.linalg.qr(rng.normal(size=(3, 3)))[0], groups="rigid,linear", permutations=1)
    assert there.verdict.group == "scaled_permutation" and back.verdict.group == "rigid"
    for first, second in ((there, back), (back, there)):
        joined = _both_ways(first, second)
        assert joined.verdict.group == "linear" and "contains both" in joined.verdict.reason
        assert joined.one_way == first.verdict and joined.reverse is second
        # The headline gives the group that holds both ways, not that of one direction.
        assert not joined.decided_by_reverse
        assert joined.view.headline.startswith("The same representation, nearly exactly, up to a linear map (R2 1.000)")


def test_no_penalty_is_chosen_where_no_group_has_one(partial, monkeypatch):
    asked = {"permutations": 3, "random_state": 0}
    every = compare(*partial, groups="permutation,rigid,linear", **asked)
    monkeypatch.setattr("nearid.questions.compare.errors.Judges", None)
    with pytest.raises(TypeError):
        compare(*partial, groups="linear", **asked)
    found = compare(*partial, groups="permutation,rigid", **asked)
    assert found.provenance["options"]["ridge"] == "auto"
    for name, group in found.groups.items():
        assert group.r2.value == every.groups[name].r2.value and group.epsilon == every.groups[name].epsilon


def slow_series(rng, n, d, rho):
    steps = rng.normal(size=(n, d))
    for k in range(1, n):
        steps[k] = rho * steps[k - 1] + np.sqrt(1 - rho**2) * steps[k]
    return steps


def test_short_blocks_of_a_sequence_do_not_hide_that_it_is_one(rng):
    """With chance from blocks in another order alone, all of 20 such pairs were called related."""
    wrong = 0
    for _ in range(3):
        x, y = (slow_series(rng, 1500, 6, 0.97) for _ in range(2))
        wrong += compare(x, y, blocks=np.arange(1500) // 5).verdict.group != "none"
    assert wrong <= 1


def test_blocks_are_chained_where_neighbours_are_alike(rng):
    x, y = (slow_series(rng, 600, 4, 0.97) for _ in range(2))
    noise = rng.normal(size=(600, 4))
    contiguous, dealt = np.arange(600) // 5, np.arange(600) % 120

    def chained(x, y, blocks):
        return rows_together(pair_rows(open_rows(x, blocks=blocks), open_rows(y)), 5, 0, detect=False)[0].chained

    assert chained(x, y, contiguous) and chained(x, y, dealt) and not chained(x, noise, contiguous)


def test_a_list_of_runs_is_to_be_unpacked(rng):
    with pytest.raises(InputError, match=r"1 given\. Unpack the list of runs: compare\(\*runs\)"):
        compare(list(rng.normal(size=(2, 30, 3))))


def test_threads_of_blas_change_no_digit_of_a_comparison(rng):
    """Long sums of products do not go to BLAS with several threads."""
    x = rng.laplace(size=(2000, 100))
    y = x @ np.linalg.qr(rng.normal(size=(100, 100)))[0] + 0.1 * rng.normal(size=(2000, 100))
    told = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            told.append(compare(x, y, groups="rigid,linear", permutations=1).to_dict()["groups"])
    assert told[0] == told[1]

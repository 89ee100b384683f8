"""Scores of latents whose relation to the factors is known."""

import json

import numpy as np
import pytest

import nearid
from nearid import InputError, score
from nearid.measures.mcc import mcc
from nearid.measures.registry import measures
from nearid.questions.compare import chance

QUICK = ("mcc", "r2")


def sources(rng, n=1200, d=3):
    return rng.uniform(-1, 1, size=(n, d))


def codes(found):
    return {alert.code for alert in found.alerts}


@pytest.fixture
def few_orders(monkeypatch):
    """Chance of the verdict from the fewest orders that tell anything: for tests of measures and alerts alone."""
    for room in (chance, nearid.questions.compare.run):
        monkeypatch.setattr(room, "PERMUTATIONS", chance.LEAST_ORDERS)


def test_permuted_rescaled_flipped_factors_are_recovered_up_to_a_permutation(rng):
    u = sources(rng)
    found = score(u[:, [2, 0, 1]] * [3.0, -0.5, 1.0], u, measures="mcc,r2,modularity,infomec")
    assert found.measures["mcc"].value == pytest.approx(1, abs=1e-9)
    assert found.measures["modularity"].value > 0.95 and found.measures["infomec"].value > 0.95
    assert (found.verdict.group, found.verdict.strength) == ("scaled_permutation", "nearly exactly")
    assert [f.matched for f in found.factors] == [1, 2, 0]


def test_a_rotation_keeps_r2_and_lowers_the_rest_as_theory_says(rng):
    u, angle = sources(rng, 4000, 2), np.pi / 6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    found = score(u @ turn, u, measures="mcc,r2,mig,infomec")
    straight = score(u, u, measures="mig,infomec")
    assert found.measures["r2"].value == pytest.approx(1)
    assert found.measures["r2"].parts["orthogonality_error"].value == pytest.approx(0, abs=0.03)
    # Each latent correlates with its factor by the cosine of the angle.
    assert found.measures["mcc"].value == pytest.approx(np.cos(angle), abs=0.02)
    overall = found.measures["mcc"].overall
    assert abs(overall.value - np.cos(angle)) < overall.high - overall.low < 0.005
    for name in ("mig", "infomec"):
        assert found.measures[name].value < straight.measures[name].value - 0.3
        # What such a rotation leaves, by a simulation with other and more rows.
        other = sources(np.random.default_rng(99), 16_000, 2)
        simulated = measures()[name](other @ turn, other).value
        assert found.measures[name].value == pytest.approx(simulated, abs=0.06)
    assert found.verdict.group == "rigid"


def test_noise_is_at_chance(rng):
    found = score(rng.normal(size=(1500, 6)), sources(rng, 1500), measures="mcc,mcc_spearman,r2,sap,mig")
    assert found.verdict.group == "none"
    for m in found.measures.values():
        assert abs(m.value - m.overall.chance) < 0.05, m.name
        assert m.overall.low <= m.overall.chance <= m.overall.high or m.name in ("sap", "mig")


def test_ica_resolves_what_is_left(rng):
    u = rng.laplace(size=(3000, 3))
    mixing = rng.normal(size=(3, 3))
    found = score(u @ mixing, u, measures=QUICK, resolve="ica")
    assert found.verdict.group == "linear" and found.measures["mcc"].value < 0.95
    after = found.resolved
    assert after.verdict.group == "scaled_permutation" and after.measures["mcc"].value > 0.99
    assert after.measures["r2"].value == pytest.approx(found.measures["r2"].value, abs=1e-9)
    assert found.to_dict()["resolved"]["measures"]["mcc"]["value"] == after.measures["mcc"].value


@pytest.mark.usefixtures("few_orders")
def test_many_rows_stream_and_the_rest_is_sampled(rng):
    u = sources(rng, 3000)
    z = u @ np.eye(3, 4) + rng.normal(size=(3000, 4))
    found = score(z, u, measures="mcc,mig", max_rows=500)
    assert found.n == 3000 and "sampled" in codes(found)
    assert found.measures["mcc"].value == mcc(z, u).value
    assert found.provenance["rows_in_memory"] == 500
    whole = score(z, u, measures="mcc")
    wide, narrow = (f.measures["mcc"].overall for f in (found, whole))
    assert 0.5 < (wide.high - wide.low) / (narrow.high - narrow.low) < 2
    gaps = z.copy()
    gaps[::50] = np.nan
    dropped = score(gaps, u, measures="mcc", max_rows=500, drop_nonfinite=True)
    assert dropped.n == 2940 and [a.code for a in dropped.alerts].count("dropped_rows") == 1
    resolved = score(z, u, measures="mcc", max_rows=500, resolve="ica").resolved
    assert resolved.n == 3000 and resolved.measures["mcc"].overall.value != found.measures["mcc"].value


@pytest.mark.usefixtures("few_orders")
def test_shifted_factors_and_the_order_of_rows_with_ids_change_nothing(rng):
    u = sources(rng, 300)
    z = u @ rng.normal(size=(3, 3)) + 0.3 * rng.normal(size=(300, 3))
    base = score(z, u, measures="mcc,r2,dci,infomec", permutations=1)
    moved = score(z, u + 8, measures="mcc,r2,dci,infomec", permutations=1)
    for name, m in base.measures.items():
        assert moved.measures[name].value == pytest.approx(m.value, abs=1e-9)
    order = rng.permutation(300)
    paired = score(z, u[order], measures="r2", ids=(np.arange(300), order))
    assert paired.measures["r2"].value == base.measures["r2"].value


def test_plain_data_has_the_promised_layout(rng):
    u = {"size": rng.uniform(size=250), "shape": rng.choice(["a", "b", "c"], 250), "flat": np.ones(250)}
    z = np.column_stack([u["size"], u["shape"] == "a", u["shape"] == "b"]) + 0.1 * rng.normal(size=(250, 3))
    found = score(z, u)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(plain["measures"]) == {name for name, m in measures().items() if m.by_default}
    for m in plain["measures"].values():
        assert {"value", "low", "high", "chance", "parts"} <= set(m)
        assert m["low"] <= m["value"] <= m["high"]
    assert set(plain["measures"]["infomec"]["parts"]) == {"infom", "infoe", "infoc"}
    assert set(plain["measures"]["dci"]["parts"]) == {"disentanglement", "completeness", "informativeness"}
    assert set(plain["factors"]) == {"size", "shape"} and plain["factors"]["shape"]["kind"] == "categorical"
    assert plain["factors"]["size"]["measures"]["r2"]["value"] > 0.8
    assert plain["latents"]["count"] == 3 and plain["latents"]["active"] == [True] * 3
    assert plain["latents"]["matched"]["size"] == 0
    assert plain["verdict"]["group"] in ("scaled_permutation", "rigid", "linear", "none")
    assert {"constant_factor", "no_geometry"} <= {a["code"] for a in plain["alerts"]}
    assert plain["provenance"]["options"]["random_state"] == 0 and len(plain["provenance"]["inputs"]) == 2


@pytest.mark.usefixtures("few_orders")
def test_options_that_decide_figures_are_recorded(rng):
    import pandas as pd

    z = pd.DataFrame(rng.laplace(size=(200, 3)), columns=["z0", "z1", "w"])
    given = {"kinds": {"n": "integer"}, "periods": {"angle": 4}, "resolve": "ica", "exclude": ["w"]}
    u = {"n": rng.integers(0, 5, 200), "angle": rng.uniform(0, 4, 200)}
    scored = score(z, u, measures="r2", permutations=1, features=(name for name in ["z*"]), **given)
    for one in (scored, scored.resolved):
        options = one.provenance["options"]
        assert {name: options[name] for name in given} == given and options["features"] == ["z*"]


def test_classes_alone_have_no_verdict_but_measures(rng):
    labels = rng.choice(["x", "y"], 200)
    found = score((labels == "x")[:, None] + 0.1 * rng.normal(size=(200, 2)), {"label": labels}, measures=QUICK)
    assert found.structure is None and found.verdict.group == "undefined" and "categorical" in found.verdict.reason
    assert "no verdict" in str(found)
    assert found.measures["r2"].value > 0.9


def test_a_group_suffices_nearly_exactly_or_not_at_all(rng):
    u = rng.normal(size=(4000, 2))
    turn = np.array([[np.cos(0.25), -np.sin(0.25)], [np.sin(0.25), np.cos(0.25)]])
    # A permutation explains 90% here, a rotation 96%: that is no permutation. Turned by 0.05, it leaves 0.25%.
    assert score(u @ turn + 0.2 * rng.normal(size=u.shape), u, measures="mcc").verdict.group == "rigid"
    small = np.array([[1, -0.05], [0.05, 1]])
    assert score(u @ small, u, measures="mcc").verdict.group == "scaled_permutation"


def test_where_an_angle_begins_decides_nothing(rng):
    t = rng.uniform(0, 2 * np.pi, 500)
    z = np.column_stack([np.cos(t), np.sin(t)])
    for begin in (0, 1, 5):
        found = score(z, {"t": t + begin}, periods={"t": 2 * np.pi}, measures="mcc,r2")
        assert found.verdict.group == "scaled_permutation" and found.measures["r2"].value == pytest.approx(1)


@pytest.mark.usefixtures("few_orders")
def test_figures_lie_in_their_intervals_and_ranges(rng):
    found = score(rng.normal(size=(200, 3)), rng.normal(size=(200, 2)), measures="dci,infomec,r2", permutations=1)
    for m in found.measures.values():
        for estimate in (m.overall, *m.parts.values(), *m.factors.values()):
            assert estimate.low <= estimate.value <= estimate.high
        for part, (low, high, _) in m.declared.parts.items():
            assert low <= m.parts[part].low and m.parts[part].high <= high
    assert found.measures["dci"].overall == found.measures["dci"].parts["disentanglement"]


@pytest.mark.usefixtures("few_orders")
def test_a_factor_that_varies_in_one_row_leaves_no_interval_and_that_is_said(rng):
    u = {"a": rng.normal(size=300), "rare": np.arange(300) == 7}
    found = score(np.column_stack([u["a"], rng.normal(size=300)]), u, measures="mcc")
    assert np.isnan(found.measures["mcc"].overall.low) and "no_interval" in codes(found)
    assert np.isfinite(found.measures["mcc"].factors["a"].low)


def test_a_factor_that_the_sample_misses_is_kept_where_all_rows_are_used(rng):
    u = {"a": rng.normal(size=50_000), "rare": np.arange(50_000) < 3}
    found = score(np.column_stack([u["a"], rng.normal(size=50_000)]), u, measures="mcc,mig", max_rows=100)
    assert "constant_in_sample" in codes(found) and "constant_factor" not in codes(found)
    assert [f.name for f in found.factors] == ["a", "rare"]
    assert set(found.measures["mcc"].factors) == {"a", "rare"} and set(found.measures["mig"].factors) == {"a"}
    assert np.isnan(found.measures["mcc"].overall.low) and "no_interval" in codes(found)


def test_rows_that_repeat_are_told(rng):
    z, u = (np.tile(rng.normal(size=(60, 2)), (5, 1)) for _ in range(2))
    assert "repeated_rows" in codes(score(z, u, measures="mcc"))


def test_a_categorical_factor_is_not_counted_among_those_judged(rng):
    u = {"size": rng.normal(size=200), "shape": rng.choice(["a", "b"], 200)}
    found = score(u["size"][:, None] + 0.01 * rng.normal(size=(200, 1)), u, measures="mcc")
    assert "The continuous factor is recovered nearly exactly" in str(found) and "no_geometry" in codes(found)
    verdict = found.to_dict()["verdict"]
    assert verdict["factors"] == ["size"] and verdict["scored_separately"] == ["shape"]


@pytest.mark.usefixtures("few_orders")
def test_equal_names_and_equal_ids_are_fine(rng, tmp_path):
    u = sources(rng, 100)
    for folder, values in (("a", u @ rng.normal(size=(3, 3))), ("b", u)):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "x.npy", values)
    found = score(tmp_path / "a" / "x.npy", tmp_path / "b" / "x.npy", measures="r2")
    assert found.names == ("x.npy", "x.npy (factors)") and "same_input" not in codes(found)
    assert [i["source"].split("/")[-2] for i in found.provenance["inputs"]] == ["a", "b"]
    assert "input" not in codes(score(u, u[:, :2], ids=(np.arange(100), np.arange(100)), measures="r2"))


@pytest.mark.usefixtures("few_orders")
def test_frames_are_paired_by_their_index(rng):
    pd = pytest.importorskip("pandas")
    u = pd.DataFrame(sources(rng, 200), columns=["a", "b", "c"])
    z = pd.DataFrame(u.to_numpy() @ rng.normal(size=(3, 3)))
    shuffled = u.sample(frac=0.8, random_state=1)
    found = score(z, shuffled, measures="r2")
    assert found.n == 160 and found.measures["r2"].value == pytest.approx(1)
    dates = pd.date_range("2020-01-01", periods=200)
    dated, latents = shuffled.set_axis(dates[shuffled.index]), z.set_axis(dates)
    for given in (dated, dated["a"], {name: dated[name] for name in "abc"}):
        assert score(latents, given, measures="r2", permutations=1).measures["r2"].value == pytest.approx(1)
    assert nearid.r2(latents, dated).value == pytest.approx(1)
    with pytest.raises(InputError, match="'a' and 'b' of factors are Series whose indexes differ"):
        score(z, {"a": u["a"], "b": shuffled["b"]})
    with pytest.raises(InputError, match="No label of the index of latents"):
        score(z, dated)


@pytest.mark.usefixtures("few_orders")
def test_columns_of_latents_that_look_like_metadata_are_told_and_can_be_left_out(rng):
    pd = pytest.importorskip("pandas")
    u = sources(rng, 200)
    z = pd.DataFrame(u, columns=["z1", "z2", "z3"]).assign(well_row=np.arange(200) % 8)
    found = score(z, u, measures="r2,mcc", permutations=1)
    (told,) = [a.message for a in found.alerts if a.code == "metadata_columns"]
    assert "'well_row'" in told and "--exclude well_row" in told
    found = score(z, u, measures="r2", permutations=1, exclude="well_*")
    assert len(found.active) == 3 and "metadata_columns" not in codes(found)
    # Factors are labels by nature.
    assert "metadata_columns" not in codes(score(u, z, measures="r2", permutations=1))


def test_one_dimensional_files_and_text_are_factors(rng, tmp_path):
    labels = rng.choice(["a", "b"], 100)
    np.save(tmp_path / "labels.npy", labels)
    found = score((labels == "a")[:, None] + 0.1 * rng.normal(size=(100, 1)), tmp_path / "labels.npy", measures="mcc")
    assert found.measures["mcc"].value > 0.9 and found.factors[0].kind == "categorical"


@pytest.mark.usefixtures("few_orders")
def test_invertible_latents_are_not_called_collapsed(rng):
    for d in (3, 9, 20):
        u = sources(rng, 300, d)
        one, other = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
        mixing = one * np.logspace(0, -1.5, d) @ other
        assert "collapsed_latents" not in codes(score(u @ mixing, u, measures="mcc"))


@pytest.mark.usefixtures("few_orders")
def test_inactive_and_collapsed_latents_are_told(rng):
    u = sources(rng, 300, 4)
    one = u.sum(axis=1, keepdims=True)
    found = score(
        np.hstack([one + 1e-3 * rng.normal(size=(300, 4)), 1e-6 * u[:, :1], np.ones((300, 1))]), u, measures=QUICK
    )
    assert {"collapsed_latents", "inactive_latents", "constant_latents"} <= codes(found)
    assert found.active.tolist() == [True] * 4 + [False] * 2


@pytest.mark.usefixtures("few_orders")
def test_inactive_latents_are_told_of_the_measures_that_were_asked_for(rng):
    u = rng.uniform(size=(300, 2))
    z = np.column_stack([u, 0.001 * rng.normal(size=300)])
    told = {
        m: next(a.message for a in score(z, u, measures=m).alerts if a.code == "inactive_latents")
        for m in ("r2", "infomec")
    }
    assert "InfoM" not in told["r2"] and "InfoM and InfoC ignore them" in told["infomec"]


def test_to_one_factor_a_rigid_motion_is_a_linear_map(rng):
    x = rng.normal(size=(400, 5))
    found = score(x, {"pan": x @ [1.0, 1, 1, 1, 1]}, measures="r2")
    # A rotation of these latents, all of one spread, gives the factor; that is no more than a linear map does.
    assert found.structure.groups["rigid"].r2 > 0.99 and found.verdict.group == "linear"
    assert "one_column" in [a.code for a in found.alerts]
    assert found.view.headline.startswith("The true factor is recovered nearly exactly, up to a linear map")
    two = score(x, {"pan": x @ [1.0, 1, 1, 1, 1], "tilt": x @ [1.0, -1, 1, -1, 0]}, measures="r2")
    assert "one_column" not in [a.code for a in two.alerts] and two.view.headline.startswith("The true factors are")


def test_the_same_seed_gives_the_same_score(rng):
    u = sources(rng, 200)
    z = u + rng.normal(size=u.shape)
    first, second = (score(z, u, random_state=3, measures="mcc,dci", permutations=1).to_dict() for _ in range(2))
    assert first == second


@pytest.mark.usefixtures("few_orders")
def test_few_rows_are_scored_with_a_caution_or_refused(rng):
    u = sources(rng, 30)
    found = score(np.hstack([u, rng.normal(size=(30, 40))]), u, measures=QUICK)
    assert "few_rows" in codes(found) and found.measures["r2"].value < 0.9
    with pytest.raises(InputError, match="too few"):
        score(u[:8], u[:8], measures=QUICK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": "mcc,nonsense"}, "nonsense"),
        ({"measures": []}, "No measure is given"),
        ({"resolve": "pca"}, "resolve is 'pca'"),
        ({"folds": 1}, "folds is 1"),
        ({"permutations": 0}, "permutations is 0"),
        ({"permutations": 10**30}, "permutations is 1"),
        ({"max_rows": 10}, "max_rows is 10"),
        ({"random_state": -1}, "random_state .* is -1, but a whole number of at least 0"),
        ({"random_state": None}, "random_state .* is None"),
        ({"folds": 2.5}, "folds is 2.5"),
        ({"ids": np.arange(60)}, "a pair"),
        ({"kinds": {"nope": "integer"}}, "nope"),
        ({"periods": {"0": -3}}, "positive"),
    ],
)
def test_options_that_make_no_sense_are_refused(rng, options, message):
    u = sources(rng, 60)
    with pytest.raises(InputError, match=message):
        score(u, u, **{"measures": QUICK, **options})


@pytest.mark.usefixtures("few_orders")
def test_bad_inputs_are_told(rng):
    u = sources(rng, 60)
    for latents, factors, message in (
        (u, np.ones((60, 2)), "constant"),
        (u, np.full(60, "one"), "constant"),
        (u, u[1:], "59"),
        (np.where(np.arange(60)[:, None] == 7, np.nan, u), u, "row 7"),
        (u, np.where(np.arange(60)[:, None] == 7, np.nan, u), "row 7"),
        (np.full((60, 2), "a"), u, "dtype|numbers"),
    ):
        with pytest.raises(InputError, match=message):
            score(latents, factors, measures=QUICK)
    z = u.copy()
    z[7, 1] = np.inf
    dropped = score(z, u, measures=QUICK, drop_nonfinite=True)
    assert dropped.n == 59 and "dropped_rows" in codes(dropped)


def test_singleton_classes_never_give_nan(rng):
    u = np.r_[np.zeros(30, int), np.ones(29, int), 2][:, None]
    found = score(u + rng.normal(size=(60, 2)), u, measures=[name for name in measures() if name != "dci_forest"])
    assert "singleton_classes" in codes(found)
    undefined = {name for name, m in found.measures.items() if not np.isfinite(m.value)}
    # One factor alone has no InfoM, and that is said.
    assert undefined == {"infomec"} and "one_factor" in codes(found)


def test_rows_that_repeat_are_reported_once_also_without_a_ladder(rng):
    z = np.repeat(rng.normal(size=(60, 3)), 4, axis=0)
    for factor in (np.repeat(rng.choice(["a", "b"], 60), 4), np.repeat(rng.normal(size=60), 4)):
        found = score(z, {"u": factor}, measures="mcc,sap", max_rows=100)
        assert [a.code for a in found.alerts].count("repeated_rows") == 1


def tokens(rng, texts=40, size=15):
    """Latents and factors that have nothing in common but the text of each row."""
    text = np.repeat(np.arange(texts), size)
    z = rng.normal(size=(texts, 20))[text] + 0.3 * rng.normal(size=(len(text), 20))
    u = rng.normal(size=(texts, 2))[text] + 0.3 * rng.normal(size=(len(text), 2))
    return z, u, text


def test_whole_blocks_are_held_out_permuted_and_resampled(rng):
    z, u, text = tokens(rng)
    options = {"measures": "r2,mcc,mcc_spearman", "permutations": 2}
    alone, together = (score(z, u, blocks=blocks, **options) for blocks in ("none", text))
    # Rows of the same text are fitted on, and seem to know the factors.
    assert alone.measures["r2"].value > 0.2 and alone.verdict.group != "none"
    assert together.measures["r2"].value < 0.1 and together.verdict.group == "none"
    assert all("new blocks of rows" in m.overall.of for m in together.measures.values())
    assert "serial_rows" not in codes(together) and together.provenance["options"]["blocks"] == "labels"


@pytest.mark.usefixtures("few_orders")
def test_blocks_are_a_column_of_either_table_and_no_factor(rng, tmp_path):
    pd = pytest.importorskip("pandas")
    z, u, text = tokens(rng, texts=24, size=5)
    plate = [f"p{t}" for t in text]
    factors = pd.DataFrame(u, columns=["a", "b"]).assign(plate=plate)
    latents = pd.DataFrame(z, columns=[f"z{k}" for k in range(20)]).assign(plate=plate)
    factors.to_csv(tmp_path / "u.csv", index=False)
    options = {"measures": "r2,sap", "permutations": 1}
    expected = score(z, u, blocks=text, **options)
    for own, true, given in (
        (z, tmp_path / "u.csv", "plate"),
        (z, {"a": u[:, 0], "b": u[:, 1], "plate": plate}, "plate"),
        (latents, factors, "plate"),
        (latents, u, "plate"),
        (nearid.open_rows(latents, blocks="plate"), u, None),
    ):
        found = score(own, true, blocks=given, **options)
        assert len(found.factors) == 2 and len(found.active) == 20
        for name in ("r2", "sap"):
            assert found.measures[name].value == pytest.approx(expected.measures[name].value, abs=1e-9)
            assert found.measures[name].overall.low == pytest.approx(expected.measures[name].overall.low, abs=1e-9)
    for measure in (nearid.r2, nearid.mcc, nearid.sap):
        assert measure(z, factors, blocks="plate").value == measure(z, u, blocks=text).value != measure(z, u).value
    with pytest.raises(InputError, match="has no factors: its only column is"):
        score(z, {"plate": plate}, blocks="plate")
    with pytest.raises(InputError, match=r"latents or factors has no column 'plat'.*Did you mean 'plate'"):
        score(z, factors, blocks="plat")


@pytest.mark.usefixtures("few_orders")
def test_blocks_are_counted_without_those_that_were_dropped(rng):
    z, u, _ = tokens(rng)
    label = np.arange(600) % 30
    z[label >= 12, 0] = np.nan
    found = score(z, u, blocks=label, measures="r2", permutations=1, drop_nonfinite=True)
    assert any(a.code == "few_blocks" and "only 12 blocks" in a.message for a in found.alerts)


@pytest.mark.usefixtures("few_orders")
def test_few_blocks_are_told_and_fewer_than_folds_refused(rng):
    z, u, _ = tokens(rng)
    labels = [np.arange(600) % count for count in (4, 9, 15, 30)]
    with pytest.raises(InputError, match="4 blocks of rows are too few for 5 folds"):
        score(z, u, blocks=labels[0], measures="r2")
    found = [score(z, u, blocks=label, measures="r2", permutations=1) for label in labels[1:]]
    assert ["few_blocks" in codes(s) for s in found] == [True, True, False]
    assert ["no_interval" in codes(s) for s in found] == [True, False, False]
    assert np.isnan(found[0].measures["r2"].overall.low) and np.isfinite(found[1].measures["r2"].overall.low)


@pytest.mark.usefixtures("few_orders")
def test_neighbours_are_looked_for_once(rng, monkeypatch):
    looked = []
    for room in (nearid.questions.compare.run, nearid.questions.score.run):
        real = room.serial_rows
        monkeypatch.setattr(room, "serial_rows", lambda *a, real=real, **k: looked.append(1) or real(*a, **k))
    z, u, text = tokens(rng, texts=24, size=5)
    for blocks, times in ((None, 1), (text, 1), ("none", 0)):
        looked.clear()
        score(z, u, blocks=blocks, measures="mcc", permutations=1)
        assert len(looked) == times


@pytest.mark.usefixtures("few_orders")
def test_rows_in_order_are_told_and_left_as_they_are(rng):
    steps = rng.normal(size=(600, 5))
    for k in range(1, 600):
        steps[k] = 0.95 * steps[k - 1] + steps[k]
    z, u = steps[:, :3], steps[:, 3:]
    found = score(z, u, measures="r2", permutations=1)
    (told,) = [a.message for a in found.alerts if a.code == "serial_rows"]
    assert "--blocks" in told and "assume independent rows" in told
    quiet = score(z, u, measures="r2", permutations=1, blocks="none")
    assert "serial_rows" not in codes(quiet) and quiet.measures["r2"].overall == found.measures["r2"].overall
    order = rng.permutation(600)
    assert "serial_rows" not in codes(score(z[order], u[order], measures="r2", permutations=1))


@pytest.mark.usefixtures("few_orders")
def test_the_penalty_is_chosen_given_and_recorded(rng):
    z = rng.normal(size=(80, 100))
    u = z[:, :2] + 0.5 * rng.normal(size=(80, 2))
    chosen, plain = (score(z, u, ridge=ridge, measures="r2", permutations=1) for ridge in ("auto", 0))
    assert chosen.measures["r2"].value == nearid.r2(z, u).value
    assert plain.measures["r2"].value == nearid.r2(z, u, ridge=0).value
    assert plain.provenance["ridge"] == {"r2": {"0": 0.0, "1": 0.0}} and plain.provenance["options"]["ridge"] == 0
    assert all(penalty > 0 for penalty in chosen.provenance["ridge"]["r2"].values())
    with pytest.raises(InputError, match="ridge is -1"):
        score(z, u, ridge=-1)


@pytest.mark.usefixtures("few_orders")
def test_information_that_any_classes_would_have_is_not_given(rng):
    z, u = rng.normal(size=(60, 80)), rng.integers(0, 3, size=(60, 2))
    found = score(z, u, measures="infomec,explicitness", permutations=1)
    assert np.isnan(found.measures["infomec"].parts["infoe"].value) and np.isfinite(found.measures["infomec"].value)
    assert any("InfoE is not defined for 60 rows and 80 latents" in a.message for a in found.alerts)
    # Held out and with a penalty: noise stays at chance.
    assert abs(found.measures["explicitness"].value) < 0.5


@pytest.mark.usefixtures("few_orders")
def test_swapped_arguments_are_noticed_where_that_is_clear(rng):
    pd = pytest.importorskip("pandas")
    u = pd.DataFrame({"shape": rng.integers(0, 3, 200), "size": rng.integers(0, 6, 200)})
    z = u.to_numpy() @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(200, 8))
    quick = {"measures": "mcc", "permutations": 1}
    (told,) = [a.message for a in score(u, z, **quick).alerts if a.code == "swapped_arguments"]
    assert "all 2 latents have few different whole numbers" in told and "nearid score LATENTS FACTORS" in told
    named = pd.DataFrame(rng.normal(size=(200, 2)), columns=["x", "y"])
    assert "swapped_arguments" in codes(score(named, named.to_numpy() @ rng.normal(size=(2, 8)), **quick))
    # Fewer latents than factors, or discrete ones, are no sign alone; the right order never is.
    for latents, factors in (
        (z, u),
        (u.to_numpy(), u),
        (z[:, :2], rng.normal(size=(200, 3))),
        (named, u.assign(n=z[:, 0])),
    ):
        assert "swapped_arguments" not in codes(score(latents, factors, **quick))


@pytest.mark.usefixtures("few_orders")
def test_stages_are_named_from_the_first_read_on_and_many_fits_are_announced(rng):
    stages = []

    def progress(name, steps):
        stages.append(name)
        return lambda: None

    u = sources(rng, 60)
    score(np.hstack([u, rng.normal(size=(60, 70))]), u, measures="r2,sap", permutations=1, progress=progress)
    assert stages[0] == "reading rows"
    assert {"r2: interval and chance", "sap: interval and chance (many fits)"} <= set(stages)


@pytest.mark.parametrize(("columns", "given", "expected"), [(256, None, 5), (257, None, 2), (257, 3, 3)])
def test_steady_measures_of_many_latents_take_two_permutations(rng, few_orders, columns, given, expected):
    u = sources(rng, 60, 1)
    z = np.hstack([u, rng.normal(size=(60, columns - 1))])
    steps = {}

    def progress(stage, count):
        steps[stage] = count
        return lambda: None

    score(z, {"u": u[:, 0]}, measures="r2,sap", permutations=given, progress=progress)
    of = {name: count for stage, count in steps.items() for name in ("r2", "sap") if stage.startswith(f"{name}: inter")}
    assert of == {"r2": 10 + (given or 5), "sap": 10 + expected}

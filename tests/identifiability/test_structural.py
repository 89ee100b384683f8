"""Scores of latents whose relation to the factors is known."""

import json

import numpy as np
import pytest

import nearid
from nearid import InputError, score
from nearid.measures.declarations import DECLARATIONS
from nearid.measures.mcc import mcc

QUICK = ("mcc", "r2")


def sources(rng, n=1200, d=3):
    return rng.uniform(-1, 1, size=(n, d))


def codes(found):
    return {alert.code for alert in found.alerts}


def test_permuted_rescaled_flipped_factors_are_recovered_up_to_a_permutation(rng):
    u = sources(rng)
    found = score(u[:, [2, 0, 1]] * [3.0, -0.5, 1.0], u, measures="mcc,r2,modularity,infomec")
    assert found.measures["mcc"].value == pytest.approx(1, abs=1e-9)
    assert found.measures["modularity"].value > 0.95 and found.measures["infomec"].value > 0.95
    assert (found.verdict.group, found.verdict.strength) == ("permutation", "nearly exactly")
    assert [f.matched for f in found.factors] == [1, 2, 0]


def test_a_rotation_keeps_r2_and_lowers_the_rest_as_theory_says(rng):
    u, angle = sources(rng, 4000, 2), np.pi / 6
    turned = u @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    found = score(turned, u, measures="mcc,r2,mig,infomec")
    straight = score(u, u, measures="mig,infomec")
    assert found.measures["r2"].value == pytest.approx(1)
    assert found.measures["r2"].parts["orthogonality_error"].value == pytest.approx(0, abs=0.03)
    # Each latent correlates with its factor by the cosine of the angle.
    assert found.measures["mcc"].value == pytest.approx(np.cos(angle), abs=0.02)
    assert found.measures["mcc"].overall.low < np.cos(angle) < found.measures["mcc"].overall.high
    for name in ("mig", "infomec"):
        assert found.measures[name].value < straight.measures[name].value - 0.3
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
    assert after.verdict.group == "permutation" and after.measures["mcc"].value > 0.99
    assert after.measures["r2"].value == pytest.approx(found.measures["r2"].value, abs=1e-9)
    assert found.to_dict()["resolved"]["measures"]["mcc"]["value"] == after.measures["mcc"].value


def test_many_rows_stream_and_the_rest_is_sampled(rng):
    u = sources(rng, 3000)
    z = u @ rng.normal(size=(3, 4)) + rng.normal(size=(3000, 4))
    found = score(z, u, measures="mcc,mig", max_rows=500)
    assert found.n == 3000 and "sampled" in codes(found)
    assert found.measures["mcc"].value == mcc(z, u).value
    assert found.provenance["rows_in_memory"] == 500
    whole = score(z, u, measures="mcc")
    wide, narrow = (f.measures["mcc"].overall for f in (found, whole))
    assert 0.3 < (wide.high - wide.low) / (narrow.high - narrow.low) < 3
    resolved = score(z, u, measures="mcc", max_rows=500, resolve="ica").resolved
    assert resolved.n == 3000 and resolved.measures["mcc"].overall.value != found.measures["mcc"].value


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
    assert set(plain["measures"]) == set(nearid.identifiability.structural.DEFAULT)
    for m in plain["measures"].values():
        assert {"value", "low", "high", "chance", "parts"} <= set(m)
        assert m["low"] <= m["value"] <= m["high"]
    assert set(plain["measures"]["infomec"]["parts"]) == {"infom", "infoe", "infoc"}
    assert set(plain["measures"]["dci"]["parts"]) == {"disentanglement", "completeness", "informativeness"}
    assert set(plain["factors"]) == {"size", "shape"} and plain["factors"]["shape"]["kind"] == "categorical"
    assert plain["factors"]["size"]["measures"]["r2"]["value"] > 0.8
    assert plain["latents"]["count"] == 3 and plain["latents"]["active"] == [True] * 3
    assert plain["latents"]["matched"]["size"] == 0
    assert plain["verdict"]["group"] in ("permutation", "rigid", "linear", "none")
    assert {"constant_factor", "no_geometry"} <= {a["code"] for a in plain["alerts"]}
    assert plain["provenance"]["options"]["seed"] == 0 and len(plain["provenance"]["inputs"]) == 2


def test_classes_alone_have_no_verdict_but_measures(rng):
    labels = rng.choice(["x", "y"], 200)
    found = score((labels == "x")[:, None] + 0.1 * rng.normal(size=(200, 2)), {"label": labels}, measures=QUICK)
    assert found.structure is None and found.verdict.group == "none" and "categorical" in found.verdict.reason
    assert found.measures["r2"].value > 0.9


def test_inactive_and_collapsed_latents_are_told(rng):
    u = sources(rng, 300, 4)
    one = u.sum(axis=1, keepdims=True)
    found = score(
        np.hstack([one + 1e-3 * rng.normal(size=(300, 4)), 1e-6 * u[:, :1], np.ones((300, 1))]), u, measures=QUICK
    )
    assert {"collapsed_latents", "inactive_latents", "constant_latents"} <= codes(found)
    assert found.active.tolist() == [True] * 4 + [False] * 2


def test_the_same_seed_gives_the_same_score(rng):
    u = sources(rng, 200)
    z = u + rng.normal(size=u.shape)
    first, second = (score(z, u, random_state=3, measures="mcc,dci", permutations=1).to_dict() for _ in range(2))
    assert first == second


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
        ({"measures": []}, "No measure was named"),
        ({"resolve": "pca"}, "resolve is 'pca'"),
        ({"folds": 1}, "folds must be"),
        ({"permutations": 0}, "permutations must be"),
        ({"max_rows": 10}, "max_rows must be"),
        ({"random_state": -1}, "seed"),
        ({"kinds": {"nope": "integer"}}, "nope"),
        ({"periods": {"0": -3}}, "positive"),
    ],
)
def test_options_that_make_no_sense_are_refused(rng, options, message):
    u = sources(rng, 60)
    with pytest.raises(InputError, match=message):
        score(u, u, **{"measures": QUICK, **options})


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
    found = score(u + rng.normal(size=(60, 2)), u, measures=[name for name in DECLARATIONS if name != "dci_forest"])
    assert "singleton_classes" in codes(found)
    undefined = {name for name, m in found.measures.items() if not np.isfinite(m.value)}
    # One factor alone has no InfoM, and that is said.
    assert undefined == {"infomec"} and "one_factor" in codes(found)

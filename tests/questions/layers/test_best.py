"""The interval of the best pair of layers: that of `compare` for a single pair, wider by the choice for many."""

import numpy as np
import pytest
from scipy.stats import t

from nearid import compare, compare_layers
from nearid.base.estimate import Estimate

MEASURES = ["cka", "cca", "svcca", "r2", "r2_rigid", "epsilon_rigid"]


def estimate_of(comparison, measure):
    if measure in ("cka", "cca", "svcca"):
        return getattr(comparison.similarity, measure)
    kind, _, group = measure.partition("_")
    return getattr(comparison.groups[group or "linear"], kind)


@pytest.fixture
def layers(rng):
    z = rng.normal(size=(300, 4))
    x = {"a": z + 0.8 * rng.normal(size=(300, 4)), "b": z + rng.normal(size=(300, 4))}
    y = {str(k): z @ rng.normal(size=(4, 3)) + rng.normal(size=(300, 3)) for k in range(3)}
    return x, y


@pytest.mark.parametrize("blocked", [False, True])
def test_of_a_single_pair_it_is_that_of_compare(layers, blocked):
    x, y = layers
    blocks = np.arange(300) // 5 if blocked else "none"
    found = compare_layers({"a": x["a"]}, {"p": y["0"]}, measures=MEASURES, permutations=0, blocks=blocks)
    alone = compare(x["a"], y["0"], permutations=1, blocks=blocks)
    for measure in MEASURES:
        own, single = found.best[measure].value, estimate_of(alone, measure)
        assert own.has_interval and own.of == f"{single.of}; chosen among 1 pair"
        assert (own.value, own.low, own.high) == pytest.approx((single.value, single.low, single.high), rel=1e-5)


def test_of_many_pairs_it_is_wider(layers):
    x, y = layers
    found = compare_layers(x, y, measures=MEASURES, permutations=0, blocks="none")
    for measure in MEASURES:
        best = found.best[measure]
        worst = np.nanmax if measure.startswith("epsilon") else np.nanmin
        extreme = np.nanmin if measure.startswith("epsilon") else np.nanmax
        assert best.value.value == extreme(found[measure]) != worst(found[measure]) and best.pairs == 6
        alone = compare(x[best.source], y[best.target], permutations=1, blocks="none")
        single = estimate_of(alone, measure)
        freedom = 299 if measure in ("cka", "cca", "svcca") else alone.groups["linear"].freedom
        wider = t.ppf(1 - 0.05 / 7, freedom) / t.ppf(0.975, freedom)
        widths = [e.high - e.low for e in (best.value, single)]
        # Those of the groups are symmetric for a logarithm; each has degrees of freedom of its own, about one a row.
        assert widths[0] / widths[1] == pytest.approx(wider, rel=0.02)


def test_few_rows_and_matched_columns_have_none(rng):
    z = rng.normal(size=(50, 6))
    found = compare_layers({"a": z}, {"p": z[:, ::-1] + 0.1, "q": z**2}, measures="r2,mcc,cka", permutations=5)
    assert not found.best["r2"].value.has_interval and not found.best["mcc"].value.has_interval
    assert found.best["cka"].value.has_interval and isinstance(found.best["mcc"].value, Estimate)
    text = str(found)
    assert "Best of 2 pairs of layers: 1.000 (best by chance up to" in text
    assert found.to_dict()["best"]["mcc"]["value"]["low"] is None
    assert found.to_frame()["p_value"].notna().all()


def test_what_is_said(layers):
    found = compare_layers(*layers, measures="cka,r2", permutations=19)
    best = found.best["cka"]
    assert found.view.headline.startswith(f"The most similar layers are {best.source} of x and {best.target} of y")
    ends = f"95% interval {best.value.low:.3f} to {best.value.high:.3f}, allowing for the choice"
    assert found.view.reason.startswith(f"Best of 6 pairs of layers: {best.value.value:.3f} ({ends}; best by chance up")
    assert found.view.reason.endswith("p = 0.05).")
    table, nearest = found.view.tables[:2]
    assert [row.cells[0] for row in table.rows] == ["linear CKA, debiased", "R2 of a linear map, held out"]
    assert table.rows[1].cells[3].low == found.best["r2"].value.low and table.rows[0].cells[5] == best.p_value
    assert [column.title for column in nearest.columns[1:4]] == ["cka\nnearest", "cka\nvalue", "cka\np"]
    written = found.to_dict()
    assert written["best"]["r2"]["pairs"] == 6 and np.shape(written["p_values"]["r2"]) == (2, 3)


def test_without_variance_there_is_no_best(rng):
    found = compare_layers({"a": np.ones((30, 2))}, {"p": rng.normal(size=(30, 2))}, measures="cka,r2")
    assert found.best == {} == found.p_values and found.view.reason == ""


def test_the_p_value_is_that_of_the_pair_that_is_named(rng):
    """A relation beyond the leading components is not seen by chance: the p beside it was another pair's."""
    z, s = rng.normal(size=(600, 48)), rng.normal(size=(600, 2))
    x, y = (np.hstack([3 * rng.normal(size=(600, 16)), z]) for _ in range(2))
    found = compare_layers(
        {"wide": x, "narrow": s},
        {"wide": y, "narrow": 0.3 * s + rng.normal(size=(600, 2))},
        measures="r2",
        permutations=19,
        blocks="none",
    )
    best = found.best["r2"]
    assert (best.source, best.target) == ("wide", "wide") and found.p_values["r2"][1, 1] == 0.05
    assert best.p_value == found.p_values["r2"][0, 0] > 0.1
    assert "p-value of r2 uses the 16 leading principal components" in found.view.tables[0].note


def test_one_block_has_no_chance_level_and_no_interval(rng):
    """There was an interval without width, or no end of looking for another order."""
    x, y = ({"a": rng.normal(size=(50, 2))} for _ in range(2))
    for permutations in (None, 0):
        found = compare_layers(x, y, measures="cka", blocks=np.zeros(50), permutations=permutations)
        assert not found.best["cka"].value.has_interval and found.p_values == {}
    assert found.view.tables[0].note.count("No chance level") == 0
    found = compare_layers(x, y, measures="cka", blocks=np.zeros(50))
    assert "No chance level for cka: a single block of rows cannot be shuffled" in found.view.tables[0].note
    assert "There is only 1 block of rows" in str(found)


def test_no_penalty_is_chosen_where_the_group_has_none(layers, monkeypatch):
    x, y = layers

    def never(*given, **options):
        raise AssertionError("chosen")

    monkeypatch.setattr("nearid.groups.ridge.Judges.__init__", never)
    found = compare_layers(x, y, measures="r2_rigid,r2_permutation", permutations=3, blocks="none")
    assert found.best["r2_rigid"].value.has_interval
    with pytest.raises(AssertionError, match="chosen"):
        compare_layers(x, y, measures="r2", permutations=3, blocks="none")

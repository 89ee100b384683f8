"""The best pair of layers by chance, against every pair in every order by hand."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

import nearid.questions.layers.chance as room
from nearid import compare, compare_layers, linear_cka, mcc, svcca
from nearid.folds import Blocks, assign, reordered


@pytest.fixture
def layers(rng):
    """Layers that share a little."""
    z = rng.normal(size=(120, 3))
    x = {"a": z + 3 * rng.normal(size=(120, 3)), "b": rng.normal(size=(120, 4))}
    y = {
        "p": z @ rng.normal(size=(3, 2)) + 3 * rng.normal(size=(120, 2)),
        "q": rng.normal(size=(120, 3)),
        "r": z**2 + rng.normal(size=(120, 3)),
    }
    return x, y


def orders_of(n, repetitions, blocks=None, seed=0):
    return [
        reordered(n, blocks, np.random.default_rng(own)) for own in np.random.SeedSequence([seed, 4]).spawn(repetitions)
    ]


def rigid_r2(x, y, fold):
    error = spread = 0.0
    for k in range(5):
        rows, at = fold != k, fold == k
        mean_x, mean_y = x[rows].mean(axis=0), y[rows].mean(axis=0)
        width = max(x.shape[1], y.shape[1])
        wide = [np.pad(side, ((0, 0), (0, width - side.shape[1]))) for side in (x[rows] - mean_x, y[rows] - mean_y)]
        turn, size = orthogonal_procrustes(*wide)
        turn = turn[: x.shape[1], : y.shape[1]]
        scale = size / np.sum(wide[0] ** 2)
        error += np.sum((y[at] - mean_y - scale * (x[at] - mean_x) @ turn) ** 2)
        spread += np.sum((y[at] - mean_y) ** 2)
    return 1 - error / spread


ALONE = {
    "cka": lambda a, b: linear_cka(a, b).value,
    "cca": lambda a, b: svcca(a, b, k=room.LEADING).value,
    "mcc": lambda a, b: mcc(a, b).value,
    "r2": lambda a, b: compare(a, b, groups="linear", permutations=1, blocks="none").groups["linear"].r2.value,
    "r2_permutation": lambda a, b: (
        compare(a, b, groups="permutation", permutations=1, blocks="none").groups["permutation"].r2.value
    ),
}


@pytest.mark.parametrize("measure", list(ALONE))
def test_every_pair_in_every_order(layers, measure):
    x, y = layers
    found = compare_layers(x, y, measures=measure, permutations=5, blocks="none")
    alone = ALONE[measure]
    reached = [max(alone(a, b[order]) for a in x.values() for b in y.values()) for order in orders_of(120, 5)]
    assert found.best[measure].value.chance == pytest.approx(max(reached), abs=1e-7)
    for i, a in enumerate(x.values()):
        for j, b in enumerate(y.values()):
            p_value = (1 + np.sum(np.array(reached) >= alone(a, b))) / 6
            assert found.p_values[measure][i, j] == pytest.approx(p_value)
    assert found.best[measure].p_value == found.p_values[measure].min() and found.best[measure].pairs == 6
    assert found.provenance["chance"] == {measure: {"repetitions": 5, "rows": 120, "components": 4}}


def test_rigid_motions_by_procrustes(rng):
    z = rng.normal(size=(100, 2))
    x = {"a": z, "b": rng.normal(size=(100, 2))}
    y = {"p": rng.normal(size=(100, 3)), "q": 0.2 * z + rng.normal(size=(100, 2))}
    found = compare_layers(x, y, measures="r2_rigid", permutations=7, blocks="none", random_state=4)
    fold = assign(100, 5, 4)
    reached = [
        max(rigid_r2(a, b[order], fold) for a in x.values() for b in y.values()) for order in orders_of(100, 7, seed=4)
    ]
    assert found.best["r2_rigid"].value.chance == pytest.approx(max(reached), abs=1e-9)
    best = max(rigid_r2(a, b, fold) for a in x.values() for b in y.values())
    assert found.best["r2_rigid"].value.value == pytest.approx(best, abs=1e-9)
    assert found.best["r2_rigid"].p_value == pytest.approx((1 + np.sum(np.array(reached) >= best)) / 8)


def test_blocks_change_places_and_rows_that_follow_each_other_are_turned_too(layers, monkeypatch):
    x, y = layers
    codes = np.repeat(np.arange(24), 5)
    found = compare_layers(x, y, permutations=6, blocks=codes)
    reached = [
        max(linear_cka(a, b[order]).value for a in x.values() for b in y.values())
        for order in orders_of(120, 6, Blocks(codes))
    ]
    assert found.best["cka"].value.chance == pytest.approx(max(reached), abs=1e-9)
    # The same where neighbours are alike beyond their block.
    chained = Blocks(codes, chained=True)
    monkeypatch.setattr("nearid.questions.layers.run.rows_together", lambda *given, **options: (chained, []))
    turned = compare_layers(x, y, permutations=6, blocks=codes)
    generators = [np.random.default_rng(own) for own in np.random.SeedSequence([0, 4]).spawn(6)]
    both = [
        max(
            linear_cka(a, b[order]).value
            for blocks in (Blocks(codes), Blocks(codes, serial=True))
            for order in [reordered(120, blocks, rng)]
            for a in x.values()
            for b in y.values()
        )
        for rng in generators
    ]
    assert turned.best["cka"].value.chance == pytest.approx(max(both), abs=1e-9)


def test_few_blocks_have_few_orders(layers):
    x, y = layers
    found = compare_layers(x, y, permutations=200, blocks=np.repeat(np.arange(3), 40), folds=3)
    # Three blocks have five orders beside their own.
    assert found.provenance["chance"]["cka"]["repetitions"] == 5 and found.best["cka"].p_value >= 1 / 6


def test_repetitions_that_reach_the_same_value_all_count():
    """Of two halves of the rows few values exist, and many orders reach them."""
    x, y = np.zeros((40, 1)), np.zeros((40, 1))
    x[:20], y[7:27] = 1, 1
    found = compare_layers({"a": x}, {"p": y}, permutations=99, blocks="none")
    reached = [linear_cka(x, y[order]).value for order in orders_of(40, 99)]
    assert len(np.unique(np.round(reached, 9))) < 15 and 0.01 < found.best["cka"].p_value < 0.5
    assert found.best["cka"].p_value == pytest.approx(
        (1 + np.sum(np.array(reached) >= linear_cka(x, y).value - 1e-9)) / 100
    )


def test_wide_layers_enter_by_their_leading_components(rng):
    sizes = np.geomspace(30, 1e-3, 40)
    z = rng.normal(size=(90, 40))
    x = {"a": z * sizes + 5, "b": rng.normal(size=(90, 3))}
    y = {"p": (z[:, ::-1] + rng.normal(size=(90, 40))) * sizes, "q": (0.3 * z + rng.normal(size=(90, 40))) * sizes}
    found = compare_layers(x, y, permutations=9, blocks="none")

    def leading(rows):
        u, s, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
        return (u * s)[:, : room.LEADING]

    small = [[leading(rows) for rows in side.values()] for side in (x, y)]
    values = [[linear_cka(a, b).value for b in small[1]] for a in small[0]]
    reached = [max(linear_cka(a, b[order]).value for a in small[0] for b in small[1]) for order in orders_of(90, 9)]
    expected = (1 + np.sum(np.array(reached) >= np.array(values)[..., None], axis=-1)) / 10
    np.testing.assert_allclose(found.p_values["cka"], expected)
    assert found.best["cka"].value.chance == pytest.approx(max(reached), abs=1e-4)
    assert found.provenance["chance"]["cka"]["components"] == room.LEADING
    assert "wide layers are reduced to 16 leading principal components" in found.view.method


def test_a_sample_of_many_rows(rng, monkeypatch):
    monkeypatch.setattr(room, "ROWS", 60)
    monkeypatch.setattr(room, "LEAST_ROWS", 50)
    x, y = {"a": rng.normal(size=(200, 3))}, {"p": rng.normal(size=(200, 3))}
    found = compare_layers(x, y, measures="cka,r2", permutations=5)
    rows = np.sort(np.random.default_rng([0, 1]).choice(200, 60, replace=False))
    reached = [linear_cka(x["a"][rows], y["p"][rows][order]).value for order in orders_of(60, 5)]
    assert found.best["cka"].value.chance == pytest.approx(max(reached), abs=1e-9)
    own = linear_cka(x["a"][rows], y["p"][rows]).value
    assert found.best["cka"].p_value == pytest.approx((1 + np.sum(np.array(reached) >= own)) / 6)
    assert {name: own["rows"] for name, own in found.provenance["chance"].items()} == {"cka": 60, "r2": 60}
    assert found.best["cka"].value.value == pytest.approx(linear_cka(x["a"], y["p"]).value)


@pytest.mark.parametrize("measure", ["cka", "r2"])
def test_unrelated_layers_are_seldom_found_alike(rng, measure):
    def model(widths):
        shared = rng.normal(size=(60, 4))
        return {str(k): shared @ rng.normal(size=(4, w)) + rng.normal(size=(60, w)) for k, w in enumerate(widths)}

    p_values = [
        compare_layers(model([3, 5, 4]), model([2, 6]), measures=measure, permutations=19, blocks="none").best[measure]
        for _ in range(60)
    ]
    # With a level of 5%, more than 9 of 60 come in 0.06% of all cases.
    assert sum(best.p_value <= 0.05 for best in p_values) <= 9
    # Against single pairs in place of the best of six, p-values would be small on average.
    assert 0.3 < np.mean([best.p_value for best in p_values]) < 0.75


def test_repetitions(layers, monkeypatch):
    x, y = layers
    assert compare_layers(x, y).provenance["chance"]["cka"]["repetitions"] == 99
    none = compare_layers(x, y, permutations=0, measures="cka,r2")
    assert none.p_values == {} == none.provenance["chance"] and np.isnan(none.best["cka"].p_value)
    assert "chance" not in none.view.reason and "No chance level" not in str(none)
    monkeypatch.setattr(room, "PAIRS", 5)
    found = compare_layers(x, y, measures="cka,r2_rigid").provenance["chance"]
    assert {name: own["repetitions"] for name, own in found.items()} == {"cka": 99, "r2_rigid": 19}


def test_measures_without_a_cheap_level_have_none_and_a_reason(rng):
    def mine(a, b):
        return float(a.mean() - b.mean())

    x, y = {"a": rng.normal(size=(80, 33))}, {"p": rng.normal(size=(80, 3))}
    found = compare_layers(x, y, measures=["mcc", "r2_permutation", "r2_rigid", "epsilon", mine], permutations=3)
    assert list(found.p_values) == ["r2_rigid"] and list(found.best) == list(found.values)
    note = found.view.tables[0].note
    assert "No chance level for mcc, r2_permutation: some layers have more than 32 columns" in note
    assert "for epsilon: R2 of the same map has one" in note and "for mine: nearid does not know how long" in note


def test_rows_that_are_too_slow_have_no_level_of_chance(rng):
    steps = np.cumsum(rng.normal(size=(300, 4)), axis=0)
    found = compare_layers({"a": steps[:, :2]}, {"p": steps[:, 2:]}, permutations=3)
    assert {"serial_rows", "slow_rows"} <= {alert.code for alert in found.alerts}
    assert (
        found.p_values == {} and "No chance level for cka: rows depend on their neighbours" in found.view.tables[0].note
    )


def test_a_layer_beside_itself_says_nothing(layers):
    x, _ = layers
    found = compare_layers({**x, "c": x["a"] + 1e-3 * x["b"][:, :3]}, permutations=9)
    assert found.names == ("x", "x") and found.best["cka"].pairs == 6
    assert {found.best["cka"].source, found.best["cka"].target} == {"a", "c"}
    assert np.isnan(np.diag(found.p_values["cka"])).all() and found.p_values["cka"][0, 2] == pytest.approx(0.1)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_few_rows_are_enough_where_nothing_is_held_out(rng, n):
    x, y = {"a": rng.normal(size=(n, 2)), "b": rng.normal(size=(n, 20))}, {"p": rng.normal(size=(n, 3))}
    found = compare_layers(x, y, permutations=5)
    # Fewer than four rows have no debiased CKA; other few ones may have none.
    assert n > 3 or found.best == {}
    for best in found.best.values():
        assert best.value.value == np.nanmax(found["cka"])
    compare_layers(x, y, measures=lambda a, b: 1.0)

"""Every entry of a matrix against the measure of that pair of layers alone, whatever the tiles."""

import numpy as np
import pytest

from nearid import cca, compare, compare_layers, linear_cka, mcc, svcca
from nearid.groups.ladder import GROUPS
from nearid.groups.ridge import Judges
from nearid.questions.layers import tiles
from nearid.questions.layers.result import group_of, measures

ALL = list(measures())
LADDER = [name for name, group in GROUPS.items() if group.prepare is None]


def test_every_group_of_the_ladder_has_its_measures():
    for kind in ("r2", "epsilon"):
        assert sorted(g for m in ALL if (g := group_of(m, kind))) == sorted(LADDER)
    assert group_of("r2", "r2") == group_of("epsilon", "epsilon") == "linear" and group_of("cka", "r2") is None
    assert group_of("epsilon_scaled_permutation", "epsilon") == "scaled_permutation"


@pytest.mark.parametrize("tile", [tiles.TILE_BYTES, 1])
def test_every_pair_as_alone(sides, monkeypatch, tile):
    monkeypatch.setattr(tiles, "TILE_BYTES", tile)
    x, y = sides
    found = compare_layers(x, y, measures=ALL, random_state=3, permutations=0)
    assert found.layers == (("a", "b", "c"), ("p", "q", "r")) and found.widths == ((5, 4, 2), (4, 5, 6))
    for i, a in enumerate(x.values()):
        for j, b in enumerate(y.values()):
            assert found["cka"][i, j] == pytest.approx(linear_cka(a, b).value, abs=1e-10)
            assert found["cca"][i, j] == pytest.approx(cca(a, b, random_state=3).value, abs=1e-8)
            assert found["svcca"][i, j] == pytest.approx(svcca(a, b, random_state=3).value, abs=1e-8)
            groups = compare(a, b, groups=LADDER, random_state=3, permutations=1).groups
            for measure in ALL:
                if group := group_of(measure, "r2"):
                    assert found[measure][i, j] == pytest.approx(groups[group].r2.value, abs=1e-5)
                if group := group_of(measure, "epsilon"):
                    assert found[measure][i, j] == pytest.approx(groups[group].epsilon.value, rel=1e-5, abs=1e-12)
            assert found["mcc"][i, j] == pytest.approx(mcc(a, b, random_state=3).value, abs=1e-8)
    assert found["r2"][0, 0] > 0.99 > 0.8 > found["r2_permutation"][0, 0]
    assert np.abs(found["cka"][2]).max() < 0.05


@pytest.mark.parametrize("ridge", [0, 30.0, "auto"])
def test_wide_layers_have_the_penalty_of_compare(rng, ridge):
    hidden = rng.normal(size=(120, 6))
    x = {"a": hidden @ rng.normal(size=(6, 50)) + rng.normal(size=(120, 50)), "b": rng.normal(size=(120, 200))}
    y = {"p": hidden @ rng.normal(size=(6, 8)) + rng.normal(size=(120, 8)), "q": hidden}
    found = compare_layers(x, y, measures="r2,epsilon", ridge=ridge, permutations=0)
    for i, a in enumerate(x.values()):
        for j, b in enumerate(y.values()):
            alone = compare(a, b, groups="linear", ridge=ridge, blocks="none", permutations=1).groups["linear"]
            assert found["r2"][i, j] == pytest.approx(alone.r2.value, abs=1e-7)
            assert found["epsilon"][i, j] == pytest.approx(alone.epsilon.value, rel=1e-7)
    # Noise is fitted without a penalty, and layers that share something are found with one.
    assert (found["r2"].min() < -0.5) == (ridge == 0)
    assert ridge != "auto" or (found["r2"][0].min() > 0.5 and np.abs(found["r2"][1]).max() < 0.1)


@pytest.mark.parametrize("measures", ["r2,r2_rigid", "epsilon,epsilon_rigid"])
def test_each_source_layer_is_decomposed_once(sides, monkeypatch, measures):
    made = []

    class Counted(Judges):
        def __init__(self, *given, **options):
            made.append(given)
            super().__init__(*given, **options)

    monkeypatch.setattr(tiles, "Judges", Counted)
    compare_layers(*sides, measures=measures, permutations=0)
    assert len(made) == 3
    compare_layers(*sides, measures=measures, ridge=1.0, permutations=0)
    compare_layers(*sides, measures="r2_rigid,epsilon_permutation", permutations=0)
    assert len(made) == 3

"""Every entry of a matrix against the measure of that pair of layers alone, whatever the tiles."""

import numpy as np
import pytest

from nearid import cca, compare, compare_layers, linear_cka, mcc, svcca
from nearid.groups.ladder import GROUPS
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
    found = compare_layers(x, y, measures=ALL, random_state=3)
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

"""Each caution appears when it should and not otherwise."""

import numpy as np
import pytest

from nearid import compare


def codes(x, y, **options):
    return {a.code for a in compare(x, y, permutations=1, **options).alerts}


def test_clean_inputs_raise_no_alert(rng):
    x = rng.normal(size=(1000, 4))
    assert codes(x, x + rng.normal(size=(1000, 4))) == set()


@pytest.mark.parametrize(("n", "words"), [(30, "noisy"), (12, "no intervals")])
def test_few_rows(rng, n, words):
    x = rng.normal(size=(n, 14))
    found = compare(x, x + rng.normal(size=(n, 14)), permutations=1)
    assert any(a.code == "few_rows" and words in a.message for a in found.alerts)


def test_heavy_tails(rng):
    x = rng.normal(size=(1000, 4))
    y = x + rng.normal(size=(1000, 4))
    y[0] *= 100
    assert "heavy_tails" in codes(x, y)


def test_a_bracketed_diameter_is_said(rng, monkeypatch):
    import nearid.measures.diameter as room

    monkeypatch.setattr(room.search, "__kwdefaults__", {**room.search.__kwdefaults__, "budget": 0})
    x = rng.normal(size=(3000, 12))
    found = compare(x, x + rng.normal(size=(3000, 12)), permutations=1)
    assert not found.diameter.exact
    assert any(a.code == "diameter_bracket" and "lower bound" in a.message for a in found.alerts)


def test_outlying_rows_of_the_source(rng):
    x = rng.normal(size=(1000, 4))
    y = x + rng.normal(size=(1000, 4))
    x[3, 2] = 1e12
    assert "outlying_source" in codes(x, y)


def test_blocks_are_counted_without_those_that_were_dropped(rng):
    x, block = rng.normal(size=(400, 3)), np.repeat(np.arange(40), 10)
    y = x + rng.normal(size=(400, 3))
    assert "few_blocks" not in codes(x, y, blocks=block)
    x[block >= 12, 0] = np.nan
    found = compare(x, y, blocks=block, permutations=1, drop_nonfinite=True)
    assert any(a.code == "few_blocks" and "only 12 blocks" in a.message for a in found.alerts)
    assert found.provenance["blocks"] == 12 and "(12 here)" in found.groups["rigid"].r2.of

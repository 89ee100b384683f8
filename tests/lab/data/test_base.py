"""Factors as the measures know them, and the trap of truncation."""

import numpy as np
import pytest

import nearid
from nearid.base.errors import InputError
from nearid.lab.data.base import FactorInfo, LabelledImages, grid, nearest_level
from nearid.lab.data.images import ArrayImages

FACTORS = (
    FactorInfo("shape", "categorical", 3),
    FactorInfo("scale", "integer", 4),
    FactorInfo("angle", "circular", 8, 360.0, tuple(np.arange(8) * 45.0)),
)


def test_grid_has_every_combination_once_the_last_fastest():
    codes = grid(FACTORS)
    np.testing.assert_array_equal(codes @ [32, 8, 1], np.arange(96))


def test_measures_take_the_factors_as_they_are():
    found = LabelledImages("x", ArrayImages("x", np.zeros((96, 1, 1), np.uint8)), FACTORS, grid(FACTORS))
    factors = nearid.open_factors(found.columns, kinds=found.kinds, periods=found.periods)
    assert [(f.name, f.kind, f.period) for f in factors.items] == [
        ("shape", "categorical", None),
        ("scale", "integer", None),
        ("angle", "circular", 360.0),
    ]
    assert factors.items[2].values.max() == 315
    assert not factors.alerts


def test_levels_out_of_range_are_refused():
    table = grid(FACTORS)
    table[5, 1] = 4
    with pytest.raises(InputError, match="Factor 'scale' of x has levels 0 to 4, but 0 to 3"):
        LabelledImages("x", ArrayImages("x", np.zeros((96, 1, 1), np.uint8)), FACTORS, table)


def test_the_nearest_level_survives_rounding():
    levels = FactorInfo("class", "categorical", 183, levels=tuple(np.arange(183) / 182))
    fractions = (np.arange(183) / 182).astype(np.float32).astype(float)
    np.testing.assert_array_equal(nearest_level("x", levels, fractions), np.arange(183))
    with pytest.raises(InputError, match="at row 2"):
        nearest_level("x", levels, np.array([0, 1, 0.5 / 182]))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_has_no_level(odd):
    scale = FactorInfo("scale", "integer", 3, levels=(0.75, 1.0, 1.25))
    with pytest.raises(InputError, match=rf"x has {odd:g} for 'scale' at row 1, but one of 3 levels"):
        nearest_level("x", scale, np.array([0.75, odd, 1.25]))

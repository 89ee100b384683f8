"""Figures are plain data that JSON can carry."""

import json

import numpy as np
import pytest

from nearid import compare
from nearid.jsonable import finite
from nearid.report import plots


@pytest.mark.parametrize("name", ["ladder", "distributions", "spectra", "canonical", "matching", "overlay"])
def test_each_figure_is_json(rng, name):
    x = np.hstack([rng.normal(size=(200, 3)), np.zeros((200, 1))])
    figure = getattr(plots, name)(compare(x, rng.normal(size=(200, 2)), groups="all", in_sample=True, permutations=1))
    assert set(figure) == {"data", "layout"} and figure["data"]
    json.dumps(finite(figure), allow_nan=False)


def test_shares_of_rows_add_up(rng):
    figure = plots.distributions(compare(x := rng.normal(size=(200, 3)), x + rng.normal(size=(200, 3))))
    for curve in figure["data"]:
        assert sum(curve["y"]) == pytest.approx(1)

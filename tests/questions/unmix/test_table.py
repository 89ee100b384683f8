"""An unmixing in a terminal."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from nearid import ICA
from nearid.arrays import open_rows
from nearid.ica.estimators import IdentifiabilityWarning
from nearid.questions.unmix.table import conclusion, render, standing


def text(ica, width):
    buffer = StringIO()
    Console(file=buffer, width=width, no_color=True).print(render(ica, width))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def ica():
    rng = np.random.default_rng(0)
    s = np.hstack([rng.laplace(size=(5000, 8)), rng.uniform(-1, 1, size=(5000, 3)), rng.normal(size=(5000, 1))])
    return ICA().fit(open_rows(s @ rng.normal(size=(12, 12)), name="[bold]name"))


@pytest.mark.parametrize("width", [80, 140])
def test_it_fits_and_is_never_cut(ica, width):
    shown = text(ica, width)
    assert max(map(len, shown.splitlines())) <= width and "…" not in shown
    assert "[bold]name" in shown and "the 10 least Gaussian of 12 components" in shown
    for caution in ica.diagnostics_.cautions:
        assert " ".join(caution.text.split()) in " ".join(shown.split())


def test_the_conclusion(ica):
    assert conclusion(ica).startswith("12 components, found in")
    assert conclusion(ica).endswith("1 of them cannot be told from Gaussian")
    assert sorted(set(ica.diagnostics_.kinds)) == ["Gaussian", "sub-Gaussian", "super-Gaussian"]
    with pytest.warns(ConvergenceWarning), pytest.warns(IdentifiabilityWarning, match="this is no optimum"):
        short = ICA(max_passes=1).fit(np.random.default_rng(0).laplace(size=(4000, 3)))
    assert "not settled after 1 passes" in conclusion(short) and standing(short) == "bad"


def test_noise_is_not_called_good(ica):
    assert standing(ica) == "good"
    with pytest.warns(IdentifiabilityWarning, match="4 of 4 components"):
        noise = ICA().fit(np.random.default_rng(0).normal(size=(500, 4)))
    assert standing(noise) == "careful"

"""The efficiency of ICA from errors that are known."""

import numpy as np
import pytest

from nearid.questions.compare.efficiency import efficiency

NAMES = ["permutation", "rigid", "linear", "ica"]


def judged(errors, noise=1e-3, in_sample=None, names=NAMES):
    errors = np.array(errors)
    drawn = errors + noise * np.random.default_rng(0).normal(size=(1000, len(errors)))
    return efficiency(names, errors, drawn, 1.0, in_sample)


def test_the_papers_figure():
    # Pythia-160M: 0.219, 0.150, 0.131 and 0.202 are printed with 25%.
    found = judged([0.219, 0.150, 0.131, 0.202], in_sample=np.array([0.2, 0.1, 0.1, 0.15]))
    assert round(found.value, 2) == 0.25 and found.low < found.value < found.high
    assert found.in_sample == pytest.approx(0.5)
    assert "removes 25% [" in found.reason and found.reason.endswith("in sample 50%.")


@pytest.mark.parametrize(("ica", "words"), [(0.3, "does worse than"), (0.2, "gains nothing certain"), (0.1, "100%")])
def test_words_follow_the_figures(ica, words):
    assert words in judged([0.2, 0.1, 0.1, ica]).reason


@pytest.mark.parametrize(
    "errors", [[0.1, 0.1, 0.1, 0.1], [0.1, 0.102, 0.1, 0.1], [1e-16, 0, 0, 1e-17], [0.1012, 0.1, 0.1, 0.1]]
)
def test_no_figure_where_a_rigid_motion_gains_nothing_for_certain(errors):
    found = judged(errors, noise=1e-3 if max(errors) > 1e-3 else 1e-18, in_sample=np.array(errors))
    assert all(np.isnan([found.value, found.low, found.high, found.in_sample]))
    assert "does not clearly gain" in found.reason


def test_no_figure_without_its_groups():
    assert "needs the groups" in judged([0.1, 0.2], names=["linear", "ica"]).reason

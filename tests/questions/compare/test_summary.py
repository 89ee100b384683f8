"""Figures of errors that can be counted by hand."""

import numpy as np

from nearid.groups.ladder import ladder
from nearid.measures.diameter import Diameter
from nearid.questions.compare.summary import summaries


def test_figures_of_known_errors():
    errors = np.vstack([np.arange(101.0), np.full(101, 3.0)])
    size = Diameter(10.0, 12.0, False, (0, 1))
    found = summaries(ladder("permutation,linear"), (2, 3), errors, np.array([0.25, 0.5]), size)
    e = found["permutation"].epsilon
    assert (e.mean, e.median, e.q95, e.max) == (5.0, 5.0, 9.5, 10.0)
    assert found["permutation"].r2 == 0.75 and found["linear"].epsilon.max == 0.3
    assert found["linear"].degrees_of_freedom == 9 and np.isnan([e.low, e.high, found["linear"].chance]).all()

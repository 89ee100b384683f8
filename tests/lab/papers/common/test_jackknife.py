"""A jackknife: of means it is Student's interval, of pairs it knows that they share networks."""

from itertools import combinations

import numpy as np
import pytest

from nearid.base.estimate import Estimate
from nearid.lab.papers.common.jackknife import jackknife


def test_of_a_mean_it_is_students_interval(rng):
    values = dict(enumerate(rng.normal(size=7)))
    found = jackknife(list(values), lambda out: float(np.mean([v for k, v in values.items() if k != out])), "seeds")
    usual = Estimate.over(list(values.values()))
    assert [found.value, found.low, found.high] == pytest.approx([usual.value, usual.low, usual.high])
    assert found.of == "seeds, jackknife" and found.n == 7


def test_pairs_that_share_networks_tell_less_than_as_many_independent_ones(rng):
    """The mean over pairs of what two networks have: its interval covers the truth as often as it says."""
    covered = 0
    for _ in range(200):
        own = rng.normal(size=8)
        pairs = {pair: own[list(pair)].mean() for pair in combinations(range(8), 2)}
        found = jackknife(
            range(8), lambda out, p=pairs: float(np.mean([v for k, v in p.items() if out not in k])), "networks"
        )
        covered += found.low <= 0 <= found.high
    assert covered >= 182


def test_too_few_parts_have_no_interval():
    for parts in ([], ["a"], ["a", "b"]):
        found = jackknife(parts, lambda out: 1.0, "networks")
        assert found.value == 1 and not found.has_interval and found.n == 1
    assert not jackknife(["a", "b", "c"], lambda out: float("nan") if out == "a" else 1.0, "networks").has_interval

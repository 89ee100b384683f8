"""Rows that decide components, and rows that repeat, are reported; ordinary heavy tails are not."""

import warnings

import numpy as np
import pytest

import nearid.engines.local as local
from nearid import ICA
from nearid.arrays import open_rows
from nearid.ica.linear import IdentifiabilityWarning


def kinds(x, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        found = ICA(dtype="float64").fit_rows(open_rows(x), **options)
    return {c.kind for c in found.diagnostics_.cautions} & {"outlying_rows", "repeated_rows"}


@pytest.fixture
def x(rng):
    return rng.laplace(size=(1000, 4)) @ rng.normal(size=(4, 4))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)


def test_ordinary_rows_give_no_caution(x, rng):
    assert kinds(x) == kinds(x.astype(np.float32)) == set()
    assert kinds(rng.standard_t(4, size=(1000, 4))) == set()


def test_a_row_that_makes_a_component_is_reported(x):
    x[1] = 1e6
    assert kinds(x) == {"outlying_rows"}
    with pytest.warns(IdentifiabilityWarning, match="5 of 1000 rows carry 100% of the variance of component 0"):
        ICA().fit(x)


def test_rows_that_repeat_are_reported(x, rng):
    copies = np.repeat(x[:30], 10, axis=0)[rng.permutation(300)]
    assert "repeated_rows" in kinds(copies)
    with pytest.warns(IdentifiabilityWarning, match="About 270 of 300 rows repeat others"):
        ICA().fit(copies)


def test_rows_that_were_dropped_do_not_count(x):
    x[5:100, 0] = np.nan
    assert kinds(x, drop_nonfinite=True) == set()

"""The moments behind MCC and R2: columns of factors in their places, whatever way the factors come in."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.measures.factors import open_factors
from nearid.measures.targets import Inputs
from nearid.moments import PairMoments


def gathered(z, u, folds=1, **options):
    return Inputs(z, u, **options).moments(folds, random_state=0)


def test_blocks_point_at_the_columns_of_each_factor(rng):
    z, kinds = rng.normal(size=(50, 2)), np.array(["a", "b", "c"])[rng.integers(0, 3, 50)]
    table = {"size": rng.normal(size=50), "kind": kinds, "level": rng.normal(size=50)}
    known = open_factors(table)
    for source in (known, table):
        found = gathered(z, source)
        assert found.names == ("size", "kind", "level") and found.kinds == ("continuous", "categorical", "continuous")
        assert found.blocks == (slice(0, 1), slice(1, 4), slice(4, 5))
    whole = PairMoments.of(z, np.hstack([factor.columns for factor in known.items]))
    np.testing.assert_allclose(found.source.all.xy, whole.xy, atol=1e-10)


def test_constant_factors_are_left_out_of_what_is_streamed(rng):
    u = np.column_stack([rng.normal(size=50), np.full(50, 0.1), rng.normal(size=50)])
    found = gathered(rng.normal(size=(50, 2)), u, folds=5)
    assert found.names == ("0", "2") and found.blocks == (slice(0, 1), slice(2, 3))
    assert [alert.code for alert in found.alerts] == ["constant_factor"]


def test_splits_with_one_fold_are_all_rows(rng):
    found = gathered(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)))
    assert found.splits(lambda train, test: (train.n, test.n)) == [(50, 50)]
    found = gathered(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)), folds=5)
    assert found.splits(lambda train, test: (train.n, test.n)) == [(40, 10)] * 5


def test_named_columns_that_do_not_fit_are_refused(rng):
    z = rng.normal(size=(20, 2))
    with pytest.raises(InputError, match="columns of factors differ in length"):
        gathered(z, {"a": np.arange(20.0), "b": np.arange(19.0)})
    with pytest.raises(InputError, match="latents has 20 rows and factors has 19"):
        gathered(z, {"a": np.arange(19.0)})


def test_too_many_rows_dropped_is_refused(rng):
    z = rng.normal(size=(20, 2))
    z[:18] = np.nan
    with pytest.raises(InputError, match="2 usable rows are too few for 5 folds"):
        gathered(z, rng.normal(size=(20, 1)), folds=5, drop_nonfinite=True)

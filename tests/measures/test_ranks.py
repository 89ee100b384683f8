import numpy as np
from scipy.stats import rankdata

from nearid.measures.ranks import average_ranks


def test_ranks_are_those_of_scipy(rng):
    columns = np.column_stack([rng.normal(size=200), rng.integers(0, 5, 200), np.ones(200)])
    np.testing.assert_array_equal(average_ranks(columns), rankdata(columns, axis=0))
    np.testing.assert_array_equal(average_ranks(columns[:, 1]), rankdata(columns[:, 1]))
    assert average_ranks(np.array([3.0])).tolist() == [1.0]

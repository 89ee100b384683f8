import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.load import load
from nearid.lab.data.registry import dataset, locate


def test_digits_need_no_files(home):
    from sklearn.datasets import load_digits

    found = load("digits")
    np.testing.assert_array_equal(found.images.read()[..., 0] * 16, load_digits().images)
    np.testing.assert_array_equal(found.codes[:, 0], load_digits().target)
    with pytest.raises(InputError, match="scikit-learn"):
        locate(dataset("digits"))

"""Ids of tokens."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.questions.extract.tokens import PLACES, token_ids


def test_ids_do_not_depend_on_the_side_of_the_padding():
    right, left = np.array([[1, 1, 0], [1, 1, 1]], bool), np.array([[0, 1, 1], [1, 1, 1]], bool)
    expected = [5 * PLACES, 5 * PLACES + 1, 9 * PLACES, 9 * PLACES + 1, 9 * PLACES + 2]
    for mask in (right, left):
        assert token_ids(np.array([5, 9]), mask).tolist() == expected
        assert token_ids(np.array(["a", "bc"]), mask).tolist() == ["a:0", "a:1", "bc:0", "bc:1", "bc:2"]


def test_ids_that_leave_no_room_are_told():
    with pytest.raises(InputError, match="use text ids"):
        token_ids(np.array([-1, 2]), np.ones((2, 2), bool))

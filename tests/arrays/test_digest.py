"""Digests of files that the user gives: every number, name and place counts, and nothing else."""

import numpy as np
import pytest

from nearid.arrays import digest as module
from nearid.arrays import open_rows
from nearid.arrays.digest import digest


@pytest.fixture
def x(rng):
    return rng.normal(size=(1000, 6)).astype(np.float32)


@pytest.mark.parametrize("block", [1, 1000, 1 << 24])
def test_any_number_changes_it(x, block, monkeypatch):
    whole = digest(open_rows(x))
    # Blocks are no part of what is told.
    monkeypatch.setattr(module, "BLOCK", block)
    assert digest(open_rows(x)) == whole and len(whole) == 16
    for row in (0, 5, 999):
        other = x.copy()
        other[row, 3] += 1
        assert digest(open_rows(other)) != whole


def test_shape_order_and_precision_count(x):
    others = (x.reshape(500, 12), x[::-1], x[:-1], x.astype(np.float64))
    assert len({digest(open_rows(other)) for other in (x, *others)}) == 5


def test_only_the_rows_taken_count_and_in_their_order(x):
    index = np.array([7, 3, 500])
    found = digest(open_rows(x), index)
    assert found == digest(open_rows(x[index])) != digest(open_rows(x), index[::-1])
    other = x.copy()
    other[8] = 0
    assert digest(open_rows(other), index) == found


def test_other_ids_are_told(x, tmp_path):
    ids = np.array([f"image{k}" for k in range(len(x))])
    found = set()
    for given_ids in (ids, ids[::-1]):
        np.savez(tmp_path / "x.npz", x=x, ids=given_ids)
        found.add(digest(open_rows(tmp_path / "x.npz", key="x", ids="ids")))
    assert len(found) == 2
    assert digest(open_rows(x, ids=ids), with_ids=False) == digest(open_rows(x))


def test_a_file_has_the_digest_of_its_array(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    assert digest(open_rows(tmp_path / "x.npy")) == digest(open_rows(x))

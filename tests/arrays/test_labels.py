"""Labels of blocks: what is taken, what is refused, and when two lists part the same rows alike."""

import numpy as np
import pandas as pd
import pytest

from nearid.arrays.labels import block_codes, refuse_other_blocks, row_blocks
from nearid.base.errors import InputError

TAKEN = {
    "integers": ([3, 1, 3], [3, 1, 3]),
    "whole floats": (np.array([3.0, 1.0, 3.0]), [3, 1, 3]),
    "booleans": (np.array([True, False, True]), [1, 0, 1]),
    "text": (["a", "b", "a"], ["a", "b", "a"]),
    "a column": (np.array([[3], [1], [3]]), [3, 1, 3]),
    "a frame of one column": (pd.DataFrame({"well": ["a", "b", "a"]}), ["a", "b", "a"]),
    "bytes": ([b"a", b"b", b"a"], ["a", "b", "a"]),
    "objects": (np.array(["a", "b", "a"], object), ["a", "b", "a"]),
    "series": (pd.Series([3, 1, 3], index=[7, 8, 9]), [3, 1, 3]),
    "categories": (pd.Categorical(["a", "b", "a"]), ["a", "b", "a"]),
    "nullable integers": (pd.array([3, 1, 3], dtype="Int64"), [3, 1, 3]),
}


@pytest.mark.parametrize(("given", "labels"), TAKEN.values(), ids=list(TAKEN))
def test_labels_of_any_kind_are_taken(given, labels):
    assert row_blocks("x", given, 3).tolist() == labels


def test_labels_in_a_tensor_are_taken():
    torch = pytest.importorskip("torch")
    assert row_blocks("x", torch.tensor([3, 1, 3]), 3).tolist() == [3, 1, 3]


REFUSED = {
    "too few": (
        [1, 2],
        r"shape \(2,\), but one label for each of its 3 rows .* Give the labels of the same rows",
    ),
    "two dimensions": (np.zeros((3, 2), int), r"shape \(3, 2\).*Give a single column"),
    "a number": (5, r"are 5, but one label for each of its 3 rows.*name of a column or file, or blocks='none'"),
    "ragged": ([[1], [1, 2], [3]], "cannot be converted to an array of 3 labels"),
    "NaN": ([0.0, np.nan, 1.0], "block of row 1 of x is nan.*Fill in the missing blocks"),
    "infinite": ([0.0, 1.0, np.inf], "block of row 2 of x is inf"),
    "fractions": ([0.0, 0.5, 1.0], "block of row 1 of x is 0.5.*Measurements cannot be blocks"),
    "floats beyond 2^53": ([0.0, 2.0**53, 2.0**53 + 1], "block of row 1 of x .* lose digits"),
    "floats beyond int64": ([0.0, 1e300, 2e300], "block of row 1 of x .* lose digits"),
    "None": (["a", "b", None], "block of row 2 of x is None"),
    "NaN beside text": (["a", np.nan, "b"], "block of row 1 of x is nan"),
    "empty text": (["a", "", "b"], "block of row 1 of x is ''"),
    "NA": (pd.array([1, None, 2], dtype="Int64"), "block of row 1 of x is (nan|<NA>)"),
    "missing category": (pd.Categorical(["a", None, "b"]), "block of row 1 of x is None"),
    "objects": (np.array([object(), 1, 2], object), "block of row 0 of x is <object"),
    "complex": (np.array([1j, 2, 3]), "dtype complex128"),
    "ending in NUL": (["a", "a\0", "b"], "block of row 1 of x .* ends in a NUL"),
    "masked": (np.ma.masked_array([1, 2, 3], [0, 1, 0]), "masked array"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_no_label_for_each_row_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        row_blocks("x", given, 3)


def test_a_header_that_was_taken_for_a_name_is_hinted_at():
    with pytest.raises(InputError, match=r"first line of a \.csv file is read as the column name"):
        row_blocks("x", [1, 2], 3, in_file=True)


def test_a_million_different_labels():
    labels = np.random.default_rng(0).permutation(10**6)
    np.testing.assert_array_equal(block_codes(row_blocks("x", labels + 5, 10**6)), np.arange(10**6))
    text = row_blocks("x", [f"well {at}" for at in labels], 10**6)
    np.testing.assert_array_equal(block_codes(text), np.arange(10**6))


def test_blocks_are_counted_as_they_come():
    assert block_codes(np.array([7, 3, 7, 10, 3])).tolist() == [0, 1, 0, 2, 1]
    assert block_codes(np.array(["t7", "t3", "t7", "t10", "t3"])).tolist() == [0, 1, 0, 2, 1]


def test_partitions_are_compared_whatever_their_labels(rng):
    labels = rng.integers(0, 9, 50)
    refuse_other_blocks("x", labels, "y", np.array(list("abcdefghi"))[labels])
    # Finer and coarser partitions both differ, whichever comes first.
    other = labels.copy()
    same = np.flatnonzero(labels == labels[20])
    other[same[-1]] = 99
    for one, two in ((labels, other), (other, labels)):
        with pytest.raises(InputError, match=rf"blocks of x and y differ in row {same[-1]}: .* as row {same[0]} in"):
            refuse_other_blocks("x", one, "y", two)


def test_measurements_read_as_text_are_no_blocks():
    texts = ["0.25", "1.5", "2", "-3.75"]
    for values in (texts, np.array(texts), np.array(texts, dtype=object)):
        with pytest.raises(InputError, match=r"The block of row 0 of a\.csv is '0\.25'"):
            row_blocks("a.csv", values, 4)
    # Labels with a point repeat, as plates and wells do.
    assert row_blocks("a.csv", np.array(["1.1", "1.1", "1.1", "1.2", "1.2"]), 5).tolist() == ["1.1"] * 3 + ["1.2"] * 2

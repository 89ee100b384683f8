"""What holds for rows of every kind, what is refused, ids and digests."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from nearid.arrays import first_nonfinite, open_rows, rows as module
from nearid.arrays.rows import digest
from nearid.base.errors import InputError


def test_every_format_gives_the_same_rows(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    assert rows.shape == matrix.shape
    assert rows.dtype == (np.float64 if written.name.endswith((".csv", ".tsv.gz")) else np.float32)
    assert rows.name.startswith(written.name)
    block = rows.read(0, len(matrix))
    assert block.dtype == rows.dtype and block.dtype.isnative
    np.testing.assert_array_equal(block, matrix)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_read_and_take_are_numpy_slicing(written: Path, matrix: np.ndarray, data: st.DataObject) -> None:
    rows, n = open_rows(written), len(matrix)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    np.testing.assert_array_equal(rows.read(start, stop), matrix[start:stop])
    indices = np.array(data.draw(st.lists(st.integers(0, n - 1))), dtype=int)
    np.testing.assert_array_equal(rows.take(indices), matrix[indices])


def test_reads_from_threads(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    starts = np.random.default_rng(1).integers(0, 30, 200).tolist()
    with ThreadPoolExecutor(8) as pool:
        for start, block in zip(starts, pool.map(lambda at: rows.read(at, at + 7), starts), strict=True):
            np.testing.assert_array_equal(block, matrix[start : start + 7])


def test_rows_of_files_travel_to_other_processes(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    rows.read(0, 5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows)).read(3, 9), matrix[3:9])


def test_fingerprint_follows_the_numbers(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    assert rows.fingerprint() == open_rows(matrix.astype(rows.dtype)).fingerprint()
    assert len(rows.fingerprint()) == 16
    other = matrix.astype(rows.dtype)
    other[11, 2] += 1
    assert rows.fingerprint() != open_rows(other).fingerprint()


def test_fingerprint_reads_few_rows_of_many() -> None:
    x = np.random.default_rng(0).normal(size=(100_000, 3))
    rows = open_rows(x)
    taken = []
    rows._take = lambda indices: taken.append(indices) or x[indices]  # type: ignore[method-assign]
    rows.fingerprint()
    assert len(taken[0]) == 256 and taken[0][0] == 0 and taken[0][-1] == len(x) - 1


@pytest.mark.parametrize("start, stop", [(-1, 3), (3, 2), (0, 38)])
def test_read_refuses_rows_outside(matrix: np.ndarray, start: int, stop: int) -> None:
    with pytest.raises(IndexError, match=r"do not exist: array has 37 rows"):
        open_rows(matrix).read(start, stop)


def test_take_refuses_masks_and_rows_outside(written: Path) -> None:
    rows = open_rows(written)
    with pytest.raises(IndexError, match=r"dtype bool"):
        rows.take(np.ones(37, bool))
    with pytest.raises(IndexError, match=r"Row -1"):
        rows.take(np.array([0, -1]))
    with pytest.raises(IndexError, match=r"Row 37"):
        rows.take(np.array([37, 0]))


def test_first_nonfinite() -> None:
    block = np.zeros((4, 3))
    assert first_nonfinite(block, 10) is None
    block[2, 1], block[3, 0] = -np.inf, np.nan
    assert first_nonfinite(block, 10) == (12, 1, -np.inf)


def test_import_loads_only_numpy() -> None:
    code = (
        "import sys, nearid.arrays\n"
        "heavy = {'torch', 'h5py', 'zarr', 'pyarrow', 'pandas', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_open_rows_passes_rows_through(matrix: np.ndarray) -> None:
    rows = open_rows(matrix)
    assert open_rows(rows) is rows
    with pytest.raises(InputError, match=r"already open"):
        open_rows(rows, ids=np.arange(37))


@pytest.mark.parametrize(
    "array, message",
    [
        (np.zeros(5), r"shape \(5,\).*x\.reshape\(-1, 1\)"),
        (np.zeros((10, 7, 5)), r"reshape\(len\(x\), -1\) to \(10, 35\).*x\.mean\(axis=1\) to \(10, 5\)"),
        (np.zeros((1, 5)), "at least 2 rows"),
        (np.zeros((0, 5)), "at least 2 rows"),
        (np.zeros((5, 0)), "at least 1 column"),
        (np.zeros((5, 2), complex), r"dtype complex128.*x\.real, x\.imag"),
        (np.full((5, 2), "a"), "dtype <U1.*strings"),
        (np.full((5, 2), None), "dtype object"),
        (np.zeros((5, 2), "M8[s]"), "dtype datetime64"),
        (np.zeros((5, 2), [("a", "f4")]), "structured_to_unstructured"),
    ],
)
def test_refused(array: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_rows(array)
    with pytest.raises(InputError, match=r"^latents "):
        open_rows(array, name="latents")


@pytest.mark.parametrize(
    "stored, expected",
    [
        ("f2", "f4"),
        ("f4", "f4"),
        (">f4", "f4"),
        ("f8", "f8"),
        (">f8", "f8"),
        ("g", "f8"),
        ("i1", "f8"),
        ("u8", "f8"),
        ("?", "f8"),
    ],
)
def test_delivered_dtype(stored: str, expected: str) -> None:
    x = np.array([[0, 1], [1, 0], [1, 1]], dtype=stored)
    rows = open_rows(x)
    assert rows.dtype == np.dtype(expected) == rows.read(0, 2).dtype == rows.take(np.array([2, 0])).dtype
    np.testing.assert_array_equal(rows.read(0, 3), [[0, 1], [1, 0], [1, 1]])


@pytest.mark.parametrize(
    "given, expected",
    [
        (["a", "b"], np.array(["a", "b"])),
        ([b"a", "\u00e9".encode()], np.array(["a", "\u00e9"])),
        (np.array(["a", b"b"], object), np.array(["a", "b"])),
        ([1, 2], np.array([1, 2])),
        (np.array([1, 2], "u2"), np.array([1, 2])),
        (np.array([1, 2], object), np.array([1, 2])),
        (np.array([1, 2**64 - 1], "u8"), np.array([1, 2**64 - 1], "u8")),
        (np.array([1, 2**70], object), np.array(["1", str(2**70)])),
    ],
)
def test_kinds(given: object, expected: np.ndarray) -> None:
    ids = open_rows(np.zeros((2, 1)), ids=given).ids
    assert ids is not None and ids.dtype.kind == expected.dtype.kind
    np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize(
    "given, message",
    [
        ([1, 2, 3], r"shape \(3,\), but one id for each of its 2 rows"),
        ([[1], [2]], r"shape \(2, 1\)"),
        ([1.0, 2.0], "dtype float64, but strings or integers"),
        ([True, False], "dtype bool"),
        (np.array(["a", None], object), "id of row 1 of array is None"),
        (np.array([1, "a"], object), "id of row 0 of array is 1"),
        (["a", ""], "id of row 1 of array is ''"),
        ([b"\xff", b"a"], "not UTF-8"),
        (np.array([b"\xff", "a"], object), "not UTF-8"),
        (["a", "a\0"], r"id of row 1 of array is 'a\\x00', which ends in a NUL"),
        (("b", b"a\0"), "id of row 1 .* ends in a NUL"),
        (np.array(["a\0", "a"], object), "id of row 0 .* ends in a NUL"),
        (np.array(["a", "\0"], np.dtypes.StringDType()), "id of row 1 .* ends in a NUL"),
    ],
)
def test_ids_refused(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_rows(np.zeros((2, 1)), ids=given)


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


def test_activations_of_tokens_are_told_to_be_rows_in_blocks(rng):
    x = rng.normal(size=(6, 4, 3))
    with pytest.raises(InputError) as told:
        open_rows(x)
    assert "x.reshape(-1, 3) with blocks=np.repeat(np.arange(6), 4)" in str(told.value)
    # What it says works, and keeps the tokens of a sample together.
    rows = open_rows(x.reshape(-1, 3), blocks=np.repeat(np.arange(6), 4))
    np.testing.assert_array_equal(rows.read(4, 8), x[1])
    assert rows.blocks[4:8].tolist() == [1] * 4

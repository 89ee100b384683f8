"""Files of .npy, and raw rows."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearid.arrays import open_rows
from nearid.arrays.formats.npy import read_npy
from nearid.base.errors import InputError


def npy(path: Path, header: str, body: bytes = b"", version: bytes = b"\x01\x00") -> Path:
    text = header.encode() + b"\n"
    length = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    path.write_bytes(b"\x93NUMPY" + version + length + text + body)
    return path


@pytest.mark.parametrize("dtype", ["f2", ">f4", "f8", ">f8", "i1", ">i4", "u8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dtypes_and_orders(tmp_path: Path, dtype: str, order: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (9, 4)).astype(dtype, order=order)
    np.save(tmp_path / "x.npy", x)
    rows = open_rows(tmp_path / "x.npy")
    np.testing.assert_array_equal(rows.read(2, 7), x[2:7].astype(float))
    np.testing.assert_array_equal(rows.take(np.array([8, 0, 8])), x[[8, 0, 8]].astype(float))
    assert rows.read(0, 2).dtype.isnative


@pytest.mark.parametrize("version", [b"\x02\x00", b"\x03\x00"])
def test_later_versions(tmp_path: Path, version: bytes) -> None:
    x = np.arange(6.0).reshape(3, 2)
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }"
    np.testing.assert_array_equal(open_rows(npy(tmp_path / "x.npy", header, x.tobytes(), version)).read(0, 3), x)


@pytest.mark.parametrize("kept", [0, 3, 6, 8, 9, 40, 100])
def test_cut_header(tmp_path: Path, kept: int) -> None:
    np.save(tmp_path / "x.npy", np.zeros((10, 4)))
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[:kept])
    with pytest.raises(InputError, match=r"^x\.npy is not a whole \.npy file"):
        open_rows(tmp_path / "x.npy")


@pytest.mark.parametrize("missing", [1, 8, 319, 320])
def test_cut_numbers(tmp_path: Path, missing: int) -> None:
    np.save(tmp_path / "x.npy", np.zeros((10, 4)))
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[:-missing])
    with pytest.raises(InputError, match=r"promises the shape \(10, 4\) \(320 bytes\) but holds .* truncated"):
        open_rows(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "shape, message",
    [
        ("(1000000000000, 10)", "promises the shape .1000000000000, 10. .80 TB. but holds 64 bytes"),
        ("(4294967296, 4294967296)", "promises the shape .4294967296, 4294967296"),
        (f"({2**80}, {2**80})", "promises"),
        ("(-3, 4)", "below zero"),
        ("(-3, -4)", "below zero"),
        ("(8,)", r"x\.reshape\(-1, 1\)"),
        ("()", "one row per sample"),
        ("(2, 2, 2)", r"to \(2, 4\)"),
        ("(0, 8)", "at least 2 rows"),
        ("[2, 4]", "not a whole .npy file"),
        ("(2, '4')", "not a whole .npy file"),
    ],
)
def test_lying_shapes(tmp_path: Path, shape: str, message: str) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    with pytest.raises(InputError, match=message):
        open_rows(npy(tmp_path / "x.npy", header, bytes(64)))


@pytest.mark.parametrize(
    "header",
    [
        "",
        "__import__('os').system('true')",
        "{'descr': 'nonsense', 'fortran_order': 0}",
        "(" * 5000,
        "{" * 9000,
        "\x00",
    ],
)
def test_damaged_headers(tmp_path: Path, header: str) -> None:
    with pytest.raises(InputError, match=r"not a whole .npy file"):
        open_rows(npy(tmp_path / "x.npy", header))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(at=st.integers(0, 127), byte=st.integers(0, 255))
def test_a_changed_byte_never_crashes(tmp_path: Path, at: int, byte: int) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((10, 4)))
    content = bytearray(path.read_bytes())
    content[at] = byte
    path.write_bytes(content)
    try:
        rows = open_rows(path)
    except InputError:
        return
    rows.read(0, rows.shape[0])


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[{}, None]] * 3, object), allow_pickle=True)
    with pytest.raises(InputError, match=r"Python objects, which could run code.*np.save"):
        open_rows(tmp_path / "x.npy")


def test_more_than_the_header_promises(tmp_path: Path) -> None:
    with (tmp_path / "x.npy").open("wb") as file:
        np.save(file, np.zeros((3, 2)))
        np.save(file, np.ones((3, 2)))
    with pytest.raises(InputError, match=r"promises the shape \(3, 2\).*several arrays were saved into it"):
        open_rows(tmp_path / "x.npy")


@pytest.mark.filterwarnings("error")
def test_files_of_python_2(tmp_path: Path) -> None:
    x = np.arange(6.0).reshape(3, 2)
    path = npy(tmp_path / "x.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3L, 2L)}", x.tobytes())
    np.testing.assert_array_equal(open_rows(path).read(0, 3), x)


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 2**62), (-3,)])
def test_arrays_are_loaded_only_where_the_file_holds_them(tmp_path: Path, shape: tuple[int, ...]) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}"
    with pytest.raises(InputError, match=r"x\.npy promises the shape .* but holds 48 bytes"):
        read_npy(npy(tmp_path / "x.npy", header, bytes(48)))


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_is_bounded_by_the_block(tmp_path: Path, dtype: str, order: str) -> None:
    n, d = 200_000, 16
    np.save(tmp_path / "x.npy", np.zeros((n, d), dtype, order=order))
    rows = open_rows(tmp_path / "x.npy")
    tracemalloc.start()
    for start in range(0, n, 2000):
        rows.read(start, start + 2000)
    rows.take(np.arange(0, n, 100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 2000 * d * 8 < n * d * np.dtype(dtype).itemsize


def test_a_file_that_shrinks_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((1000, 4)))
    rows = open_rows(path)
    with path.open("r+b") as file:
        file.truncate(500)
    with pytest.raises(InputError, match="became shorter while it was read"):
        rows.read(0, 100)
    with pytest.raises(InputError, match="became shorter while it was read"):
        rows.take(np.array([5, 900]))


@pytest.mark.parametrize("order", ["C", "F"])
def test_no_file_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    # Of a mapped file that shrinks, the next page kills the process.
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(">f4", order=order)
    np.save(tmp_path / "x.npy", x)
    monkeypatch.delattr(np, "memmap")
    rows = open_rows(tmp_path / "x.npy")
    np.testing.assert_array_equal(rows.read(7, 31), x[7:31])
    np.testing.assert_array_equal(rows.take(np.array([40, 3, 3, 0])), x[[40, 3, 3, 0]])
    with (tmp_path / "x.npy").open("r+b") as file:
        file.truncate(500)
    for read in (lambda: rows.read(0, 50), lambda: rows.take(np.array([49]))):
        with pytest.raises(InputError, match="became shorter while it was read"):
            read()

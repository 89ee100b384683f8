"""Files of .npy and .npz, and raw rows."""

import io
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from nearid.arrays import open_rows, storage
from nearid.arrays.formats.npy import read_npy
from nearid.base import limits as memory
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
    with pytest.raises(InputError, match=r"declares the shape \(10, 4\) \(320 bytes\) but holds .* truncated"):
        open_rows(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "shape, message",
    [
        ("(1000000000000, 10)", "declares the shape .1000000000000, 10. .80 TB. but holds 64 bytes"),
        ("(4294967296, 4294967296)", "declares the shape .4294967296, 4294967296"),
        (f"({2**80}, {2**80})", "declares"),
        ("(-3, 4)", "negative size"),
        ("(-3, -4)", "negative size"),
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
    with pytest.raises(InputError, match=r"declares the shape \(3, 2\).*several arrays were saved into it"):
        open_rows(tmp_path / "x.npy")


@pytest.mark.filterwarnings("error")
def test_files_of_python_2(tmp_path: Path) -> None:
    x = np.arange(6.0).reshape(3, 2)
    path = npy(tmp_path / "x.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (3L, 2L)}", x.tobytes())
    np.testing.assert_array_equal(open_rows(path).read(0, 3), x)


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 2**62), (-3,)])
def test_arrays_are_loaded_only_where_the_file_holds_them(tmp_path: Path, shape: tuple[int, ...]) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}"
    with pytest.raises(InputError, match=r"x\.npy declares the shape .* but holds 48 bytes"):
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


def header_bytes(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue()


def test_key_and_ids(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.zeros((3, 2)), b=np.ones((3, 4)), names=np.array(["p", "q", "r"]), t=np.zeros((3, 2, 2)))
    with pytest.raises(InputError, match=r"holds 2 two-dimensional arrays: 'a' \(3, 2\) float64, 'b' \(3, 4\)"):
        open_rows(path)
    rows = open_rows(path, key="b", ids="names")
    assert rows.name == "x.npz:b" and rows.shape == (3, 4)
    assert rows.ids is not None and rows.ids.tolist() == ["p", "q", "r"]
    with pytest.raises(InputError, match=r"to \(3, 4\)"):
        open_rows(path, key="t")
    with pytest.raises(InputError, match=r"nothing named 'c' .given as key.*Available: 'a', 'b'"):
        open_rows(path, key="c")
    with pytest.raises(InputError, match=r"Did you mean 'names'"):
        open_rows(path, key="a", ids="name")


def test_a_single_unsuitable_array_is_told_why(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", np.zeros(5))
    with pytest.raises(InputError, match=r"x.npz:arr_0 has shape \(5,\)"):
        open_rows(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", a=np.zeros(5), b=np.zeros(4))
    with pytest.raises(InputError, match=r"no two-dimensional array.*'a' \(5,\) float64"):
        open_rows(tmp_path / "y.npz")


def test_objects_of_archives_are_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.array([[{}, None]] * 3, object))
    with pytest.raises(InputError, match=r"Python objects"):
        open_rows(tmp_path / "x.npz")


def test_a_bomb_is_refused_before_anything_is_allocated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros((200_000, 10)))
    assert (tmp_path / "x.npz").stat().st_size < 100_000
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    with pytest.raises(InputError, match=r"needs 16 MB of memory, but 1 MB are available\. Save the array as \.npy"):
        open_rows(tmp_path / "x.npz")


@pytest.mark.parametrize("shape", [(10**12, 10), (2**40, 2**40), (3, 1), (-3, -2), (-1, 0)])
def test_lying_headers(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", header_bytes(shape) + bytes(48))
    with pytest.raises(InputError, match=r"declares the shape .* but holds 48 bytes"):
        open_rows(tmp_path / "x.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_flipped_numbers_are_noticed(tmp_path: Path, save: object) -> None:
    save(tmp_path / "x.npz", x=np.random.default_rng(0).normal(size=(50, 4)))  # type: ignore[operator]
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"not a whole .npz archive"):
        open_rows(tmp_path / "x.npz")


def test_a_damaged_array_is_never_passed_over(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", header_bytes((3, 2))[:-9] + bytes(48))
        archive.writestr("y.npy", header_bytes((3, 2)) + bytes(48))
    with pytest.raises(InputError, match=r"not a whole .npz archive"):
        open_rows(tmp_path / "x.npz")


def test_other_members_are_no_arrays(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
        archive.writestr("x.npy", header_bytes((3, 2)) + bytes(48))
    assert open_rows(tmp_path / "x.npz").shape == (3, 2)
    with pytest.raises(InputError, match=r"nothing named 'readme\.txt'.*Available: 'x'"):
        open_rows(tmp_path / "x.npz", key="readme.txt")


def test_two_arrays_of_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (0, 1):
            archive.writestr("x.npy", header_bytes((2, 2)) + np.full((2, 2), float(value)).tobytes())
    with pytest.raises(InputError, match=r"x\.npz holds two arrays named 'x'"):
        open_rows(tmp_path / "x.npz")


@pytest.mark.parametrize("field, value, message", [(6, 1, "encrypted"), (8, 97, "not supported"), (8, 93, "supported")])
def test_members_that_cannot_be_unpacked(tmp_path: Path, field: int, value: int, message: str) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.zeros((3, 2)))
    content = bytearray(path.read_bytes())
    for at in (field, content.find(b"PK\x01\x02") + field + 2):
        content[at] = value
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_rows(path)


def test_names_that_a_terminal_would_obey_are_shown(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **{"\x1b[31mred\n": np.zeros((3, 2)), "b": np.zeros((3, 2))})
    with pytest.raises(InputError) as caught:
        open_rows(tmp_path / "x.npz")
    assert str(caught.value).isprintable()
    np.savez(tmp_path / "y.npz", **{"a b": np.zeros((3, 2)), "c": np.zeros((3, 2))})
    with pytest.raises(InputError, match=r"--key 'a b'\), or write it after the path: 'y.npz:a b'\."):
        open_rows(tmp_path / "y.npz")


def test_rows_that_follow_each_other_are_read_as_one(tmp_path, monkeypatch):
    x = np.arange(60.0).reshape(20, 3)
    np.save(tmp_path / "x.npy", x)
    rows, reads = open_rows(tmp_path / "x.npy"), []
    fill = storage._fill
    monkeypatch.setattr(storage, "_fill", lambda file, target: reads.append(len(target)) or fill(file, target))
    taken = np.array([2, 3, 4, 9, 11, 12, 12, 1])
    np.testing.assert_array_equal(rows.take(taken), x[taken])
    assert reads == [72, 24, 48, 24, 24]

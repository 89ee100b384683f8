import io
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base import limits as memory
from nearid.base.errors import InputError


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


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
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
    with pytest.raises(InputError, match=r"promises the shape .* but holds 48 bytes"):
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
    with pytest.raises(InputError, match=r"--key 'a b'"):
        open_rows(tmp_path / "y.npz")

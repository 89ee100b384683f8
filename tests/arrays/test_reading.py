"""Files that are missing, out of reach, damaged or changed."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.arrays.columns import open_columns
from nearid.arrays.formats import csv
from nearid.arrays.memory import MemoryRows
from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError

BOTH = pytest.mark.parametrize("opened", [open_rows, open_columns])


@BOTH
def test_links_that_lead_nowhere(tmp_path: Path, opened: Any) -> None:
    (tmp_path / "x.npy").symlink_to("y.npy")
    (tmp_path / "y.npy").symlink_to("x.npy")
    (tmp_path / "z.npy").symlink_to("gone.npy")
    with pytest.raises(InputError, match=r"x\.npy is a link to 'y\.npy', but there is no such file"):
        opened(tmp_path / "x.npy")
    with pytest.raises(InputError, match=r"z\.npy is a link to 'gone\.npy'"):
        opened(tmp_path / "z.npy")


@BOTH
@pytest.mark.parametrize("address", ["https://example.com/x.csv", "s3://bucket/x.h5"])
def test_formats_that_are_not_read_from_addresses(opened: Any, address: str) -> None:
    with pytest.raises(InputError, match=rf"^{address} cannot be read.*\.npy, \.parquet, \.zarr.*download the file"):
        opened(address)


@BOTH
def test_homes_that_do_not_exist_and_names_that_are_too_long(opened: Any) -> None:
    with pytest.raises(InputError, match=r"~nobody-of-this-name/x\.npy cannot be found: there is no home folder"):
        opened("~nobody-of-this-name/x.npy")
    with pytest.raises(InputError, match=r"^x{50,}\.\.\.x{50,}\.npy could not be read: File name too long") as caught:
        opened("x" * 5000 + ".npy")
    assert len(str(caught.value)) < 300
    with pytest.raises(InputError, match="There is no file"):
        opened("zero\0byte.npy")


@BOTH
def test_files_that_may_not_be_read(written: Path, monkeypatch: pytest.MonkeyPatch, opened: Any) -> None:
    if written.is_dir():
        return  # what may not be entered is tested below

    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    # Whoever runs the tests may be allowed to read everything.
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=rf"{written.name} could not be read: Permission denied\.$"):
        opened(written)


@BOTH
def test_folders_that_may_not_be_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    stat = os.stat

    def refuse(path: Any, *args: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("x.npy"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *args, **options)

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(InputError, match=r"x\.npy could not be read: Permission denied"):
        opened(tmp_path / "x.npy")


def test_names_with_colons_and_patterns(tmp_path: Path) -> None:
    x = np.arange(6.0).reshape(3, 2)
    for name in ("a:b.npy", "a[1]*?.npy", "new\nline.npy"):
        np.save(tmp_path / name, x)
        np.testing.assert_array_equal(open_rows(tmp_path / name).read(0, 3), x)


def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(InputError, match="not a regular file"):
        open_rows(tmp_path / "x.npy")
    (tmp_path / "x.zarr").mkdir()
    os.mkfifo(tmp_path / "x.zarr" / "zarr.json")
    with pytest.raises(InputError, match=r"zarr\.json in x\.zarr is not a regular file"):
        open_rows(tmp_path / "x.zarr")


@pytest.mark.filterwarnings("ignore")
def test_changed_bytes_give_rows_or_a_sentence(written: Path) -> None:
    target = written
    if written.is_dir():
        target = next(file for file in written.rglob("*") if file.name in ("zarr.json", ".zarray"))
    content, random = target.read_bytes(), np.random.default_rng(0)
    for _ in range(100):
        changed = bytearray(content)
        changed[random.integers(len(content))] = random.integers(256)
        target.write_bytes(changed)
        try:
            rows = open_rows(written)
            rows.read(0, min(rows.shape[0], 50))
        except InputError as error:
            assert str(error).endswith((".", "?", ")"))


def test_what_passes_through() -> None:
    message = r"^x is not a whole file: 'gone'\. Write or copy it again\.$"
    with pytest.raises(InputError, match=message), damage_told("x", "file"):
        raise KeyError("gone")
    for passed in (InputError("said before"), MemoryError(), ImportError()):
        with pytest.raises(type(passed)) as caught, damage_told("x", "file"):
            raise passed
        assert caught.value is passed


def write_to(path: Path) -> None:
    """Give a file another time, a second later, as one that is written to."""
    later = os.stat(path).st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))


def test_files_that_change_are_refused(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    np.testing.assert_array_equal(rows.read(0, 37), matrix)
    chunks = [file for file in written.rglob("*") if file.is_file() and "json" not in file.name and file.name[0] != "."]
    write_to(sorted(chunks)[0] if written.is_dir() else written)
    if isinstance(rows, MemoryRows):
        # Loaded whole, so that the numbers are of one state.
        np.testing.assert_array_equal(rows.read(0, 37), matrix)
        return
    with pytest.raises(InputError, match=r"changed while it was read.*Run again when no program writes to it"):
        rows.read(0, 37)
    with pytest.raises(InputError, match="changed while it was read"):
        rows.fingerprint()


def test_a_change_while_a_file_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,4\n")

    def read_and_change(*args, read=csv.read_text):
        table = read(*args)
        write_to(path)
        return table

    monkeypatch.setattr(csv, "read_text", read_and_change, raising=True)
    for opener in (open_rows, open_columns):
        with pytest.raises(InputError, match=r"x\.csv changed"):
            opener(path)


def test_layers_of_an_extraction_that_change(tmp_path: Path) -> None:
    from nearid.questions.extract.run import extract

    torch = pytest.importorskip("torch")
    found = extract(torch.nn.Sequential(torch.nn.Linear(3, 2)), np.ones((4, 3), np.float32), out=tmp_path / "run")
    layer = next(iter(found))
    rows = open_rows(f"{tmp_path}/run:{layer}")
    assert rows.read(0, 4).shape == (4, 2)
    write_to(next(file for file in (tmp_path / "run").glob("*.npy") if file.name != "ids.npy"))
    with pytest.raises(InputError, match="changed while it was read"):
        rows.read(0, 4)

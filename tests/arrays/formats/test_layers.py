"""Folders of extracted layers: opened by layer with their ids; damaged and hostile ones are told."""

import json
import os

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.arrays.formats.layers import LayerRows, _read_ids
from nearid.arrays.formats.npy import NpyContents
from nearid.base.errors import InputError


@pytest.fixture
def folder(tmp_path, rng):
    place = tmp_path / "run"
    place.mkdir()
    layers = {}
    for name, width in (("a.0", 3), ("b", 4)):
        np.save(place / f"{name}.npy", rng.normal(size=(6, width)).astype(np.float32))
        layers[name] = {"file": f"{name}.npy", "shape": [6, width], "dtype": "float32"}
    np.save(place / "ids.npy", np.array([f"r{k}" for k in range(6)]))
    manifest = {"format": 1, "rows": 6, "layers": layers, "model": {"name": "m"}}
    (place / "extraction.json").write_text(json.dumps(manifest))
    return place


def change(folder, **changes):
    path = folder / "extraction.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_layers_by_key_and_by_file(folder):
    rows = open_rows(folder, key="a.0")
    assert rows.name == "run:a.0" and rows.ids.tolist() == [f"r{k}" for k in range(6)]
    np.testing.assert_array_equal(rows.read(1, 4), np.load(folder / "a.0.npy")[1:4])
    assert open_rows(folder / "b.npy").ids.tolist() == rows.ids.tolist()
    np.save(folder / "other.npy", np.zeros((6, 2)))
    assert open_rows(folder / "other.npy").ids is None
    assert open_rows(f"{folder}:b").name == "run:b"
    found = LayerRows.open(folder)
    assert list(found) == ["a.0", "b"] and found["b"].shape == (6, 4) and "a.0 (3), b (4)" in repr(found)
    with pytest.raises(KeyError, match="nothing named 'c'"):
        found["c"]


def test_what_is_missing_or_unclear_is_told(folder):
    with pytest.raises(InputError, match=r"run holds 2 layers: a.0, b. Choose one, such as run:b"):
        open_rows(folder)
    with pytest.raises(InputError, match=r"nothing named 'a.1' .*Did you mean 'a.0'"):
        open_rows(folder, key="a.1")
    with pytest.raises(InputError, match=r"use the ids stored in ids\.npy"):
        open_rows(folder, key="b", ids="names")
    (folder / "b.npy").unlink()
    with pytest.raises(InputError, match=r"run has no file b\.npy"):
        open_rows(folder, key="b")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 7}, "has format 7"),
        ({"layers": {}}, "does not describe extracted layers"),
        ({"layers": {"b": {"file": "../../secret.npy", "shape": [6, 4], "dtype": "float32"}}}, "does not describe"),
        ({"layers": {"b": {"file": "b.pt", "shape": [6, 4], "dtype": "float32"}}}, "does not describe"),
        ({"layers": {"b": {"file": "b.npy", "shape": [6, 4], "dtype": "object"}}}, "does not describe"),
        ({"rows": 5}, "does not describe"),
        ({"data": []}, "does not describe"),
        ({"model": None}, "does not describe"),
        (
            {"layers": {"b": {"file": "b.npy", "shape": [6, 9], "dtype": "float32"}}},
            r"has shape \(6, 4\), not \[6, 9\]",
        ),
    ],
)
def test_manifests_that_cannot_be_trusted_are_told(folder, changes, message):
    change(folder, **changes)
    with pytest.raises(InputError, match=message):
        open_rows(folder, key="b")


def test_damaged_manifests_and_ids(folder):
    np.save(folder / "ids.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"ids\.npy holds Python objects"):
        open_rows(folder, key="b")
    (folder / "extraction.json").write_text("{")
    with pytest.raises(InputError, match=r"not a whole extraction\.json"):
        open_rows(folder, key="b")


@pytest.mark.parametrize("name", ["ids.npy", "b.npy"])
def test_pipes_are_not_waited_for(folder, name, monkeypatch):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    monkeypatch.setattr(NpyContents, "__init__", lambda self, path, name: pytest.fail("it was opened"))
    with pytest.raises(InputError, match=f"{name} is not a regular file"):
        if name == "ids.npy":
            _read_ids(folder, 6)
        else:
            open_rows(folder, key="b")


def test_a_pipe_as_a_layer_in_zarr_is_refused(folder):
    os.mkfifo(folder / "b.zarr")
    layers = json.loads((folder / "extraction.json").read_text())["layers"]
    change(folder, layers={**layers, "b": {**layers["b"], "file": "b.zarr"}})
    with pytest.raises(InputError, match=r"b\.zarr is not a zarr directory"):
        open_rows(folder, key="b")


class TestBlocks:
    """The input of each row, where an extraction has several rows for one."""

    LABELS = np.array(["t0", "t0", "t1", "t1", "t1", "t2"])

    @pytest.fixture
    def blocked(self, folder):
        np.save(folder / "blocks.npy", self.LABELS)
        change(folder, blocks="blocks.npy")
        return folder

    def test_every_way_to_a_layer_gives_them(self, blocked):
        layers = LayerRows.open(blocked)
        ways = [layers["a.0"], layers["b"], open_rows(blocked, key="b"), open_rows(blocked / "b.npy")]
        assert all(rows.blocks.tolist() == self.LABELS.tolist() for rows in ways)
        assert open_rows(f"{blocked}:b", blocks="blocks").blocks.tolist() == self.LABELS.tolist()
        assert open_rows(f"{blocked}:b", blocks="none").blocks is None
        with pytest.raises(InputError, match=r"has no column 'text' .*Columns: 'blocks'"):
            open_rows(f"{blocked}:b", blocks="text")

    def test_folders_of_before_have_none(self, folder):
        assert LayerRows.open(folder)["b"].blocks is None and open_rows(folder / "b.npy").blocks is None
        # A file of this name that the folder does not mention is somebody else's.
        np.save(folder / "blocks.npy", np.arange(3))
        assert LayerRows.open(folder)["b"].blocks is None

    def test_damage_is_told(self, blocked):
        np.save(blocked / "blocks.npy", self.LABELS[:5])
        with pytest.raises(InputError, match=r"blocks of run have shape \(5,\)"):
            LayerRows.open(blocked)
        np.save(blocked / "blocks.npy", np.array([{}] * 6, object), allow_pickle=True)
        with pytest.raises(InputError, match="never unpickles"):
            open_rows(blocked, key="b")
        (blocked / "blocks.npy").write_bytes(b"\x93NUMPY")
        with pytest.raises(InputError, match=r"not a whole \.npy file"):
            open_rows(blocked / "b.npy")
        (blocked / "blocks.npy").unlink()
        with pytest.raises(InputError, match=r"blocks\.npy"):
            open_rows(blocked, key="b")
        os.mkfifo(blocked / "blocks.npy")
        with pytest.raises(InputError, match="not a regular file"):
            open_rows(blocked, key="b")
        for elsewhere in ("../../etc/passwd", 5, ["blocks.npy"]):
            change(blocked, blocks=elsewhere)
            with pytest.raises(InputError, match="does not describe extracted layers"):
                LayerRows.open(blocked)

"""`nearid data`."""

import json
import sys
import zipfile

import pytest

from nearid.lab.data.registry import datasets


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """No data anywhere."""
    monkeypatch.setenv("NEARID_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_list_tells_all(nearid, empty):
    done = nearid("data", "list")
    assert done.returncode == 0 and done.stderr == ""
    assert all(name in done.stdout for name in datasets())
    told = json.loads(nearid("data", "list", "--json").stdout)
    assert [entry["name"] for entry in told] == list(datasets())
    shapes = told[list(datasets()).index("shapes3d")]
    mnist = told[list(datasets()).index("mnist")]
    assert shapes["address"] == "own page" and shapes["address_note"] is None
    assert mnist["address"] == "mirror" and "yann.lecun.com" in mnist["address_note"]
    assert shapes["path"] is None and shapes["files"][0]["size"] == 267_573_662
    assert shapes["factors"][5]["levels"][-1] == 30


def test_path(nearid, empty, monkeypatch, tmp_path):
    done = nearid("data", "path", "shapes3d")
    assert done.returncode == 2 and done.stdout == ""
    assert "nearid data fetch shapes3d" in done.stderr and "storage.googleapis.com/3d-shapes/3dshapes.h5" in done.stderr
    (tmp_path / "none" / "shapes3d").mkdir(parents=True)
    (tmp_path / "none" / "shapes3d" / "3dshapes.h5").touch()
    done = nearid("data", "path", "shapes3d")
    assert done.returncode == 0 and done.stdout.strip() == str(tmp_path / "none" / "shapes3d")


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is elsewhere")
def test_fetch_from_a_file(nearid, empty, tmp_path):
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        archive.writestr("a", "x")
    mine = (tmp_path / "mine.zip").read_bytes()
    done = nearid("data", "fetch", "coil20", "--from", "mine.zip")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "cache" / "nearid" / "data" / "coil20"
    # Only the folder on stdout, so that it can be used by a program; the rest beside it.
    assert done.stdout.strip() == str(folder) and (folder / "coil-20-proc.zip").read_bytes() == mine
    assert "Cite Nene" in done.stderr and "no checksum is published" in done.stderr
    assert "nearid data fetch coil20 --again" in nearid("data", "fetch", "coil20").stderr
    done = nearid("data", "fetch", "coil20", "--again", "--from", "nothing.zip")
    assert done.returncode == 2 and "There is no file nothing.zip" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is elsewhere")
def test_quiet_leaves_stderr_empty(nearid, empty, tmp_path):
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        archive.writestr("a", "x")
    for args in (("list",), ("fetch", "coil20", "--from", "mine.zip"), ("fetch", "coil20")):
        done = nearid("data", *args, "--quiet")
        assert done.returncode == 0 and done.stderr == "" and done.stdout


def test_unknown_names_and_sets_by_hand(refused, empty):
    assert "Did you mean mnist" in refused("data", "path", "minst")
    assert "--from FILE" in refused("data", "fetch", "isaac3d")

"""Archives that try to write elsewhere."""

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

from nearid.base.errors import InputError
from nearid.lab.data.unarchive import unarchive


def make_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def make_tar(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            info = data if isinstance(data, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(data, bytes):
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return path


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_only_what_is_wanted_is_taken(tmp_path):
    members = {"data/cars/list.txt": b"one", "./data/cars/a/b.mat": b"two", "data/other": b"x", "data/carsx": b"x"}
    for make, name in ((make_zip, "x.zip"), (make_tar, "x.tar.gz")):
        out = tmp_path / f"out-{name}"
        out.mkdir()
        assert unarchive(make(tmp_path / name, members), out, ("data/cars/",)) == 2
        held = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        assert held == {"data/cars/list.txt": b"one", "data/cars/a/b.mat": b"two"}


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "..\\evil", "C:\\evil", "C:evil", "\\evil"])
@pytest.mark.parametrize("make, archive", [(make_zip, "x.zip"), (make_tar, "x.tar")])
def test_paths_that_leave_the_folder_are_refused(tmp_path, make, archive, name):
    out = tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    path = make(tmp_path / archive, {"good": b"x", name: b"evil"})
    with pytest.raises(InputError, match="outside of its folder"):
        unarchive(path, out, ("good", name))
    assert not [path for path in tmp_path.rglob("*evil*")]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path, kind):
    path = make_tar(tmp_path / "x.tar", {"a": link("a", "/etc/passwd", kind)}, "w")
    with pytest.raises(InputError, match="link or device"):
        unarchive(path, tmp_path, ("a",))


def test_links_in_a_zip_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        info = zipfile.ZipInfo("a")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(InputError, match="link or device"):
        unarchive(tmp_path / "x.zip", tmp_path, ("a",))


def test_more_than_the_disk_holds_is_refused_before_it_is_written(tmp_path, monkeypatch):
    path = make_zip(tmp_path / "x.zip", {"a": bytes(1000)})
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("U", (), {"free": 10})())
    with pytest.raises(InputError, match="needs 1 kB, but 10 bytes are free"):
        unarchive(path, tmp_path, ("a",))
    assert not (tmp_path / "a").exists()


def test_files_of_a_zip_are_weighed_together(tmp_path, monkeypatch):
    path = make_zip(tmp_path / "x.zip", {"data/a": bytes(600), "data/b": bytes(600), "other": bytes(9000)})
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("U", (), {"free": 1000})())
    with pytest.raises(InputError, match=r"x\.zip needs 1\.2 kB, but 1 kB are free"):
        unarchive(path, tmp_path, ("data/",))
    assert not (tmp_path / "data").exists()
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("U", (), {"free": 1200})())
    assert unarchive(path, tmp_path, ("data/",)) == 2


@pytest.mark.parametrize("names", [("a/b", "a/b/c"), ("a/b/c", "a/b"), ("a/b", "a/b/c/d")])
@pytest.mark.parametrize("make, archive", [(make_zip, "x.zip"), (make_tar, "x.tar")])
def test_a_file_that_is_also_a_folder_is_refused(tmp_path, make, archive, names):
    path = make(tmp_path / archive, dict.fromkeys(names, b"x"))
    with pytest.raises(InputError, match=rf"has both a file and a folder '{names[1]}'"):
        unarchive(path, tmp_path, ("a/",))


@pytest.mark.parametrize("make, archive", [(make_zip, "x.zip"), (make_tar, "x.tar")])
def test_names_that_cannot_be_printed_are_refused_where_they_are_wanted(tmp_path, make, archive):
    path = make(tmp_path / archive, {"data/a": b"x", "data/\x1b[2Jb": b"x", "Icon\r": b"x"})
    with pytest.raises(InputError, match=r"an unprintable name, 'data/\\x1b\[2Jb'"):
        unarchive(path, tmp_path, ("data/",))
    # Other systems do write such names beside what is wanted.
    assert unarchive(path, tmp_path, ("data/a",)) == 1


def test_the_folder_that_is_written_into_is_what_counts(tmp_path):
    (tmp_path / "archives").mkdir()
    path = make_tar(tmp_path / "archives" / "x.tar", {"data/a": b"x"}, "w")
    for folder in ("out", "linked", "elsewhere"):
        (tmp_path / folder).mkdir()
    # Links beside the archive do not matter, those in the folder do.
    (tmp_path / "archives" / "data").symlink_to(tmp_path / "elsewhere")
    assert unarchive(path, tmp_path / "out", ("data/",)) == 1
    (tmp_path / "linked" / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="outside"):
        unarchive(path, tmp_path / "linked", ("data/",))
    assert not list((tmp_path / "elsewhere").iterdir())


def test_links_that_are_not_wanted_are_skipped(tmp_path):
    path = make_tar(tmp_path / "x.tar", {"data/a": b"x", "latest": link("latest", "data")}, "w")
    assert unarchive(path, tmp_path, ("data/",)) == 1 and not (tmp_path / "latest").is_symlink()


def test_other_archives_and_damage_are_told(tmp_path):
    with pytest.raises(InputError, match="does not contain data/"):
        unarchive(make_zip(tmp_path / "x.zip", {"a": b"x"}), tmp_path, ("data/",))
    (tmp_path / "y.tar").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(InputError, match="not a whole archive"):
        unarchive(tmp_path / "y.tar", tmp_path, ("a",))
    whole = make_tar(tmp_path / "z.tar.gz", {"a": bytes(range(256)) * 400}).read_bytes()
    (tmp_path / "z.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not a whole archive"):
        unarchive(tmp_path / "z.tar.gz", tmp_path, ("a",))
    data = bytearray(make_zip(tmp_path / "w.zip", {"a": b"abcdefgh" * 100}).read_bytes())
    data[35] ^= 0xFF
    (tmp_path / "w.zip").write_bytes(data)
    with pytest.raises(InputError, match="not a whole archive"):
        unarchive(tmp_path / "w.zip", tmp_path, ("a",))


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_that_is_cut_or_damaged_between_members_is_refused(tmp_path, mode):
    whole = make_tar(tmp_path / "whole.tar", {"a": b"x" * 512, "b": b"y" * 512}, "w").read_bytes()
    zeroed, flipped = bytearray(whole), bytearray(whole)
    zeroed[1024:1536] = bytes(512)
    flipped[1024] ^= 0xFF
    for damaged in (whole[:1024], whole[:1300], whole[:2048], whole[:2100], bytes(zeroed), bytes(flipped)):
        path = tmp_path / "x.tar"
        path.write_bytes(gzip.compress(damaged) if mode == "w:gz" else damaged)
        with pytest.raises(InputError, match=r"x\.tar is not a whole archive"):
            unarchive(path, tmp_path, ("a",))
    # Some programs write one block of zeros alone.
    for good in (whole, whole[:2560]):
        path.write_bytes(gzip.compress(good) if mode == "w:gz" else good)
        assert unarchive(path, tmp_path, ("a",)) == 1


def test_the_checksum_of_a_tar_gz_is_asked_for(tmp_path):
    data = bytearray(make_tar(tmp_path / "x.tar.gz", {"a": b"x"}).read_bytes())
    data[-8] ^= 0xFF
    (tmp_path / "x.tar.gz").write_bytes(data)
    with pytest.raises(InputError, match="not a whole archive"):
        unarchive(tmp_path / "x.tar.gz", tmp_path, ("a",))

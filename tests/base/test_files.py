"""Writing: whole or not at all."""

import os
from pathlib import Path

import pytest

import nearid.base.files as files
from nearid.base.errors import InputError
from nearid.base.files import alone_in, check_target, put_folder, refuse_source, replacing, replacing_folder, write_text


def test_writes_and_replaces_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "page.html"
    write_text(target, "one")
    write_text(target, "two é")
    assert target.read_text(encoding="utf-8") == "two é"
    assert os.listdir(tmp_path) == ["page.html"]
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    write_text(target, "old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_text(target, "new")
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["page.html"]


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        write_text(tmp_path / "pipe", "text")


def test_bad_targets(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        check_target(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        check_target(tmp_path / "missing" / "page.html")
    with pytest.raises(InputError, match=r"Could not write x*: File name too long"):
        check_target("x" * 300)


def test_a_file_whose_writer_fails_is_not_there(tmp_path):
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "x") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_a_folder_is_replaced_whole(tmp_path):
    for text in ("one", "two"):
        with replacing_folder(tmp_path / "box") as folder:
            (folder / text).write_text(text)
    assert os.listdir(tmp_path) == ["box"] and os.listdir(tmp_path / "box") == ["two"]
    with pytest.raises(ZeroDivisionError), replacing_folder(tmp_path / "box") as folder:
        (folder / "three").write_text("three")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["box"] and os.listdir(tmp_path / "box") == ["two"]


def test_a_folder_that_cannot_be_renamed_keeps_the_old_one(tmp_path, monkeypatch):
    with replacing_folder(tmp_path / "box") as folder:
        (folder / "old").write_text("old")
    rename = os.rename

    def failing(a, b):
        if a.name == "new":
            raise OSError(16, "Device or resource busy")
        rename(a, b)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(InputError, match="Device or resource busy"), replacing_folder(tmp_path / "box") as folder:
        (folder / "new").write_text("new")
    assert os.listdir(tmp_path) == ["box"] and os.listdir(tmp_path / "box") == ["old"]


def test_one_process_at_a_time_in_a_folder(tmp_path):
    with alone_in(tmp_path), pytest.raises(InputError, match="Another process is at work"), alone_in(tmp_path):
        pass
    with alone_in(tmp_path):
        pass
    assert os.listdir(tmp_path) == []


def test_disks_without_locks_are_written_to(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(files.fcntl, "flock", no_locks)
    with alone_in(tmp_path):
        write_text(tmp_path / "page.html", "text")
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "page.html").symlink_to("there/real.html")
    for text in ("one", "two"):
        write_text(tmp_path / "page.html", text)
    assert (tmp_path / "page.html").is_symlink() and (tmp_path / "there" / "real.html").read_text() == "two"
    (tmp_path / "lost.html").symlink_to("nowhere/real.html")
    with pytest.raises(InputError, match=r"There is no folder .*nowhere"):
        check_target(tmp_path / "lost.html")


def test_a_private_file_stays_private(tmp_path):
    target = tmp_path / "page.html"
    write_text(target, "one")
    target.chmod(0o600)
    write_text(target, "two")
    assert target.stat().st_mode & 0o777 == 0o600


def test_the_longest_name_can_be_written(tmp_path):
    write_text(tmp_path / ("x" * 250 + ".html"), "text")
    with replacing_folder(tmp_path / ("y" * 250 + ".zarr")) as folder:
        (folder / "a").write_text("a")
    assert len(os.listdir(tmp_path)) == 2


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not(tmp_path):
    (tmp_path / f".x.npy.abcdefgh{files.TEMPORARY}").write_text("left")
    (tmp_path / f".x.npy.abcdefgi{files.TEMPORARY}").mkdir()
    (tmp_path / ".x.npy.mine").write_text("of somebody else")
    with replacing(tmp_path / "x.npy") as ours:
        write_text(tmp_path / "x.npy", "another process")
        ours.write(b"ours")
    assert sorted(os.listdir(tmp_path)) == [".x.npy.mine", "x.npy"]
    assert (tmp_path / "x.npy").read_text() == "ours"


def test_a_temporary_file_that_another_process_sweeps_away_at_once_is_made_again(tmp_path, monkeypatch):
    make, made = files._make_file, []

    def swept(**where):
        made.append(make(**where))
        if len(made) == 1:
            os.unlink(made[0])
        return made[-1]

    monkeypatch.setattr(files, "_make_file", swept)
    write_text(tmp_path / "x", "text")
    assert len(made) == 2 and os.listdir(tmp_path) == ["x"]


def test_a_folder_whose_process_was_killed_between_two_renames_is_put_back(tmp_path):
    old = tmp_path / f".box.abcdefgh{files.TEMPORARY}" / "old"
    old.mkdir(parents=True)
    (old / "a").write_text("a")
    with pytest.raises(ZeroDivisionError), replacing_folder(tmp_path / "box"):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["box"] and os.listdir(tmp_path / "box") == ["a"]


@pytest.mark.parametrize(("target", "other"), [("run", "run.zarr"), ("a" * 50 + "1", "a" * 50 + "2")])
def test_what_is_left_of_another_target_stays(tmp_path, target, other):
    left = tmp_path / f"{files._prefix(tmp_path / other)}abcdefgh{files.TEMPORARY}"
    (left / "old").mkdir(parents=True)
    for _ in range(2):
        with replacing_folder(tmp_path / target):
            assert (left / "old").is_dir()
    with replacing_folder(tmp_path / other):
        assert (tmp_path / other).is_dir() and not left.exists()


def test_a_folder_whose_writer_is_interrupted_between_two_renames_is_put_back(tmp_path, monkeypatch):
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "kept").touch()
    rename = os.rename

    def interrupted(source, target):
        if source.name == "new":
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing_folder(tmp_path / "box"):
        pass
    assert os.listdir(tmp_path) == ["box"] and os.listdir(tmp_path / "box") == ["kept"]


def test_an_input_is_known_by_every_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "0.npy").write_text("x")
    os.symlink("run/0.npy", "link.npy")
    os.link("run/0.npy", "hard.npy")
    for target in ("run/0.npy", "link.npy", "hard.npy", "run/../run/0.npy"):
        with pytest.raises(InputError, match="would damage the input"):
            refuse_source(tmp_path / target, "run/0.npy")
    for source in ("run:0", "run"):
        with pytest.raises(InputError, match="would damage the input"):
            refuse_source(tmp_path / "run" / "0.npy", source)
    refuse_source(tmp_path / "other.npy", "run:0")


def test_an_input_in_an_unknown_home_is_refused_in_a_sentence(tmp_path):
    for source in ("~nobody_x/x.npy", "~nobody_x/run:layer"):
        with pytest.raises(InputError, match="there is no home folder of that name"):
            refuse_source(tmp_path / "y.npy", source)


def test_an_input_that_is_a_link_to_itself_damages_nothing(tmp_path):
    os.symlink("x.npy", tmp_path / "x.npy")
    refuse_source(tmp_path / "y.npy", tmp_path / "x.npy")


def test_a_folder_is_put_in_the_place_of_another_or_the_other_stays(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("")
    with pytest.raises(FileNotFoundError):
        put_folder(tmp_path / "missing", tmp_path / "old")
    assert (tmp_path / "old" / "old").exists()
    put_folder(tmp_path / "new", tmp_path / "old")
    assert [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*"))] == ["old", "old/new"]


@pytest.mark.parametrize("name", ["s3://bucket/out.npy", "https://user:hush@host/folder/out.npy"])
def test_outputs_at_addresses_are_refused_by_name(name):
    with pytest.raises(
        InputError, match=r"out\.npy is an address, and nearid writes files on this machine only"
    ) as told:
        check_target(Path(name))
    assert "hush" not in str(told.value)

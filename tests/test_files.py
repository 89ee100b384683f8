"""Writing: whole or not at all."""

import os

import pytest

from nearid.errors import InputError
from nearid.files import alone_in, check_target, replacing, replacing_folder, write_text


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

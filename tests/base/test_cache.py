"""The user's cache: where it is, what it keeps, what it removes, and that processes do not disturb each other."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from nearid.base import cache as caches
from nearid.base.cache import SUMS, Cache, cache_bytes, cache_place
from nearid.base.errors import InputError

KEYS = [f"{k:064x}" for k in range(5)]


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache" / "room", 10_000)


def writer(text="rows", name="deep/file"):
    def make(folder):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text)

    return make


def never(folder):
    raise AssertionError("made again")


def content(cache, key):
    with cache.hold(key) as folder:
        return None if folder is None else (folder / "deep/file").read_text()


def test_what_was_made_is_there_the_next_time(cache):
    assert content(cache, KEYS[0]) is None
    assert cache.fill(KEYS[0], writer()) is False
    assert cache.fill(KEYS[0], never) is True
    assert content(cache, KEYS[0]) == "rows" and content(cache, KEYS[1]) is None


@pytest.mark.parametrize("damage", ["changed", "shorter", "missing", "more", "sums", "no sums", "pipe"])
def test_an_entry_that_is_not_as_it_was_written_is_made_again(cache, damage):
    cache.fill(KEYS[0], writer())
    folder = cache.place / KEYS[0]
    file = folder / "deep" / "file"
    match damage:
        case "changed":
            file.write_text("raws")
        case "shorter":
            file.write_text("row")
        case "missing":
            file.unlink()
        case "more":
            (folder / "other").write_text("")
        case "sums":
            (folder / SUMS).write_text("[" * 100_000)
        case "no sums":
            (folder / SUMS).unlink()
        case "pipe":
            file.unlink()
            os.mkfifo(file)
    assert cache.fill(KEYS[0], writer("new")) is False
    assert content(cache, KEYS[0]) == "new"
    assert sorted(json.loads((folder / SUMS).read_text())) == ["deep/file"]


def test_what_a_failure_leaves_is_found_again(cache):
    def fails(folder):
        (folder / "half").write_text("half")
        raise InputError("no more")

    with pytest.raises(InputError):
        cache.fill(KEYS[0], fails)
    assert content(cache, KEYS[0]) is None

    def goes_on(folder):
        assert (folder / "half").read_text() == "half"
        os.rename(folder / "half", folder / "whole")

    assert cache.fill(KEYS[0], goes_on) is False
    assert cache.fill(KEYS[0], never) is True


def test_those_that_were_not_used_for_longest_are_removed_first(cache):
    for at, key in enumerate(KEYS):
        cache.fill(key, writer("x" * 3_000))
        os.utime(cache.place / key, (at + 1, at + 1))
    # Using the first one makes it the latest.
    assert cache.fill(KEYS[0], never)
    cache.shrink()
    kept = {path.name for path in cache.place.iterdir()}
    assert kept == {KEYS[0], KEYS[3], KEYS[4]}
    cache.shrink()
    assert {path.name for path in cache.place.iterdir()} == kept


def test_nothing_but_entries_is_removed(cache):
    cache.fill(KEYS[0], writer("x" * 30_000))
    (cache.place / "thesis").mkdir()
    (cache.place / "thesis" / "chapter").write_text("y" * 30_000)
    cache.shrink()
    assert [path.name for path in cache.place.iterdir()] == ["thesis"]


def test_what_somebody_holds_is_not_removed(cache):
    cache.fill(KEYS[0], writer("x" * 30_000))
    with cache.hold(KEYS[0]) as folder:
        other = Cache(cache.place, cache.most)
        other.shrink()
        assert folder.exists()
    other.shrink()
    assert not folder.exists()


def test_processes_that_need_the_same_wait_for_each_other(cache):
    program = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from nearid.base.cache import Cache

        def make(folder):
            time.sleep(0.5)
            (folder / "file").write_text("once")
            with open({str(cache.place.parent)!r} + "/made", "a") as log:
                log.write("made ")

        Cache(Path({str(cache.place)!r}), 100).fill({KEYS[0]!r}, make)
    """)
    cache.place.mkdir(parents=True)
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert (cache.place.parent / "made").read_text() == "made "


def test_a_process_that_was_killed_holds_nobody_up(cache):
    program = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from nearid.base.cache import Cache

        def make(folder):
            (folder / "half").write_text("half")
            time.sleep(60)

        Cache(Path({str(cache.place)!r}), 100).fill({KEYS[0]!r}, make)
    """)
    process = subprocess.Popen([sys.executable, "-c", program])
    half = cache.place / KEYS[0] / "half"
    for _ in range(600):
        if half.exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert cache.fill(KEYS[0], writer()) is False
    assert content(cache, KEYS[0]) == "rows"


def test_an_entry_that_goes_before_it_is_held_is_none(cache, monkeypatch):
    cache.fill(KEYS[0], writer())
    real = caches.held

    def held(place, *, alone):
        if not alone:
            Cache(cache.place, 0).shrink()
            place.mkdir(exist_ok=True)
        return real(place, alone=alone)

    monkeypatch.setattr(caches, "held", held)
    with cache.hold(KEYS[0]) as folder:
        assert folder is None


def test_the_place_is_that_of_the_variable_or_of_the_system(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("NEARID_CACHE", str(tmp_path / "mine"))
    assert cache_place() == tmp_path / "mine"
    monkeypatch.delenv("NEARID_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_place() == tmp_path / "xdg" / "nearid"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_place() == tmp_path / ".cache" / "nearid"


def test_the_size_is_that_of_the_variable(monkeypatch):
    monkeypatch.delenv("NEARID_CACHE_GB", raising=False)
    assert cache_bytes() == 10_000_000_000
    monkeypatch.setenv("NEARID_CACHE_GB", "0.5")
    assert cache_bytes() == 500_000_000
    for wrong in ("much", "-1", "nan", "inf"):
        monkeypatch.setenv("NEARID_CACHE_GB", wrong)
        with pytest.raises(InputError, match=r"NEARID_CACHE_GB is .* in GB is expected"):
            cache_bytes()


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written: .*NEARID_CACHE.*--no-cache"):
        Cache(tmp_path / "file", 1).fill(KEYS[0], never)

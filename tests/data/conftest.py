"""Where data sets are looked for in these tests."""

import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder that NEARID_DATA points to, and an empty cache; gives a function for the folder of a data set."""
    monkeypatch.setenv("NEARID_DATA", str(tmp_path / "given"))
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)

    def folder(name):
        path = tmp_path / "given" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    return folder

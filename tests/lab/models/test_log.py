"""Logs of training runs: written line by line, and read back for where a run stands."""

import os

import pytest

from nearid.lab.models.log import append_log, reached, restart_log


def test_the_last_step_of_what_can_go_on(tmp_path):
    assert reached(tmp_path) is None and reached(tmp_path / "nowhere") is None
    first, second = tmp_path / "first", tmp_path / "second"
    for k, folder in enumerate((first, second)):
        folder.mkdir()
        restart_log(folder, [{"step": 10 + k}])
        append_log(folder, {"step": 20 + k})
        os.utime(folder / "log.jsonl", (100 - k, 100 - k))
    assert reached(tmp_path) is None
    (second / "checkpoint.pt").touch()
    assert reached(tmp_path) == 21
    # Of two, the one that was last at work.
    (first / "checkpoint.pt").touch()
    assert reached(tmp_path) == 20


@pytest.mark.parametrize("text", ["", "{", "[]", '{"step": null}', "{}"])
def test_a_log_that_says_nothing(tmp_path, text):
    (tmp_path / "checkpoint.pt").touch()
    assert reached(tmp_path) is None
    (tmp_path / "log.jsonl").write_text(text)
    assert reached(tmp_path) is None

"""Work that goes on after an interruption, and only the same work."""

import json
import os

import pytest

from nearid.base.errors import InputError
from nearid.base.resume import Resumable, differences, load_note

WORK = {"input": {"shape": (3, 2), "name": "x"}, "options": {"tol": 0.1}}


def resumable(folder, identity=None, **options):
    return Resumable(folder, identity or WORK, "an unfinished fit", "Begin anew with --restart.", **options)


def test_what_was_kept_is_read_again_by_the_same_work(tmp_path):
    work = resumable(tmp_path)
    assert work.read() is None
    assert work.keep({"rows": 3}) and not work.keep({"rows": 4})
    assert resumable(tmp_path).read() == {"rows": 3}
    assert work.keep({"rows": 4}, now=True) and resumable(tmp_path).read() == {"rows": 4}
    work.done()
    assert list(tmp_path.iterdir()) == []


def test_other_work_is_refused_by_what_differs(tmp_path):
    resumable(tmp_path).keep({})
    other = {"input": {"shape": (3, 2), "name": "y"}, "options": {"tol": 0.1, "seed": 1}}
    with pytest.raises(InputError, match="input name was 'x', now 'y'; options seed was not given") as refused:
        resumable(tmp_path, other).read()
    assert "--restart" in str(refused.value)
    assert differences(None, WORK) == ["it does not say of what"]
    assert differences({"a": 1}, {"a": {"b": 1}}) == ["a was 1, now {'b': 1}"]


@pytest.mark.parametrize("note", ["", "[]", "{", '{"identity": {}}', "[" * 10_000, json.dumps({"state": {}})])
def test_a_damaged_note_gets_a_sentence(tmp_path, note):
    (tmp_path / "progress.json").write_text(note)
    with pytest.raises(InputError, match="cannot be read as the note of an unfinished fit"):
        resumable(tmp_path).read()


def test_two_processes_do_not_share_a_folder(tmp_path):
    with resumable(tmp_path).locked(), pytest.raises(InputError), resumable(tmp_path).locked():
        pass


def test_a_pipe_is_no_note(tmp_path):
    os.mkfifo(tmp_path / "progress.json")
    with pytest.raises(ValueError, match="not a file"):
        load_note(tmp_path / "progress.json")

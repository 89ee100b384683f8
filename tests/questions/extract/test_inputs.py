"""Wrong paths, suffixes, columns and options are refused before torch is imported."""

import os
import subprocess
import sys

import pytest

from nearid import InputError, extract

EARLY = """
import sys
import nearid
from nearid.base.errors import InputError

for data, options in eval(sys.argv[1]):
    try:
        nearid.extract("models/mine", data, **options)
    except InputError as error:
        print(error)
    else:
        raise AssertionError(data)
assert not {"torch", "transformers"} & set(sys.modules)
"""


def test_without_torch(tmp_path):
    (tmp_path / "t.csv").write_text("id,sentence\n1,a b\n2,c d\n")
    (tmp_path / "t.txt").write_text("one\n")
    (tmp_path / "many.txt").write_text("one\ntwo\n")
    (tmp_path / "t.foo").write_text("one\n")
    (tmp_path / "models" / "mine").mkdir(parents=True)
    tried = [
        ("nowhere.txt", {}, "There is no file named 'nowhere.txt'"),
        ("t.foo", {}, "cannot be opened as inputs"),
        ("t.csv", {"column": "sentense"}, "Did you mean 'sentence'"),
        ("t.txt", {}, "1 text"),
        ("many.txt", {}, "has no tokeniser"),
        ("models", {}, "contains no pictures"),
        (["a", "b"], {"mean": 1.0}, "mean (--mean) is for images"),
        (["a", "b"], {"drop_unreadable": True}, "drop_unreadable (--drop-unreadable) is for files of pictures"),
        ("many.txt", {"key": "x"}, "key (--key) is for arrays"),
    ]
    command = [sys.executable, "-c", EARLY, repr([(data, options) for data, options, _ in tried])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line, (data, _, message) in zip(done.stdout.splitlines(), tried, strict=True):
        assert message in line, data


def test_options_for_other_data(net, pixels):
    for options, message in (
        ({"column": "text"}, "no column 'text'"),
        ({"max_length": 5}, "is for texts"),
        ({"resize": 5}, "is for files of pictures"),
        ({"pool": "words"}, "not texts"),
    ):
        with pytest.raises(InputError, match=message):
            extract(net, pixels, **options)
    with pytest.raises(InputError, match="does not know the tokeniser of"):
        extract(net, ["a b", "c d"])

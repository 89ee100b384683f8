"""Running the real command in a process of its own."""

import os
import subprocess
import sys

import pytest

from nearid.errors import NearidError


@pytest.fixture
def nearid(tmp_path):
    """Call `nearid` with arguments in tmp_path; gives the completed process."""

    def run(*args, columns=140, stdout=subprocess.PIPE):
        return subprocess.run(
            [sys.executable, "-c", "from nearid.cli.app import main; main()", *map(str, args)],
            cwd=tmp_path,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            env={**os.environ, "COLUMNS": str(columns)},
        )

    return run


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Call `nearid` in this process, where it must refuse its input; gives the sentence. Quicker than a process."""

    def run(*args):
        from nearid.cli.commands import app

        monkeypatch.chdir(tmp_path)
        try:
            app([str(a) for a in args], standalone_mode=False)
        except Exception as error:
            # Typer's own errors carry their sentence as `format_message`.
            assert isinstance(error, NearidError) or hasattr(error, "format_message"), repr(error)
            assert capsys.readouterr().out == ""
            return str(error) if isinstance(error, NearidError) else error.format_message()
        raise AssertionError("it was not refused")

    return run

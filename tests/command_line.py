"""Running the command: in this process, which spares its imports, or in a process of its own."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from nearid.base.errors import NearidError


@pytest.fixture
def nearid(tmp_path, monkeypatch):
    """Call `nearid` with arguments in tmp_path, in this process; gives what `process` gives."""

    def leave(code):
        raise SystemExit(code)

    def run(*args, columns=140):
        from nearid.cli.app import main

        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(tmp_path)
            patch.setattr("sys.argv", ["nearid", *map(str, args)])
            patch.setattr("os._exit", leave)
            # The tests' own process keeps its signals.
            patch.setattr("nearid.cli.app.catch_signals", lambda: None)
            patch.setattr("nearid.cli.app.ignore_signals", lambda: None)
            patch.setenv("COLUMNS", str(columns))
            code = 0
            try:
                main()
            except SystemExit as stop:
                code = stop.code or 0
        texts = (stream.buffer.getvalue().decode() for stream in (out, err))
        return subprocess.CompletedProcess(args, code, *texts)

    return run


@pytest.fixture
def process(tmp_path):
    """Call `nearid` with arguments in tmp_path, as a user does; gives the completed process."""

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

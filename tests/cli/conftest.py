"""Running the real command in a process of its own."""

import os
import subprocess
import sys

import pytest


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

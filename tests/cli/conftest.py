"""Running the real command in a process of its own."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def nearid(tmp_path):
    """Call `nearid` with arguments in tmp_path; gives the completed process."""

    def run(*args, **options):
        return subprocess.run(
            [sys.executable, "-c", "from nearid.cli.app import main; main()", *map(str, args)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "COLUMNS": "140"},
            **options,
        )

    return run

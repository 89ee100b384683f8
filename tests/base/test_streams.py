"""Prints of any kind leave stdout to the result."""

import subprocess
import sys

CODE = """
import os, sys
from nearid.base.streams import stdout_to_stderr
print("before")
kept = sys.stdout
with stdout_to_stderr():
    print("printed")
    kept.write("kept\\n")
    os.system("echo started")
    os.write(1, b"raw\\n")
print("after")
"""


def test_only_what_is_printed_outside_reaches_stdout():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["before", "after"]
    assert sorted(done.stderr.splitlines()) == ["kept", "printed", "raw", "started"]

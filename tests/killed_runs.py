"""Extractions that are killed in the middle, to be taken up again."""

import os
import signal
import subprocess
import sys
import time


def kill_extraction(code, *arguments, out, path=()):
    """Run code that extracts into the last of its arguments, `out`, and kill it once some inputs are noted there.

    Parameters
    ----------
    path : list of str
        Folders beside those of this process that modules are imported from.
    """
    note = out.with_name(f"{out.name}.partial") / "progress.json"
    command = [sys.executable, "-c", code, *arguments, out]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join([*path, *sys.path])}) as run:
        # Importing takes a while on a busy machine.
        while run.poll() is None and not (note.exists() and '"inputs": 0' not in note.read_text()):
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
    assert not out.exists() and note.exists()

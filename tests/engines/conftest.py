"""A Dask cluster of real processes, to be killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nearid
from die_with_parent import die_with_parent


class Processes:
    """`dask scheduler` and two `dask worker` with nannies."""

    def __init__(self, folder: Path) -> None:
        # The nearid under test, wherever another may be installed.
        source = str(Path(nearid.__file__).resolve().parents[1])
        # Connections to what was killed are given up after 5 seconds instead of 30.
        self._env = {**os.environ, "PYTHONPATH": source, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
        self._log = (folder / "log").open("w")
        self._file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"
        )
        deadline = time.monotonic() + 60
        while not self._file.exists():
            assert time.monotonic() < deadline and self.scheduler.poll() is None, "the scheduler did not start"
            time.sleep(0.05)
        worker = ("worker", "--nworkers", "1", "--nthreads", "1", "--local-directory", str(folder))
        self.all = [self.scheduler, self._start(*worker), self._start(*worker)]
        self.address = json.loads(self._file.read_text())["address"]

    def _start(self, *args: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "dask", *args, "--scheduler-file", str(self._file), "--no-dashboard"]
        return subprocess.Popen(
            command,
            env=self._env,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def stop(self) -> None:
        for process in self.all:
            # Each leads a session of its own, so that its nanny's worker goes with it.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._log.close()


@pytest.fixture
def processes(tmp_path):
    """A cluster of real processes."""
    pytest.importorskip("distributed", reason="the extra `distributed` is not installed")
    running = Processes(tmp_path)
    yield running
    running.stop()

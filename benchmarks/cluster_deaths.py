"""How `nearid unmix` ends when a worker or the scheduler of its Dask cluster is killed in the midst of the fit.

usage: python benchmarks/cluster_deaths.py [--harms worker,lone,own,scheduler] [--trials 30] [--rows 1100000]

Every trial starts real processes, runs `nearid unmix --engine ADDRESS`, and kills with SIGKILL when the first
checkpoint is written or some passes later. The kinds of harm:

worker      one of two `dask worker`, which its nanny starts again
lone        one of two `dask worker --no-nanny`, which nobody starts again
own         one of the worker processes of `--engine dask`
scheduler   the `dask scheduler`

A killed worker must cost nothing: exit code 0, the components of a fit in one process to the byte, nothing on stderr.
A killed scheduler must cost one sentence: exit code 2, "no longer answers", the checkpoint kept, nothing else on
stderr. A trial that takes more than two minutes after the kill is a hang.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

HARMS = ("worker", "lone", "own", "scheduler")
# Seconds after a kill until a run that goes on is a hang, and until processes must have started.
HANG, START = 120, 90
COLUMNS = 8


def dask(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start `dask ...` in a session of its own, so that its children can be ended with it."""
    command = [sys.executable, "-m", "dask", *arguments, "--scheduler-file", str(folder / "scheduler.json")]
    log = (folder / "log").open("a")
    return subprocess.Popen([*command, "--no-dashboard"], stdout=log, stderr=log, start_new_session=True)


@contextmanager
def cluster(folder: Path, *, nanny: bool) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Yield the address of a scheduler with two workers, and the three processes, the scheduler first."""
    running = [dask(folder, "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")]
    try:
        await_that(lambda: (folder / "scheduler.json").exists())
        worker = ("worker", "--nworkers", "1", "--nthreads", "1", "--local-directory", str(folder))
        running += [dask(folder, *worker, *([] if nanny else ["--no-nanny"])) for _ in range(2)]
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        await_that(lambda: len(workers_at(address)) == 2)
        yield address, running
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def workers_at(address: str) -> list[int]:
    """Return the process ids of the workers of a scheduler."""
    from distributed import Client

    with Client(address, set_as_default=False, timeout=20) as client:
        return list(client.run(os.getpid).values())


def children(pid: int) -> list[int]:
    """Return the Dask worker processes among the children of a process, by what they listen to."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
            words = (path.parent / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid and "spawn_main" in words:
            found.append(int(path.parent.name))
    return sorted(found)


def await_that(true: object, seconds: float = START) -> None:
    """Wait until a function returns something true."""
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError("The processes did not start in time.")
        time.sleep(0.05)


def trial(harm: str, number: int, rows: Path, expected: bytes) -> str:
    """Run and harm one fit, and say how it ended."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engine, processes = "dask", []
        if harm != "own":
            engine, processes = stack.enter_context(cluster(folder, nanny=harm != "lone"))
        doomed = workers_at(engine)[number % 2] if harm in ("worker", "lone") else None
        out, errors = folder / "out", folder / "errors"
        command = [sys.executable, "-m", "nearid", "unmix", str(rows), "-o", str(out), "--engine", engine, "--quiet"]
        run = stack.enter_context(
            subprocess.Popen([*command, "--tol", "1e-9"], stdout=subprocess.DEVNULL, stderr=errors.open("w"))
        )
        checkpoint = out / "checkpoint.safetensors"
        await_that(lambda: checkpoint.exists() or run.poll() is not None, 240)
        # The first trials kill at once, the others at other moments of the passes that follow.
        time.sleep(0.13 * (number % 10))
        if run.poll() is not None:
            return "ended before the kill"
        if harm == "own":
            doomed = children(run.pid)[number % 2]
        os.kill(processes[0].pid if doomed is None else doomed, signal.SIGKILL)
        try:
            code = run.wait(HANG)
        except subprocess.TimeoutExpired:
            run.kill()
            return "hang"
        said = errors.read_text().strip()
        print(f"    {harm} {number}: exit code {code}. {said[:3000]}", file=sys.stderr, flush=True)
        if "Traceback" in said or "distributed" in said:
            return "lines of distributed"
        if harm == "scheduler":
            right = code == 2 and "no longer answers" in said and len(said.splitlines()) == 1 and checkpoint.exists()
            return "right" if right else "other"
        return "right" if code == 0 and not said and (out / "components.npy").read_bytes() == expected else "other"


def main() -> None:
    """Print how many trials of each kind ended in which way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--harms", default=",".join(HARMS))
    parser.add_argument("--trials", type=int, default=30)
    # More than are held whitened in memory, so that every pass of the search runs on the cluster.
    parser.add_argument("--rows", type=int, default=1_100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, fitted = Path(folder) / "x.npy", Path(folder) / "fitted"
        rng = np.random.default_rng(0)
        mixing = rng.normal(size=(COLUMNS, COLUMNS))
        np.save(rows, rng.laplace(size=(options.rows, COLUMNS)) @ mixing)
        fit = [sys.executable, "-m", "nearid", "unmix", str(rows), "-o", str(fitted), "--tol", "1e-9", "--quiet"]
        subprocess.run(fit, check=True, stdout=subprocess.DEVNULL)
        expected = (fitted / "components.npy").read_bytes()
        for harm in options.harms.split(","):
            ends = Counter(trial(harm, number, rows, expected) for number in range(options.trials))
            told = ", ".join(f"{count} {end}" for end, count in ends.most_common())
            print(f"{harm}: {options.trials} trials, {told}", flush=True)


if __name__ == "__main__":
    main()

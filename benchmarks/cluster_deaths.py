"""How nearid ends when a worker or the scheduler of its Dask cluster is killed in the midst of a pass over the rows.

usage: python benchmarks/cluster_deaths.py [--harms worker,lone,own,scheduler] [--passes moments,...] [--trials 30]

Every trial runs a command of nearid in a process of its own, on a cluster of real processes, and kills with SIGKILL
at a random moment of one pass: before the first task, or when a random number of tasks are done. Trials take the
passes in turn. The rows are few and the blocks small (256 rows), so that a pass has 47 or 16 tasks. In every second
trial all that tasks share is sent to a worker, as large data is. The kinds of harm:

worker      one of two `dask worker`, which its nanny starts again
lone        one of two `dask worker --no-nanny`, which nobody starts again
own         one of the worker processes of `--engine dask`
scheduler   the `dask scheduler`

The passes: moments, errors, diameter and chance of `nearid compare`, one of the sweeps of `nearid unmix` (ica), and the
components that workers write in `nearid apply` (transform).

A killed worker must cost nothing: exit code 0, the output of one process to the byte, nothing on stderr. A killed
scheduler must cost one sentence: exit code 2, "no longer answers", nothing else on stderr, and no output that is half
written. A command that runs for more than a minute after the kill is a hang; the stack of its threads is then printed.

The processes, but those that distributed starts itself, are forks of one that has imported everything. So a trial takes
few core seconds.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

HARMS = ("worker", "lone", "own", "scheduler")
# The tasks of a pass, and the command that runs it.
TASKS = {
    "moments": ("_sums", "compare"),
    "errors": ("_judge", "compare"),
    "ica": ("_part", "unmix"),
    "transform": ("write_part", "apply"),
    "diameter": ("_farthest", "compare"),
    "chance": ("_repeat", "compare"),
}
# Seconds after which a trial is a hang, and in which processes must start.
HANG, START = 60, 90
ROWS = 12_000
# Trials of a kind of harm before those of the next kind.
AT_A_TIME = 5
# A command that ended rightly before its random moment was not harmed: other moments are drawn, at most so many.
UNHARMED, DRAWS = "not harmed", 5


def command(name: str, folder: Path, out: Path, engine: str) -> list[str]:
    """Return the arguments of nearid that write to `out`."""
    wide, other, narrow = (str(folder / file) for file in ("x.npy", "y.npy", "z.npy"))
    words = {
        "compare": ["compare", wide, other, "--blocks", "none", "--json", "--permutations", "33"],
        "unmix": ["unmix", narrow, "-o", str(out), "--starts", "1", "--quiet"],
        "apply": ["apply", str(folder / "model"), narrow, "-o", str(out), "--quiet"],
    }
    return [*words[name], "--engine", engine]


def small_blocks(*, sent: bool) -> None:
    """Let few rows make many tasks, and every pass run on the cluster; `sent`: shared data of any size is sent."""
    import nearid.engines.cluster as cluster
    import nearid.engines.local as local
    import nearid.ica.fit as fit
    import nearid.measures.diameter as diameters

    local.BLOCK_BYTES, vars(fit)["MOST_HELD"] = 1, 0
    diameters.search.__kwdefaults__ = {**(diameters.search.__kwdefaults__ or {}), "budget": 0}
    if sent:
        cluster.SMALL = -1


def victim(kind: str, harm: str, number: int, scheduler: int, words: list[str]) -> None:
    """Run a command of nearid, and kill at a random moment of its pass."""
    from nearid.engines.cluster import Cluster

    small_blocks(sent=number % 2 == 1)
    rng = np.random.default_rng([number, HARMS.index(harm), list(TASKS).index(kind)])
    # A command may run the pass several times.
    skip = int(rng.integers({"ica": 6, "diameter": 2}.get(kind, 1)))
    passes = 0

    def doomed(engine: Cluster) -> int:
        return scheduler if harm == "scheduler" else sorted(engine._client.run(os.getpid).values())[number % 2]

    def kill(pid: int) -> None:
        Path("killed").touch()
        faulthandler.dump_traceback_later(HANG - 2)
        os.kill(pid, signal.SIGKILL)

    def harmed(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Cluster, task: Any, items: Any, *shared: Any, tick: Any = None, **options: Any) -> Any:
            nonlocal passes
            passes += task.__name__ == TASKS[kind][0]
            if task.__name__ != TASKS[kind][0] or passes != skip + 1:
                return method(self, task, items, *shared, tick=tick, **options)
            pid, at, count = doomed(self), int(rng.integers(len(items))), 0
            later = threading.Timer(float(rng.uniform(0, 0.05)), kill, (pid,))

            def counted(*words: object) -> None:
                nonlocal count
                count += 1
                if count == at:
                    later.start()
                if tick:
                    tick(*words)

            if not at:
                later.start()
            return method(self, task, items, *shared, tick=counted, **options)

        return run

    for name in ("reduce", "map"):
        setattr(Cluster, name, harmed(getattr(Cluster, name)))
    from nearid.cli.app import main as nearid

    sys.argv = ["nearid", *words]
    nearid()


class Forks:
    """Starts processes as forks of one that has imported what they need."""

    def __init__(self) -> None:
        words = [sys.executable, __file__, "--forks"]
        self._parent = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _ask(self, **order: Any) -> int | None:
        assert self._parent.stdin is not None and self._parent.stdout is not None
        print(json.dumps(order), file=self._parent.stdin, flush=True)
        answer: int | None = json.loads(self._parent.stdout.readline())
        return answer

    def start(self, words: list[str], folder: Path, printed: str, errors: str) -> int:
        """Start a process in a session of its own, and return its id."""
        pid = self._ask(start=words, folder=str(folder), printed=printed, errors=errors)
        assert pid is not None
        return pid

    def code(self, pid: int) -> int | None:
        """Return the exit code of a process, or None if it runs."""
        return self._ask(code=pid)

    def stop(self) -> None:
        """End the process that forks."""
        self._parent.kill()
        self._parent.wait()


def fork_on_demand() -> None:
    """Fork for every order on stdin; in the forks, run what is ordered."""
    import distributed.cli.dask_scheduler
    import distributed.cli.dask_worker

    import nearid.cli.commands
    import nearid.engines.cluster
    import nearid.ica.stream
    import nearid.questions.compare.run
    import nearid.questions.unmix.result  # noqa: F401

    codes: dict[int, int] = {}
    for line in sys.stdin:
        order = json.loads(line)
        if "code" in order:
            pid = order["code"]
            if pid not in codes:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    codes[pid] = os.waitstatus_to_exitcode(status)
            print(json.dumps(codes.get(pid)), flush=True)
            continue
        pid = os.fork()
        if pid:
            print(pid, flush=True)
            continue
        os.setsid()
        os.chdir(order["folder"])
        for number, name in ((0, os.devnull), (1, order["printed"]), (2, order["errors"])):
            file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            os.dup2(file, number)
            os.close(file)
        first, *words = order["start"]
        if first == "victim":
            kind, harm, number, scheduler, *words = words
            victim(kind, harm, int(number), int(scheduler), words)
            return
        sys.argv = [first, *words]
        {"scheduler": distributed.cli.dask_scheduler, "worker": distributed.cli.dask_worker}[first].main()
        return


class Processes:
    """A scheduler and two workers."""

    def __init__(self, folder: Path, forks: Forks, *, nanny: bool) -> None:
        self.folder, self.forks, self.nanny = folder, forks, nanny
        folder.mkdir(exist_ok=True)
        server = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
        self.scheduler = self._dask(*server)
        self.workers: list[int] = []
        await_that(lambda: (folder / "scheduler.json").exists())
        self.address = json.loads((folder / "scheduler.json").read_text())["address"]

    def _dask(self, *arguments: str) -> int:
        words = [*arguments, "--scheduler-file", str(self.folder / "scheduler.json"), "--no-dashboard"]
        return self.forks.start(words, self.folder, "log", "log")

    def complete(self) -> None:
        """Wait until there are two workers; start those that nobody else starts."""
        from distributed import Client

        self.workers = [pid for pid in self.workers if self.forks.code(pid) is None]
        worker = ("worker", "--nworkers", "1", "--nthreads", "1", "--local-directory", str(self.folder))
        self.workers += [
            self._dask(*worker, *([] if self.nanny else ["--no-nanny"])) for _ in range(2 - len(self.workers))
        ]
        with Client(self.address, set_as_default=False, timeout=20) as client:
            await_that(lambda: len(client.run(os.getpid, on_error="ignore")) == 2)

    def stop(self) -> None:
        """End all processes."""
        for pid in (self.scheduler, *self.workers):
            end(pid)


def end(pid: int) -> None:
    """End a process and those that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def await_that(true: Callable[[], object]) -> None:
    """Wait until a function returns something true."""
    deadline = time.monotonic() + START
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError("The processes did not start in time.")
        time.sleep(0.05)


def contents(path: Path) -> dict[str, bytes]:
    """Return the bytes of the files of an output, without what holds the time of a fit."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(p.relative_to(path)): p.read_bytes() for p in files if p.name != "model.json"}


def trial(harm: str, kind: str, number: int, data: Path, engine: str, scheduler: int, forks: Forks) -> str:
    """Run and harm one command, and say how it ended."""
    name = TASKS[kind][1]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / ("out.zarr" if name == "apply" else "out")
        words = command(name, data, out, engine)
        pid = forks.start(
            ["victim", kind, harm, str(number), str(scheduler), *words], Path(folder), "printed", "errors"
        )
        began = since = time.monotonic()
        killed, code = Path(folder) / "killed", None
        while code is None and time.monotonic() < since + (HANG if killed.exists() else 4 * HANG):
            time.sleep(0.1)
            code = forks.code(pid)
            since = since if killed.exists() else time.monotonic()
        end(pid)
        took = time.monotonic() - since
        said = (Path(folder) / "errors").read_text().strip()
        printed_text = (Path(folder) / "printed").read_text()
        answer = ending(harm if killed.exists() else "none", name, code, said, printed_text, out, data)
        if not killed.exists() and answer == "right":
            answer = UNHARMED
        before = since - began
        print(f"    {harm} {kind} {number}: {answer}, {before:.1f} + {took:.1f} s", file=sys.stderr, flush=True)
        if answer not in ("right", UNHARMED):
            print(f"      exit code {code}. {said[:6000]}", file=sys.stderr, flush=True)
        return answer


def ending(harm: str, name: str, code: int | None, said: str, printed: str, out: Path, data: Path) -> str:
    """Say how a command ended."""
    if code is None:
        return "hang"
    if "Traceback" in said or "distributed" in said:
        return "lines of distributed"
    if harm == "scheduler":
        right = code == 2 and "no longer answers" in said and len(said.splitlines()) == 1
        left = sorted(p.name for p in out.parent.iterdir() if p.name not in ("errors", "printed", "killed"))
        if name == "unmix":
            # Its checkpoint is kept, if there was one already.
            left = sorted(contents(out)) if left == ["out"] else left
            left = [] if left == ["checkpoint.safetensors"] else left
        if left:
            return f"leaves {', '.join(left)}"
        return "right" if right else "other"
    if code or said:
        return "other"
    if name == "compare":
        same = json.loads(printed) == json.loads((data / "compare.txt").read_text())
    else:
        same = contents(out) == contents(data / name)
    return "right" if same else "other figures"


def trials(harm: str, kinds: list[str], numbers: range, data: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the pass and the ending of some trials."""
    with ExitStack() as stack:
        running: Processes | None = None
        forks = Forks()
        stack.callback(forks.stop)
        for number in numbers:
            kind = kinds[number % len(kinds)]
            if harm != "own" and (running is None or harm == "scheduler"):
                running = Processes(folder / f"{harm}-{number}", forks, nanny=harm == "worker")
                stack.callback(running.stop)
            address, scheduler = ("dask", 0) if running is None else (running.address, running.scheduler)
            for again in range(DRAWS):
                if running is not None:
                    running.complete()
                answer = trial(harm, kind, number // len(kinds) + 1000 * again, data, address, scheduler, forks)
                if answer != UNHARMED:
                    break
            yield kind, answer
            if running is not None and harm == "scheduler":
                running.stop()


def prepare(data: Path) -> None:
    """Write the inputs, and the outputs of one process."""
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(size=(ROWS, 36)).astype(np.float32), rng.laplace(size=(ROWS // 3, 8))
    turned = wide @ np.linalg.qr(rng.normal(size=(36, 36)))[0].astype(np.float32)
    np.save(data / "x.npy", wide)
    np.save(data / "y.npy", turned + rng.normal(size=wide.shape).astype(np.float32))
    np.save(data / "z.npy", narrow @ rng.normal(size=(8, 8)))
    run = [sys.executable, __file__, "--here"]
    subprocess.run([*run, "unmix", str(data / "z.npy"), "-o", str(data / "model")], check=True, capture_output=True)
    for name, out in (("unmix", "unmix"), ("apply", "apply.zarr"), ("compare", "")):
        with (data / f"{name}.txt").open("w") as printed:
            subprocess.run([*run, *command(name, data, data / out, "local")], check=True, stdout=printed)
    (data / "apply.zarr").rename(data / "apply")


def main() -> None:
    """Print how many trials of each kind ended in which way."""
    if sys.argv[1:2] == ["--forks"]:
        fork_on_demand()
        return
    if sys.argv[1:2] == ["--here"]:
        from nearid.cli.app import main as nearid

        small_blocks(sent=False)
        sys.argv = ["nearid", *sys.argv[2:]]
        nearid()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--harms", default=",".join(HARMS))
    parser.add_argument("--passes", default=",".join(TASKS))
    parser.add_argument("--trials", type=int, default=30, help="of each kind of harm")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        # Processes that distributed starts compile nothing anew.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        prepare(data)
        harms, kinds, every = options.harms.split(","), options.passes.split(","), range(options.trials)
        ends, of = ({harm: Counter[str]() for harm in harms} for _ in range(2))
        # A few of each kind in turn, so that a run that is ended early has trials of all kinds.
        for low, harm in itertools.product(every[::AT_A_TIME], harms):
            for kind, end in trials(harm, kinds, every[low : low + AT_A_TIME], data, Path(folder)):
                ends[harm][end] += 1
                of[harm][kind] += 1
                counts = ", ".join(f"{count} {end}" for end, count in ends[harm].most_common())
                print(f"{harm}: {ends[harm].total()} trials ({dict(of[harm])}), {counts}", flush=True)


if __name__ == "__main__":
    main()

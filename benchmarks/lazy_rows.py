"""Any number of rows, made when they are read, through compare, unmix and transform on a Dask cluster of this machine.

usage: python benchmarks/lazy_rows.py [--gigabytes 50] [--columns 256] [--workers 2] [--memory 2GiB] [--folder FOLDER]
                                      [--only compare,unmix,transform] [--sweeps 2]

Rows are float32. A process draws 16,384 rows of independent latents once, and a stretch of rows is a stretch of these,
from another place and times another factor for every 4,096 rows. So rows cost one multiplication to make, no two are
the same, every process makes the same ones, and nothing is on a disk. `compare` reads two inputs of half the size: the
latents, and a rotation of them with noise. `unmix` fits eight components to the whole size: it searches on as many rows
as it holds in memory, and then makes at most `--sweeps` passes of ICA over all rows. The transform maps the rows to two
components, which the workers write to a .zarr directory. Each line is printed when its question ends: passes over all
rows, counted on the engine, wall time, rows and bytes per second over all passes, core seconds of the client and of the
workers, and the largest resident memory of the client (with the scheduler) and of a worker. The lines after the table
say where the memory of the client was largest, and what making the rows alone costs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import nearid
from nearid.arrays.rows import Rows
from nearid.engines.cluster import Cluster

# Rows that a process draws, and rows with one place and one factor.
DRAWN, STRETCH = 16_384, 4096


@cache
def drawn(columns: int, kind: str) -> np.ndarray:
    """Return the rows that all others are made of: sources with kurtosis below 0, or their rotation, or noise.

    Rows are repeated at the end, so that a stretch may begin anywhere.
    """
    rng = np.random.default_rng([columns, kind == "noise"])
    rows = rng.random((DRAWN, columns), dtype=np.float32) - np.float32(0.5)
    if kind == "rotated":
        rows = rows @ np.linalg.qr(np.random.default_rng(1).normal(size=(columns, columns)))[0].astype(np.float32)
    elif kind == "mixed":
        rows = rows @ (np.random.default_rng(2).normal(size=(columns, columns)) / columns**0.5).astype(np.float32)
    elif kind == "noise":
        rows *= np.float32(0.5)
    return np.concatenate([rows, rows[:STRETCH]])


class LazyRows(Rows):
    """Rows that are made when they are read.

    Parameters
    ----------
    kind : {"latents", "rotated", "mixed"}
    noise : bool
        Whether noise is added.
    """

    window = STRETCH

    def __init__(self, kind: str, n: int, columns: int, *, noise: bool = False) -> None:
        super().__init__(kind, (n, columns), np.dtype(np.float32))
        self.kind, self.noise = kind, noise

    def _read(self, start: int, stop: int) -> np.ndarray:
        out = np.empty((stop - start, self.shape[1]), np.float32)
        rows, noise = drawn(self.shape[1], self.kind), drawn(self.shape[1], "noise") if self.noise else None
        for number in range(start // STRETCH, -(-stop // STRETCH)):
            low, high = max(start, number * STRETCH), min(stop, (number + 1) * STRETCH)
            place, other, factor = place_of(number)
            own, low, high = out[low - start : high - start], low - number * STRETCH, high - number * STRETCH
            np.multiply(rows[place + low : place + high], factor, out=own)
            if noise is not None:
                own += noise[other + low : other + high]
        return out


def place_of(number: int) -> tuple[int, int, np.float32]:
    """Return where a stretch begins among the drawn rows and in the noise, and its factor: 0.9 to 1.1, or negative."""
    rng = np.random.Generator(np.random.Philox(key=number))
    place, other = rng.integers(DRAWN, size=2).tolist()
    return place, other, np.float32(rng.uniform(0.9, 1.1) * rng.choice([-1, 1]))


class Counting(Cluster):
    """A cluster that counts the passes over all rows."""

    passes = 0

    def reduce(self, task: Any, items: Any, *shared: Any, **options: Any) -> Any:
        """See `Engine.reduce`."""
        self.passes += any(isinstance(value, LazyRows) for value in shared)
        return super().reduce(task, items, *shared, **options)

    def map(self, task: Any, items: Any, *shared: Any, **options: Any) -> Any:
        """See `Engine.map`."""
        self.passes += any(isinstance(value, LazyRows) for value in shared)
        return super().map(task, items, *shared, **options)


class Watch:
    """Resident memory, in MB, and core seconds of this process and of the workers, seen five times a second."""

    def __init__(self, workers: list[int]) -> None:
        self._pids, self._on = [os.getpid(), *workers], True
        self.largest, self.stage, self.stages = [0.0] * len(self._pids), "start", dict[str, float]()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while self._on:
            for at, pid in enumerate(self._pids):
                size = resident(pid)
                self.largest[at] = max(self.largest[at], size)
                if not at:
                    self.stages[self.stage] = max(self.stages.get(self.stage, 0.0), size)
            time.sleep(0.2)

    def core_seconds(self) -> tuple[float, float]:
        """Return those of this process, and those of all workers."""
        each = [seconds_of(pid) for pid in self._pids]
        return each[0], sum(each[1:])

    def progress(self, name: str, steps: int) -> Callable[..., None]:
        """Note the stage that runs."""
        self.stage = name
        return lambda *_: None

    def stop(self) -> None:
        """End the watch."""
        self._on = False
        self._thread.join()


def resident(pid: int) -> float:
    """Return the resident memory of a process in MB; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def seconds_of(pid: int) -> float:
    """Return the core seconds of a process; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def told(name: str, rows: int, size: float, engine: Counting, watch: Watch) -> Iterator[None]:
    """Print a line of the table for what runs in this context."""
    engine.passes = 0
    watch.largest = [0.0] * len(watch.largest)
    wall, before = time.perf_counter(), watch.core_seconds()
    yield
    wall, after = time.perf_counter() - wall, watch.core_seconds()
    client, workers = (b - a for a, b in zip(before, after, strict=True))
    passes = engine.passes
    print(
        f"| {name} | {rows:,} | {size / 1e9:.1f} | {passes} | {wall:.0f} | {rows * passes / wall:,.0f} | "
        f"{size * passes / wall / 1e6:.0f} | {client:.0f} | {workers:.0f} | {watch.largest[0]:.0f} | "
        f"{max(watch.largest[1:]):.0f} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=50)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--folder")
    parser.add_argument("--only", default="compare,unmix,transform")
    parser.add_argument("--sweeps", type=int, default=2)
    options = parser.parse_args()
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")
    d, only = options.columns, options.only.split(",")
    n = int(options.gigabytes * 1e9 / (4 * d))
    whole = LazyRows("mixed", n, d)
    halves = LazyRows("latents", n // 2, d), LazyRows("rotated", n // 2, d, noise=True)
    drawn(d, "mixed")
    began = time.process_time()
    for start in range(0, 10 * DRAWN, DRAWN):
        whole.read(start, start + DRAWN)
    made = 10 * DRAWN * 4 * d / (time.process_time() - began)
    head = "what | rows | GB | passes | wall s | rows/s | MB/s | core s client | core s workers | MB client | MB worker"
    print(f"| {head} |\n{'|---' * 11}|", flush=True)
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
        LocalCluster(
            n_workers=options.workers,
            threads_per_worker=1,
            memory_limit=options.memory,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=50,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        watch = Watch(list(client.run(os.getpid).values()))
        engine = Counting(client)
        found = []
        if "compare" in only:
            with told("compare", n // 2, 2 * 4 * d * (n // 2), engine, watch):
                compared = nearid.compare(*halves, blocks="none", engine=engine, progress=watch.progress)
            found.append(f"verdict {compared.verdict.group}, R2 {compared.groups['rigid'].r2}")
        if "unmix" in only:
            with told("unmix", n, 4 * d * n, engine, watch):
                fitted = nearid.unmix(
                    whole, n_components=8, max_passes=options.sweeps, engine=engine, progress=watch.progress
                )
            end = f"{fitted.n_iter_} sweeps over all rows to a relative gradient of {fitted.gradients_[-1]:.1e}"
            found.append(f"unmix {end}, {fitted.diagnostics_.starts} starts on a part")
        if "transform" in only:
            two = nearid.Whitening(n_components=2, engine=engine)
            with told("whiten", n, 4 * d * n, engine, watch):
                two.fit(whole)
            with told("transform", n, 4 * d * n, engine, watch):
                two.transform_to(whole, Path(folder) / "components.zarr", engine=engine, progress=watch.progress)
        watch.stop()
    print(f"\n{'; '.join(found)}")
    print("largest client in each stage, MB:", {name: round(size) for name, size in watch.stages.items()})
    print(f"making rows alone: {made / 1e6:,.0f} MB/s of one core")


if __name__ == "__main__":
    main()

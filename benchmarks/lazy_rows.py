"""Any number of rows, made when they are read, through compare, unmix and transform on a Dask cluster of this machine.

usage: python benchmarks/lazy_rows.py [--gigabytes 50] [--columns 256] [--workers 2] [--memory 1.5GiB] [--folder FOLDER]

Rows are float32. Block i of rows is drawn from the counter-based generator Philox with the key i, so that every process
makes the same rows and nothing is on a disk. `compare` reads two such inputs of half the size: independent latents, and
a rotation of them with noise. `unmix` makes one pass for the moments and two of ICA over the whole size. The transform
maps the rows to two components, which the workers write to a .zarr directory. Printed are wall time, rows and bytes per
second, and the largest resident memory of the client (with the scheduler) and of the workers.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import nearid
from nearid.arrays.rows import Rows
from nearid.engines.cluster import Cluster

# Rows that are drawn together.
DRAWN = 4096


class LazyRows(Rows):
    """Uniform sources (kurtosis below 0) times a matrix, made when they are read.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
    noise : float
        Size of the noise that is added.
    """

    window = DRAWN

    def __init__(self, name: str, n: int, matrix: np.ndarray, noise: float = 0.0) -> None:
        super().__init__(name, (n, matrix.shape[1]), np.dtype(np.float32))
        self.matrix, self.noise = matrix.astype(np.float32), noise

    def _read(self, start: int, stop: int) -> np.ndarray:
        first = start // DRAWN
        drawn = np.concatenate([self._drawn(block) for block in range(first, -(-stop // DRAWN))])
        return drawn[start - first * DRAWN : stop - first * DRAWN]

    def _drawn(self, block: int) -> np.ndarray:
        rng = np.random.Generator(np.random.Philox(key=block))
        sources = rng.random((DRAWN, len(self.matrix)), dtype=np.float32)
        sources -= np.float32(0.5)
        rows = sources @ self.matrix
        if self.noise:
            rows += np.float32(self.noise) * (rng.random(rows.shape, dtype=np.float32) - np.float32(0.5))
        return rows


class Memory:
    """Largest resident memory, in MB, of this process and of the workers, seen twice a second."""

    def __init__(self, pids: list[int]) -> None:
        self.workers, self._pids, self._on = 0.0, pids, True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def client(self) -> float:
        """Largest of this process."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def _watch(self) -> None:
        while self._on:
            for pid in self._pids:
                try:
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                except (FileNotFoundError, ProcessLookupError):
                    continue
                self.workers = max(self.workers, pages * resource.getpagesize() / 2**20)
            time.sleep(0.5)

    def stop(self) -> None:
        """End the watch."""
        self._on = False
        self._thread.join()


@contextmanager
def told(name: str, rows: int, size: float, passes: float, memory: Memory) -> Iterator[None]:
    """Print a row of the table for what runs in this context."""
    wall, began = time.perf_counter(), time.process_time()
    yield
    wall = time.perf_counter() - wall
    print(
        f"| {name} | {rows:,} | {size / 1e9:.1f} | {wall:.0f} | {rows * passes / wall:,.0f} | "
        f"{size * passes / wall / 1e6:.0f} | {time.process_time() - began:.0f} | {memory.client:.0f} | "
        f"{memory.workers:.0f} |",
        flush=True,
    )


def worker_id() -> int:
    """Return the process id of a worker."""
    import os

    return os.getpid()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=50)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1.5GiB")
    parser.add_argument("--folder")
    options = parser.parse_args()
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")
    d, rng = options.columns, np.random.default_rng(0)
    n = int(options.gigabytes * 1e9 / (4 * d))
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    whole = LazyRows("rows", n, rng.normal(size=(d, d)) / d**0.5)
    halves = LazyRows("latents", n // 2, np.eye(d)), LazyRows("rotated", n // 2, rotation, 0.5)
    print("| what | rows | GB | wall s | rows/s | MB/s | CPU s of the client | MB of the client | MB of a worker |")
    print("|---|---|---|---|---|---|---|---|---|")
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
        memory = Memory(list(client.run(worker_id).values()))
        engine = Cluster(client)
        # Two passes: moments and errors. The sweeps for the diameter are a part of the second side.
        with told("compare", n // 2, 2 * 4 * d * (n // 2), 2, memory):
            compared = nearid.compare(*halves, permutations=19, blocks="none", engine=engine)
        # The moments, two passes of the search, one for the diagnostics, and the hash of all numbers in this process.
        with told("unmix", n, 4 * d * n, 4, memory):
            fitted = nearid.unmix(whole, n_components=8, max_passes=2, starts=1, engine=engine)
        two = nearid.Whitening(n_components=2, engine=engine)
        with told("whiten", n, 4 * d * n, 1, memory):
            two.fit(whole)
        with told("transform", n, 4 * d * n, 1, memory):
            two.transform_to(whole, Path(folder) / "components.zarr", engine=engine)
        memory.stop()
    print(f"\nverdict {compared.verdict.group}, R2 {compared.groups['rigid'].r2.value:.4f}; {fitted.n_iter_} passes")


if __name__ == "__main__":
    main()

"""What the benchmarks share: a stopwatch, a watch on memory, and rows of figures for the page of `run_all.py`."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# run_all.py names a file here, and reads the rows from it.
ROWS = "NEARID_BENCHMARK_ROWS"


def row(
    what: str, *, ours: float, peer: float | None = None, by: str = "", limit: float | None = None, unit: str = "s"
) -> dict[str, Any]:
    """Record one line of docs/benchmarks.md, and return it. Without `run_all.py` nothing is recorded.

    Parameters
    ----------
    what : str
        What was measured, with its size.
    ours, peer, limit : float
        Figures of nearid, of the peer that `by` names, and of the bound that the machine sets, all in the same unit.
    """
    made = {"what": what, "ours": ours, "peer": peer, "by": by, "limit": limit, "unit": unit}
    if os.environ.get(ROWS):
        with open(os.environ[ROWS], "a") as file:
            file.write(json.dumps(made) + "\n")
    return made


def timed(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Best wall time of some repeats, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def processor_timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall and processor seconds of one call, of all threads of this process, and the result."""
    wall, processor = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - wall, time.process_time() - processor, result


class PeakMemory:
    """Largest resident set above that at the start, sampled every 5 ms."""

    def __enter__(self) -> PeakMemory:
        self.base = self.peak = self._now()
        self.on = True
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.on = False
        self.thread.join()

    @property
    def megabytes(self) -> float:
        return (self.peak - self.base) / 1024

    def _watch(self) -> None:
        while self.on:
            self.peak = max(self.peak, self._now())
            time.sleep(0.005)

    @staticmethod
    def _now() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])

"""Core seconds of every pass over rows in memory, and what they make of very many rows: a plan, not a run.

usage: python benchmarks/pass_costs.py [--rows 32768] [--columns 1024] [--of 1000000000] [--only unmix,compare]

Rows are float32, sources with heavy tails, mixed and with noise. Everything runs on one core with one BLAS thread.
`unmix` makes two sweeps, which are measured as passes of their own. Reading is not included: rows are in memory.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

import nearid
from nearid.arrays import Rows
from nearid.engines.local import Local

# Passes by the name of their task.
NAMES = {
    "_part_digest": "hash of all numbers",
    "_sums": "moments",
    "_part": "sweep of ICA",
    "_whitened": "rows that are held",
    "_seen": "rows farthest out, copies, kurtosis",
    "_judge": "errors",
    "_farthest": "sweep for the diameter",
}


class Timed(Local):
    """Passes in this process, with their core seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def reduce(self, task: Any, items: Any, *shared: Any, **options: Any) -> Any:
        """See `Engine.reduce`."""
        began = time.process_time()
        result = super().reduce(task, items, *shared, **options)
        if any(isinstance(value, Rows) for value in shared):
            self.seconds[task.__name__].append(time.process_time() - began)
        return result

    def map(self, task: Any, items: Any, *shared: Any, **options: Any) -> Iterator[Any]:
        """See `Engine.map`. What the caller does with the results counts too."""
        began = time.process_time()
        yield from super().map(task, items, *shared, **options)
        if any(isinstance(value, Rows) for value in shared):
            self.seconds[task.__name__].append(time.process_time() - began)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=32_768)
    parser.add_argument("--columns", type=int, default=1024)
    parser.add_argument("--of", type=float, default=1e9)
    parser.add_argument("--only", default="unmix,compare")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rng = np.random.default_rng(0)
    n, d = options.rows, options.columns
    x = (rng.laplace(size=(n, d)) @ rng.normal(size=(d, d))).astype(np.float32)
    y = x @ np.linalg.qr(rng.normal(size=(d, d)))[0].astype(np.float32) + rng.normal(size=x.shape).astype(np.float32)
    print(f"| question | pass | times | core s of one, {n:,} x {d} | core hours of one, {options.of:.3g} rows |")
    print("|---" * 5 + "|")
    for question in options.only.split(","):
        engine, began = Timed(), time.process_time()
        if question == "unmix":
            nearid.unmix(x, max_passes=2, engine=engine)
        else:
            nearid.compare(x, y, blocks="none", permutations=1, engine=engine)
        whole = time.process_time() - began
        for task, each in engine.seconds.items():
            mean = float(np.mean(each))
            hours = mean * options.of / n / 3600
            print(f"| {question} | {NAMES.get(task, task)} | {len(each)} | {mean:.2f} | {hours:.1f} |", flush=True)
        rest = whole - sum(map(sum, engine.seconds.values()))
        print(f"| {question} | the rest of this call, which does not grow with the rows | | {rest:.1f} | |", flush=True)


if __name__ == "__main__":
    main()

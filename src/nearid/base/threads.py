"""Compiled work shared out over threads of Python.

Compiled code that lets go of the interpreter's lock runs in parallel on them; numba's own threads would set the number
of torch's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise


def share_out(threads: int, size: int, work: Callable[[slice], object]) -> None:
    """Call work on slices that together are range(size), one for each thread."""
    if threads == 1:
        work(slice(0, size))
        return
    ends = [size * i // threads for i in range(threads + 1)]
    list(_pool(os.getpid(), threads).map(work, [slice(a, b) for a, b in pairwise(ends) if a < b]))


@lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    # A forked process has none of the threads of its parent, and needs a pool of its own.
    return ThreadPoolExecutor(threads, thread_name_prefix="nearid")

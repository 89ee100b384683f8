"""Compiled work in parallel Python threads.

Compiled code that releases the GIL runs in parallel in these threads. The threads of numba are not used, because they
would change the number of threads of torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise


def share_out(threads: int, size: int, work: Callable[[slice], object]) -> None:
    """Call `work` on slices that together cover range(size), one slice per thread."""
    if threads == 1:
        work(slice(0, size))
        return
    ends = [size * i // threads for i in range(threads + 1)]
    list(_pool(os.getpid(), threads).map(work, [slice(a, b) for a, b in pairwise(ends) if a < b]))


@lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    # A forked process does not inherit the threads of its parent, so it needs its own pool.
    return ThreadPoolExecutor(threads, thread_name_prefix="nearid")

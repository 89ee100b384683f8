"""Passes over row blocks by threads of this process, and opening the engine that a user names."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pkgutil import resolve_name
from threading import Lock
from typing import Any, TypeVar

from nearid.base.errors import InputError
from nearid.engines.base import ENGINES, Engine, Failure, merge_parts, merge_tree, register_engine

S = TypeVar("S")
T = TypeVar("T")
Block = tuple[int, int]

# Size of a block in bytes (as float64). A fifth of it fits the cache of a core, and it is large enough to amortise
# the cost of adding up the sums.
BLOCK_BYTES = 32 << 20
# Few rows are split into this many blocks, so that threads can share the work, but not into smaller blocks than this.
LEAST_BLOCKS, LEAST_BYTES = 8, 1 << 20


def blocks(n: int, width: int) -> list[Block]:
    """Return the (start, stop) blocks of n rows of `width` columns. They depend only on the shape, not on threads."""
    row_bytes = 8 * max(width, 1)
    # With fewer rows than columns, writing and adding the sums of products takes longer than computing them.
    least = max(LEAST_BYTES // row_bytes, width, -(-n // LEAST_BLOCKS))
    rows = max(256, min(BLOCK_BYTES // row_bytes, least))
    return [(start, min(start + rows, n)) for start in range(0, n, rows)]


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Libraries:
    """Loaded libraries that have their own threads.

    Searching for them takes longer than a small pass, so the list is kept until further modules are imported, which
    may have loaded further libraries.
    """

    def __init__(self) -> None:
        self._found: Any = None
        self._modules = 0

    def limit(self, user_api: str | None = None) -> Any:
        """Return a context in which the libraries of one kind, or all, use one thread. It can also be ended by hand."""
        from threadpoolctl import ThreadpoolController

        modules = len(sys.modules)
        if modules != self._modules:
            self._found, self._modules = ThreadpoolController(), modules
        return self._found.limit(limits=1, user_api=user_api)


libraries = _Libraries()


class _OneBlasThread:
    """Limit BLAS to one thread while any pass runs. Passes in several threads may begin and end in any order."""

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._limits = libraries.limit("blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0 and self._limits is not None:
                self._limits.restore_original_limits()

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let BLAS use all of its threads within this context, for one large pass."""
        with self._lock:
            held = self._holders > 0 and self._limits is not None
            if held:
                self._limits.restore_original_limits()
        try:
            yield
        finally:
            with self._lock:
                if held and self._holders:
                    self._limits = libraries.limit("blas")


one_blas_thread = _OneBlasThread()


def ordered_map(
    function: Callable[[S], T],
    items: Sequence[S],
    workers: int | None = None,
    tick: Callable[[], object] | None = None,
) -> Iterator[T]:
    """Yield function(item) in order, computed by threads that run at most two items ahead of the consumer.

    Parameters
    ----------
    function : callable
        Called in a worker thread. numpy releases the GIL in the expensive parts.
    items : sequence
    workers : int, optional
        Number of threads. Default: all cores. With 1, the work is done in this thread, and BLAS keeps its threads.
    tick : callable, optional
        Called once per finished item, to report progress.
    """
    workers = min(workers or cores(), len(items))
    if workers <= 1:
        for item in items:
            yield function(item)
            if tick:
                tick()
        return
    with one_blas_thread, ThreadPoolExecutor(workers) as pool:
        pending: deque[Future[T]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) > workers + 1:
                    yield pending.popleft().result()
                    if tick:
                        tick()
            while pending:
                yield pending.popleft().result()
                if tick:
                    tick()
        finally:
            for future in pending:
                future.cancel()


class Local(Engine):
    """Engine on this machine: passes run in threads of this process, independent tasks in one process per core.

    Examples
    --------
    >>> from nearid.engines.local import Local
    >>> Local().reduce(lambda item: [item**2], [1, 2, 3], merge=lambda into, part: into + part)
    [14]
    """

    def reduce(
        self,
        task: Callable[..., Iterable[T]],
        items: Sequence[Any],
        *shared: Any,
        merge: Callable[[T, T], T],
        large: bool = False,
        tick: Callable[[], object] | None = None,
    ) -> list[T]:
        """See `Engine.reduce`."""

        def run(item: Any) -> Iterable[T]:
            parts = task(item, *shared)
            # If the parts are too large to hold all of them, the generator is passed on to the merging.
            return parts if large else list(parts)

        def add(node: list[T], parts: Iterable[T]) -> list[T]:
            return merge_parts(node, parts, merge)

        if large:
            # Only one block of wide rows fits the memory at a time, so BLAS must use several threads.
            with one_blas_thread.lifted() if len(items) > 1 else nullcontext():
                return list(merge_tree(ordered_map(run, items, workers=1, tick=tick), list, add, list, None))
        # Also with a single item, because the last digits of a product depend on the number of BLAS threads.
        with one_blas_thread:
            return list(merge_tree(ordered_map(run, items, tick=tick), list, add, list))

    def map(
        self, task: Callable[..., T], items: Sequence[Any], *shared: Any, tick: Callable[[], object] | None = None
    ) -> Iterator[T]:
        """See `Engine.map`."""
        with one_blas_thread:
            yield from ordered_map(lambda item: task(item, *shared), items, tick=tick)

    def each(
        self, task: Callable[[Any], T], items: Sequence[Any], begun: Callable[[int], object] | None = None
    ) -> Generator[tuple[int, T | Failure], None, None]:
        """See `Engine.each`."""
        from nearid.engines.processes import in_processes

        return in_processes(task, items, cores(), begun)


LOCAL = Local()


def open_engine(engine: str | Engine | None) -> AbstractContextManager[Engine]:
    """Return a context manager that opens an engine and closes it at the end. A wrong name raises an error at once.

    Parameters
    ----------
    engine : {"local", "torch", "dask"}, address, Engine or None
        None and "local" use this process. "torch", "torch:cuda" and "torch:mps" use it too, with products on this
        device of torch. "dask" starts a Dask cluster with one process per core of this machine, and
        stops it at the end. An address such as "tcp://127.0.0.1:8786" uses the cluster of the Dask scheduler there.
        Other names are those of `register_engine`. An engine object is used unchanged.
    """
    if isinstance(engine, Engine):
        return nullcontext(engine)
    given = "local" if engine is None else str(engine)
    # Everything that does not begin with a known name is an address.
    opener = ENGINES.get(given.partition(":")[0]) or (ENGINES["dask"] if ":" in given else None)
    if opener is None:
        names = ", ".join(f'"{name}"' for name in ENGINES)
        raise InputError(
            f"The engine must be {names} or the address of a Dask scheduler such as tcp://127.0.0.1:8786, "
            f"not {engine!r}."
        )
    return opener(given)


register_engine("local", lambda _: nullcontext(LOCAL))
register_engine("torch", lambda name: resolve_name("nearid.engines.torch_engine:open_torch")(name))
register_engine("dask", lambda address: resolve_name("nearid.engines.cluster:open_cluster")(address))

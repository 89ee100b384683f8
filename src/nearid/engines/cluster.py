"""Passes and tasks on a Dask cluster. Workers read the blocks from storage, and only sums are sent back."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pkgutil import resolve_name
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nearid import __version__
from nearid.base.errors import EngineError, ReadError
from nearid.engines.base import FAN_IN, Engine, Failure, merge_parts, merge_tree
from nearid.engines.local import cores, one_blas_thread
from nearid.engines.processes import attempt, no_working_folder

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

# Seconds to wait for an answer of the scheduler, and for a worker to be available (again).
ANSWER, RETURN = 10, 60
# Seconds between two checks of whether there are any workers.
LOOK = 5
# Number of attempts to run a pass before lost workers raise an error.
RUNS = 4


class PassLost(Exception):
    """A pass did not finish because workers, or data on them, were lost."""


class WorkersLost(Failure):
    """A task whose workers died, perhaps because of this task."""


class Cluster(Engine):
    """Passes on a Dask cluster.

    Workers read the rows of files themselves, so only the path is sent. Rows in memory are sent once to every worker.
    If a worker dies, Dask computes lost sums again. If shared data is lost with the only worker that held it, the pass
    is run again. The sums are merged in the same tree, so the result is the same.

    Parameters
    ----------
    client : str or distributed.Client
        The address of a scheduler, or a client. A given client is not closed.
    """

    def __init__(self, client: str | Client) -> None:
        from distributed import Client

        self._own = isinstance(client, str)
        try:
            self._client = Client(client, timeout=ANSWER, set_as_default=False) if isinstance(client, str) else client
        except (OSError, ValueError) as error:
            raise EngineError(
                f"No Dask scheduler can be reached at {client} ({error}). Check the address, which "
                "`dask scheduler` prints when it starts, for example tcp://127.0.0.1:8786."
            ) from None
        self._address = str(self._client.scheduler_info()["address"])
        self._sent: dict[int, Future[Any]] = {}
        self._check_versions()

    def _check_versions(self) -> None:
        """Raise an error if the cluster has another version of nearid, because tasks could fail or differ there."""
        name = "nearid:__version__"
        try:
            versions = {
                self._client.run_on_scheduler(resolve_name, name),
                *self._client.run(resolve_name, name).values(),
            }
        except ImportError:
            versions = {"missing"}
        if versions != {__version__}:
            self.__exit__()
            raise EngineError(
                f"The Dask cluster at {self._address} has nearid {', '.join(sorted(versions))}, but this process has "
                f"{__version__}. Install nearid {__version__} where the scheduler and the workers run."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sent.clear()
        if self._own:
            self._client.close()

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
        done = 0

        def finished(count: int) -> None:
            # Items of a repeated pass are not counted twice.
            nonlocal done
            if count > done:
                done = count
                if tick:
                    tick()

        for _ in range(RUNS):
            self._await_worker()
            try:
                return self._run(task, items, shared, merge, large, finished)
            except PassLost as error:
                lost = error
                self._sent.clear()
        raise EngineError(
            f"Workers of the Dask cluster at {self._address} were lost in {RUNS} runs of the same pass ({lost}). "
            "They may have too little memory. Check their logs, and give them more memory or fewer threads."
        )

    def _run(
        self,
        task: Callable[..., Iterable[T]],
        items: Sequence[Any],
        shared: tuple[Any, ...],
        merge: Callable[[T, T], T],
        large: bool,
        finished: Callable[[int], None],
    ) -> list[T]:
        """Run a pass once."""

        def add(children: list[Future[Any]], child: Future[Any]) -> list[Future[Any]]:
            children = [*children, child]
            return [node(children)] if len(children) == FAN_IN else children

        def node(children: list[Future[Any]]) -> Future[Any]:
            if len(children) == 1:
                return children[0]
            # Merged as soon as possible, so that few partial results are in memory.
            return self._client.submit(merge_on_worker, merge, *children, pure=False, priority=1)

        with as_pass_lost():
            sent = [self._send(value) for value in shared]
            leaves = [self._client.submit(run_on_worker, task, item, *sent, pure=False) for item in items]
            waiting = [*leaves, merge_tree(leaves, lambda child: [child], add, node, None if large else FAN_IN)]
            del leaves
        try:
            for count in range(len(items)):
                # In order, so that the first of several errors is reported. Finished futures are released, because
                # only the tree needs them.
                self._await(waiting.pop(0))
                finished(count + 1)
            self._await(waiting[0])
            with as_pass_lost():
                result: list[T] = waiting[0].result()
            return result
        finally:
            # Cancelled explicitly, because the traceback of an error may keep references to the futures.
            waiting.clear()
            sent.clear()

    def each(
        self, task: Callable[[Any], T], items: Sequence[Any], begun: Callable[[int], object] | None = None
    ) -> Generator[tuple[int, T | Failure], None, None]:
        """See `Engine.each`. `begun` is not called, because only the cluster knows when a task begins."""
        suspects = []
        for k, result in self._as_done(task, items):
            if isinstance(result, WorkersLost):
                suspects.append(k)
            else:
                yield k, result
        # If a worker dies, all of its tasks are lost. Only a task that ran alone can be the cause.
        for k in suspects:
            for _, result in self._as_done(task, [items[k]]):
                yield k, result

    def _as_done(self, task: Callable[[Any], T], items: Sequence[Any]) -> Iterator[tuple[int, T | Failure]]:
        self._await_worker()
        done: SimpleQueue[Future[Any]] = SimpleQueue()
        with as_pass_lost():
            waiting = {self._client.submit(attempt, task, item, pure=False): k for k, item in enumerate(items)}
        for future in waiting:
            future.add_done_callback(done.put)
        try:
            while waiting:
                try:
                    future = done.get(timeout=LOOK)
                except Empty:
                    self._await_worker()
                    continue
                yield waiting.pop(future), self._outcome(future)
        finally:
            waiting.clear()

    def _outcome(self, future: Future[Any]) -> Any:
        try:
            self._await(future)
            with as_pass_lost():
                return future.result()
        except PassLost as lost:
            if not future.cancelled():
                return WorkersLost(f"The workers that ran it were lost ({lost}). They may have too little memory.")
            # Futures that nobody released are lost only together with the scheduler.
            self._await_worker()
            raise EngineError(
                f"The Dask cluster at {self._address} has lost its tasks. Repeat the call: finished work is kept."
            ) from lost

    def _send(self, value: Any) -> Any:
        """Return a future of a value on every worker. The value is sent only once while it exists."""
        if id(value) in self._sent:
            return self._sent[id(value)]
        try:
            weakref.finalize(value, self._sent.pop, id(value), None).atexit = False
        except TypeError:
            return value
        # Not hashed: hashing would read the whole array, and with equal keys of released data Dask may wait forever.
        [self._sent[id(value)]] = self._client.scatter([value], broadcast=True, hash=False)
        return self._sent[id(value)]

    def _await(self, future: Future[Any]) -> None:
        """Wait until a future is done, and raise its error if it has one."""
        from distributed import KilledWorker

        while not future.done():
            with as_pass_lost():
                try:
                    future.exception(timeout=LOOK)
                except TimeoutError:
                    self._await_worker()
        if future.cancelled():
            raise PassLost("shared data or the connection was lost")
        with as_pass_lost():
            error = future.exception()
        if isinstance(error, KilledWorker):
            raise PassLost(str(error))
        if isinstance(error, ImportError):
            raise EngineError(
                f"The workers at {self._address} cannot import what they need ({error}). Install the same versions of "
                "nearid and its dependencies where the scheduler and the workers run."
            )
        if isinstance(error, OSError | ReadError):
            raise EngineError(
                f"A worker at {self._address} cannot read the rows ({error}). Workers read the files themselves: the "
                "same path must lead to the same file on all their machines."
            )
        if error is not None:
            raise error

    def _await_worker(self) -> None:
        """Wait for a worker. If the scheduler or all workers stay away, raise an error."""
        began = time.monotonic()
        while self._client.status == "connecting" and time.monotonic() < began + ANSWER:
            time.sleep(0.1)
        try:
            if self._client.status != "running":
                raise OSError
            self._client.wait_for_workers(1, timeout=RETURN)
        except TimeoutError:
            raise EngineError(
                f"The Dask cluster at {self._address} has had no worker for {RETURN} seconds. Start one: "
                f"dask worker {self._address}"
            ) from None
        except (OSError, RuntimeError):
            raise EngineError(
                f"The Dask scheduler at {self._address} no longer answers. Start it again and repeat the call. If the "
                "fit has a checkpoint, it continues from its last pass."
            ) from None


@contextmanager
def open_cluster(address: str) -> Iterator[Cluster]:
    """Open the cluster of the scheduler at an address; for "dask", a new cluster on the cores of this machine."""
    try:
        from distributed import LocalCluster
    except ImportError:
        raise EngineError(
            "A Dask engine needs the package distributed, which is not installed: pip install 'nearid[distributed]'."
        ) from None
    with ExitStack() as stack:
        if address == "dask":
            stack.enter_context(no_working_folder())
            # Worker processes that die are started again.
            own = LocalCluster(
                n_workers=cores(),
                threads_per_worker=1,
                dashboard_address=None,
                # Dask starts a server even without a dashboard, and warns if the default port is in use.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                # Errors are raised here once, so the logs are not needed.
                silence_logs=logging.CRITICAL,
            )
            address = stack.enter_context(own).scheduler_address
        yield stack.enter_context(Cluster(address))


@contextmanager
def as_pass_lost() -> Iterator[None]:
    """Turn the errors of Dask for lost connections or data into PassLost."""
    from distributed import CancelledError

    try:
        yield
    except (OSError, RuntimeError, CancelledError) as error:
        raise PassLost(str(error)) from error


def run_on_worker(task: Callable[..., Iterable[T]], item: Any, *shared: Any) -> list[T]:
    """Compute a leaf of the tree with one BLAS thread, because the worker runs several tasks in parallel."""
    with one_blas_thread:
        return list(task(item, *shared))


def merge_on_worker(merge: Callable[[T, T], T], first: list[T], *others: list[T]) -> list[T]:
    """Compute a node of the tree. The first child is copied before it is changed, because Dask may reuse it."""
    merged = deepcopy(first)
    for parts in others:
        merged = merge_parts(merged, parts, merge)
    return merged

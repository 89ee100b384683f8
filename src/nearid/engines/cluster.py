"""Passes and tasks on a Dask cluster. Workers read the blocks from storage, and only sums are sent back."""

from __future__ import annotations

import logging
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from pkgutil import resolve_name
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nearid import __version__
from nearid.base.errors import EngineError, ReadError
from nearid.engines.address import Call, check_scheduler, forget_errors, quiet_logs, unreachable, within
from nearid.engines.base import FAN_IN, Engine, Failure, merge_parts, merge_tree
from nearid.engines.local import cores, one_blas_thread
from nearid.engines.processes import attempt, no_working_folder

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

T = TypeVar("T")

# Seconds to wait for an answer of the scheduler, and for a worker to be available (again).
ANSWER, RETURN = 10, 60
# Seconds between two checks of whether there are any workers.
LOOK = 5
# Number of attempts to run a pass before lost workers raise an error.
RUNS = 4
# The scheduler keeps shared data of up to this size in bytes, so that it cannot be lost with a worker. Larger data is
# sent to a worker, which has a second for each of so many bytes.
SMALL, SLOWEST = 8 << 20, 4 << 20
# Number of results for each thread of a worker that may wait to be fetched.
AHEAD = 3
# Seconds for fetching a result that is finished, and for ending the processes of an own cluster.
FETCH, END = 600, 60
# Seconds between two checks of whether an answer can still come.
WAKE = 0.5


class PassLost(Exception):
    """A pass did not finish because workers, or data on them, were lost."""


class NoWorker(Exception):
    """The scheduler has answered, but no worker came."""


class WorkersLost(Failure):
    """A task whose workers died, perhaps because of this task."""


class Cluster(Engine):
    """Passes on a Dask cluster.

    Workers read the rows of files themselves, so only the path is sent. Rows in memory are sent once, and every worker
    keeps a copy. If a worker dies, Dask computes lost sums again. If rows in memory are lost with the only worker that
    holds them, the pass is run again. The sums are merged in the same tree, so the result is the same.

    Parameters
    ----------
    client : str or distributed.Client
        The address of a scheduler, or a client. A given client is not closed.
    """

    def __init__(self, client: str | Client) -> None:
        from distributed import Client

        self._sent: dict[int, Future[Any]] = {}
        with ExitStack() as stack:
            if isinstance(client, str):
                stack.enter_context(quiet_logs())
                check_scheduler(client, ANSWER)
                address = client
                try:
                    own = within(3 * ANSWER, lambda: Client(address, timeout=ANSWER, set_as_default=False))
                except (OSError, ValueError) as error:
                    # It has ended in the meantime.
                    raise unreachable(address, error) from None
                stack.callback(_close, own)
                forget_errors(own)
                client = own
            self._client = client
            self._address = str(client.scheduler.address)  # type: ignore[union-attr]
            self._check_versions()
            self._open = stack.pop_all()

    def _check_versions(self) -> None:
        """Raise an error if the cluster has another version of nearid, because tasks could fail or differ there."""
        name = "nearid:__version__"
        try:
            found = [within(ANSWER, lambda: self._client.run_on_scheduler(resolve_name, name))]
        except ImportError as error:
            found = [error]
        except OSError as error:
            raise unreachable(self._address, error) from None
        # Workers that do not answer are left out: the cluster gives their tasks to others.
        with suppress(OSError):
            found += within(ANSWER, lambda: self._client.run(resolve_name, name, on_error="return")).values()
        versions = {"missing" if isinstance(own, ImportError) else own for own in found if not isinstance(own, OSError)}
        if versions != {__version__}:
            raise EngineError(
                f"The Dask cluster at {self._address} has nearid {', '.join(sorted(map(str, versions)))}, but this "
                f"process has {__version__}. Install nearid {__version__} where the scheduler and the workers run."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sent.clear()
        self._open.close()

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
        raise self._workers_lost(lost)

    def _workers_lost(self, lost: PassLost) -> EngineError:
        return EngineError(
            f"Workers of the Dask cluster at {self._address} were lost in {RUNS} runs of the same pass ({lost}). "
            "They may have too little memory. Check their logs, and give them more memory or fewer threads."
        )

    def map(
        self, task: Callable[..., T], items: Sequence[Any], *shared: Any, tick: Callable[[], object] | None = None
    ) -> Generator[T, None, None]:
        """See `Engine.map`."""
        done = losses = 0
        while done < len(items):
            self._await_worker()
            try:
                for result in self._in_order(task, items[done:], shared):
                    # Only losses without a result in between show that the pass cannot be run.
                    done, losses = done + 1, 0
                    yield result
                    if tick:
                        tick()
            except PassLost as lost:
                losses += 1
                self._sent.clear()
                if losses == RUNS:
                    raise self._workers_lost(lost) from None

    def _in_order(
        self, task: Callable[..., T], items: Sequence[Any], shared: tuple[Any, ...]
    ) -> Generator[T, None, None]:
        """Yield the results of a pass in order. A few of the next ones are on the workers."""
        with as_pass_lost():
            sent = [self._send(value) for value in shared]
            ahead = AHEAD * max(sum(self._ask(self._client.nthreads, ANSWER).values()), 1)
        waiting: deque[Future[Any]] = deque()
        try:
            for item in items:
                with as_pass_lost():
                    waiting.append(self._client.submit(one_on_worker, task, item, *sent, pure=False))
                if len(waiting) > ahead:
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        except PassLost:
            raise
        except BaseException:
            # Tasks that have begun go on, and may write. The caller must not remove their folder before they end.
            with suppress(Exception):
                for future in waiting:
                    future.exception(timeout=LOOK)
            raise
        finally:
            waiting.clear()
            sent.clear()

    def _result(self, future: Future[Any]) -> Any:
        """Return the result of a future. If the worker that holds it dies, wait until it is computed again."""
        self._await(future)
        call, since = Call(future.result), time.monotonic()
        with as_pass_lost():
            while not call.ended(LOOK):
                self._await_worker()
                if not future.done():
                    since = time.monotonic()
                elif time.monotonic() > since + FETCH:
                    raise TimeoutError(f"a result did not come in {FETCH} seconds")
            return call.result()

    def _ask(self, call: Callable[[], T], seconds: float) -> T:
        """Return the answer of a call to the cluster, or raise an OSError if none comes in time or none can come."""
        asked, deadline = Call(call), time.monotonic() + seconds
        lost: float | None = None
        while not asked.ended(WAKE):
            now = time.monotonic()
            lost = None if self._client.status == "running" else lost or now
            if now > deadline or (lost and now > lost + ANSWER):
                raise TimeoutError(f"no answer for {seconds:g} seconds")
        return asked.result()

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
            result: list[T] = self._result(waiting[0])
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
            return self._result(future)
        except PassLost as lost:
            if not future.cancelled():
                return WorkersLost(f"The workers that ran it were lost ({lost}). They may have too little memory.")
            # Futures that nobody released are lost only together with the scheduler.
            self._await_worker()
            raise EngineError(
                f"The Dask cluster at {self._address} has lost its tasks. Repeat the call: finished work is kept."
            ) from lost

    def _send(self, value: Any) -> Any:
        """Return a future of a value. The value is sent only once while it exists."""
        if id(value) in self._sent:
            return self._sent[id(value)]
        try:
            weakref.finalize(value, self._sent.pop, id(value), None).atexit = False
        except TypeError:
            return value
        size = pickled_size(value)
        if size <= SMALL:
            # As a task, which is run again if the workers that hold its result are lost.
            future = self._client.submit(same, value, pure=False)
        else:
            # Not hashed: hashing would read the whole array, and with equal keys of released data Dask may wait
            # forever. Not to all workers at once: if one of them dies then, the scheduler tries for ever to reach it.
            # Workers fetch it from each other, and a worker that does not answer is given up after some time.
            future = self._scatter(value, RETURN + size / SLOWEST)
        self._sent[id(value)] = future
        return future

    def _scatter(self, value: Any, seconds: float) -> Any:
        """Send a value to a worker. If any worker dies meanwhile, it may be that one: raise a TimeoutError."""
        deadline, before = time.monotonic() + seconds, self._workers()
        call = Call(lambda: self._client.scatter([value], hash=False, timeout=RETURN))
        while not call.ended(LOOK):
            if time.monotonic() > deadline or not before <= self._workers():
                raise TimeoutError("shared data could not be sent to a worker")
        [future] = call.result()
        return future

    def _workers(self) -> set[str]:
        """Return the addresses of the workers."""
        return set(self._ask(self._client.nthreads, ANSWER))

    def _await(self, future: Future[Any]) -> None:
        """Wait until a future is done, and raise its error if it has one."""
        from distributed import KilledWorker

        while True:
            with as_pass_lost():
                try:
                    error = future.exception(timeout=LOOK)
                    break
                except TimeoutError:
                    self._await_worker()
        if future.cancelled():
            raise PassLost("shared data or the connection was lost")
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
            self._ask(self._wait_for_worker, RETURN + ANSWER)
        except NoWorker:
            raise EngineError(
                f"The Dask cluster at {self._address} has had no worker for {RETURN} seconds. Start one: "
                f"dask worker {self._address}"
            ) from None
        except (OSError, RuntimeError):
            raise EngineError(
                f"The Dask scheduler at {self._address} no longer answers. Start it again and repeat the call. If the "
                "fit has a checkpoint, it continues from its last pass."
            ) from None

    def _wait_for_worker(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=RETURN)
        except TimeoutError as error:
            raise NoWorker from error


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
            own = _start(
                lambda: LocalCluster(
                    n_workers=cores(),
                    threads_per_worker=1,
                    dashboard_address=None,
                    # Dask starts a server even without a dashboard, and warns if the default port is in use.
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                    # Errors are raised here once, so the logs are not needed.
                    silence_logs=logging.CRITICAL,
                )
            )
            stack.callback(_end, own)
            forget_errors(own)
            address = own.scheduler_address
        yield stack.enter_context(Cluster(address))


@contextmanager
def as_pass_lost() -> Iterator[None]:
    """Turn the errors of Dask for lost connections or data into PassLost."""
    from distributed import CancelledError

    try:
        yield
    except (OSError, RuntimeError, CancelledError) as error:
        raise PassLost(str(error)) from error


def _close(client: Client) -> None:
    """Close a client, also if its scheduler is gone."""
    with suppress(OSError, RuntimeError, AssertionError):
        client.close(timeout=LOOK)


def _start(make: Callable[[], LocalCluster]) -> LocalCluster:
    """Return an own cluster. If this process is interrupted while it starts, it is ended first.

    Otherwise its processes would end later than this one, with warnings of Python.
    """
    starting = Call(make)
    try:
        while not starting.ended(WAKE):
            pass
    except BaseException:
        if starting.ended(RETURN):
            with suppress(Exception):
                _end(starting.result())
        raise
    return starting.result()


def _end(own: LocalCluster) -> None:
    """End the processes of an own cluster. They also end with this process."""
    with suppress(OSError, RuntimeError):
        within(END, own.close)


def pickled_size(value: object) -> int:
    """Return the number of bytes of a value as it is sent. Arrays are not copied for this."""
    from distributed.protocol.pickle import dumps

    arrays: list[Any] = []
    head: bytes = dumps(value, buffer_callback=arrays.append)
    return len(head) + sum(int(array.raw().nbytes) for array in arrays)


def same(value: T) -> T:
    """Return the value: a task that puts shared data on a worker."""
    return value


def one_on_worker(task: Callable[..., T], item: Any, *shared: Any) -> T:
    """Compute one result with one BLAS thread, because the worker runs several tasks in parallel."""
    with one_blas_thread:
        return task(item, *shared)


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

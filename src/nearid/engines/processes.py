"""Independent tasks in separate processes. If one fails or dies, the others continue."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from nearid.engines.base import Failure

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

T = TypeVar("T")

# One thread per process, because there is one process per core.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SAFE_PATH = "PYTHONSAFEPATH"
# Seconds to wait for a process to end.
END = 5


def in_processes(
    task: Callable[[Any], T], items: Sequence[Any], workers: int, begun: Callable[[int], object] | None = None
) -> Generator[tuple[int, T | Failure], None, None]:
    """Run task(item) in at most `workers` processes, and yield the position and result of each item when it is done.

    The processes are spawned, not forked, because a fork of a process with threads, such as those of torch, may hang.
    """
    waiting = deque(range(len(items)))
    running: dict[Connection, tuple[SpawnProcess, int]] = {}

    # The user's script is not run again in the processes, unless the tasks are defined in it.
    alone = task.__module__ != "__main__" and all(type(item).__module__ != "__main__" for item in items)

    def give(pipe: Connection, process: SpawnProcess) -> None:
        place = waiting.popleft()
        running[pipe] = process, place
        if begun:
            begun(place)
        try:
            pipe.send((task, items[place]))
        except BrokenPipeError:
            # The process died before its task. The closed pipe is handled below.
            return

    try:
        while waiting or running:
            while waiting and len(running) < workers:
                give(*_start(alone))
            ready = wait(list(running))
            for pipe in [p for p in running if p in ready]:
                process, place = running.pop(pipe)
                try:
                    result = pipe.recv()
                except (EOFError, ConnectionResetError):
                    process.join()
                    pipe.close()
                    result = Failure(_death(process.exitcode))
                else:
                    if waiting:
                        give(pipe, process)
                    else:
                        _end(pipe, process)
                yield place, result
    finally:
        for pipe, (process, _) in running.items():
            process.terminate()
            _end(pipe, process)


def attempt(task: Callable[[Any], T], item: Any) -> T | Failure:
    """Return the result of a task, or a Failure."""
    from nearid.engines.local import one_blas_thread

    try:
        with one_blas_thread:
            return task(item)
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> Failure:
    """Return an error as a Failure with its message and traceback."""
    words = "".join(traceback.format_exception_only(error)).strip()
    return Failure(words, "".join(traceback.format_exception(error)))


def _start(alone: bool) -> tuple[Connection, SpawnProcess]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with no_working_folder(), _no_main() if alone else nullcontext():
        process.start()
    # Only the child process may hold its end of the pipe, so that its death closes the pipe.
    theirs.close()
    return ours, process


@contextmanager
def no_working_folder() -> Iterator[None]:
    """Prevent processes that are started in this context from importing modules from the working folder.

    A spawned Python process searches the working folder first, before it gets the paths of its parent.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


@contextmanager
def _no_main() -> Iterator[None]:
    """Prevent a process that is started in this context from importing the main module.

    Python would import it as __mp_main__. A script without `if __name__ == "__main__"` would then run from its
    beginning and try to start processes itself.
    """
    main = sys.modules["__main__"].__dict__
    hidden: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        main.update(hidden)


def _end(pipe: Connection, process: SpawnProcess) -> None:
    pipe.close()
    process.join(END)
    if process.is_alive():
        process.kill()
        process.join()


def _serve(pipe: Connection) -> None:
    """Run tasks until the pipe is closed."""
    # Ctrl-C reaches all processes of a terminal, but the parent decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    # The output of a task must not be mixed into the result on stdout.
    os.dup2(2, 1)
    Thread(target=_leave_with_parent, daemon=True).start()
    while True:
        try:
            task, item = pipe.recv()
            result = attempt(task, item)
        except EOFError:
            return
        except Exception as error:
            # The task cannot be imported here.
            result = failure(error)
        try:
            pipe.send(result)
        except BrokenPipeError:
            return
        except Exception as error:
            # The result cannot be pickled.
            pipe.send(failure(error))


def _leave_with_parent() -> None:
    """End this process when its parent was killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _death(code: int | None) -> str:
    killed = " (killed, perhaps because memory ran out)" if code == -9 else ""
    return f"Its process ended without a result: exit code {code}{killed}."

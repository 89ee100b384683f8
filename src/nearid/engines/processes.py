"""Independent tasks in processes of their own: one that fails or dies takes no other with it."""

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

# As many processes as cores: more threads would only fight over them.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SAFE_PATH = "PYTHONSAFEPATH"
# Seconds that a process is given to end.
END = 5


def in_processes(
    task: Callable[[Any], T], items: Sequence[Any], workers: int, begun: Callable[[int], object] | None = None
) -> Generator[tuple[int, T | Failure], None, None]:
    """Run task(item) in at most `workers` processes; give the place and result of each item as it is done.

    The processes are spawned, not forked: a fork of a process with threads may hang, and torch has threads.
    """
    waiting = deque(range(len(items)))
    running: dict[Connection, tuple[SpawnProcess, int]] = {}

    # A script of the user's is not run again in the processes, unless the tasks are defined in it.
    alone = task.__module__ != "__main__" and all(type(item).__module__ != "__main__" for item in items)

    def give(pipe: Connection, process: SpawnProcess) -> None:
        place = waiting.popleft()
        running[pipe] = process, place
        if begun:
            begun(place)
        try:
            pipe.send((task, items[place]))
        except BrokenPipeError:
            # It died before its task; the end of its pipe tells below.
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
    """The result of a task, or what went wrong."""
    from nearid.engines.local import one_blas_thread

    try:
        with one_blas_thread:
            return task(item)
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> Failure:
    """An error in words."""
    words = "".join(traceback.format_exception_only(error)).strip()
    return Failure(words, "".join(traceback.format_exception(error)))


def _start(alone: bool) -> tuple[Connection, SpawnProcess]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with no_working_folder(), _no_main() if alone else nullcontext():
        process.start()
    # Only the process may hold its end, so that its death closes the pipe.
    theirs.close()
    return ours, process


@contextmanager
def no_working_folder() -> Iterator[None]:
    """Let processes that are started meanwhile not import modules from files that happen to lie here.

    A process that Python spawns looks into the working folder first, before it gets the paths of its parent.
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
    """Let a process that is started meanwhile not import the main module.

    Python would import it there as __mp_main__: a script without `if __name__ == "__main__"` would run from its
    beginning, and try to start processes of its own.
    """
    main = sys.modules["__main__"].__dict__
    hidden = {name: main[name] for name in ("__file__", "__spec__") if name in main}
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
    """Work off tasks until the pipe is closed."""
    # Ctrl-C reaches all processes of a terminal; the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    # What a task prints must not come between the lines of a result on stdout.
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
    """A parent that was killed leaves nobody to work for."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _death(code: int | None) -> str:
    killed = " (killed, perhaps for want of memory)" if code == -9 else ""
    return f"Its process ended without a result: exit code {code}{killed}."

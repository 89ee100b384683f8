"""Connecting to a Dask scheduler: waits that end, errors for addresses where none answers, and quiet logs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from nearid.base.errors import EngineError, brief

T = TypeVar("T")

# Loggers that distributed configures, and those that report errors inside of its event loop.
LOGGERS = ("distributed", "tornado.application", "asyncio")


class Call(Generic[T]):
    """A call that runs in a thread of its own, which nobody has to wait for."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._answer: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        self._found: tuple[T | None, BaseException | None] | None = None

        def run() -> None:
            try:
                self._answer.put((call(), None))
            except BaseException as error:
                self._answer.put((None, error))

        Thread(target=run, daemon=True).start()

    def ended(self, seconds: float) -> bool:
        """Return whether the call has ended, after waiting at most so many seconds."""
        if self._found is None:
            with suppress(Empty):
                self._found = self._answer.get(timeout=seconds)
        return self._found is not None

    def result(self) -> T:
        """Return the result of a call that has ended, or raise its error."""
        assert self._found is not None
        result, error = self._found
        if error is not None:
            raise error
        return result  # type: ignore[return-value]


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call, or raise a TimeoutError. The call then goes on in a thread that nobody waits for."""
    asked = Call(call)
    if not asked.ended(seconds):
        raise TimeoutError(f"no answer for {seconds:g} seconds")
    return asked.result()


def check_scheduler(address: str, seconds: float) -> None:
    """Raise an error unless a Dask scheduler answers at an address in time.

    A client of Dask waits for ever for the greeting of a server that is silent, and takes the answer of a web server
    for the size of an array.
    """
    try:
        # The search for a host name cannot be cancelled, so the thread may take longer than its own limit.
        found = within(seconds + 2, lambda: asyncio.run(_identity(address, seconds)))
    except TimeoutError:
        raise unreachable(address, "a server accepts the connection, but does not answer") from None
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
        # Such as a wrong port, or a protocol that needs certificates or another package.
        raise unreachable(address, brief(error)) from None
    except Exception as error:
        # Whatever reading the message of another protocol may raise, such as a MemoryError for its supposed size. The
        # cause is kept, as it may be another one.
        raise unreachable(address, "another kind of server answers") from error
    kind = found.get("type") if isinstance(found, dict) else None
    if kind != "Scheduler":
        raise unreachable(address, f"a Dask {str(kind).lower()} answers" if kind else "another kind of server answers")


async def _identity(address: str, seconds: float) -> Any:
    """Return what the server at an address says about itself."""
    from distributed import Security
    from distributed.core import rpc

    arguments = Security().get_connection_args("client")

    async def ask() -> Any:
        # Connecting ends first, so that the reason is known.
        async with rpc(address, timeout=0.8 * seconds, connection_args=arguments) as server:
            return await server.identity()

    return await asyncio.wait_for(ask(), seconds)


def unreachable(address: str, reason: object) -> EngineError:
    """Return the error for an address at which no scheduler answers."""
    return EngineError(
        f"No Dask scheduler can be reached at {address} ({reason}). Check the address, which `dask scheduler` prints "
        "when it starts, for example tcp://127.0.0.1:8786."
    )


def forget_errors(own: Any) -> None:
    """Let the event loop of an own client or cluster of Dask not report lost connections that nobody waits for.

    They are reported when Python removes them from memory, perhaps after the logs are no longer quiet. Other errors are
    reported as usual.
    """

    def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # Time limits and closed connections of Dask are of this class, too.
        if not isinstance(context.get("exception"), OSError):
            loop.default_exception_handler(context)

    own.loop.asyncio_loop.set_exception_handler(report)


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Silence what Dask logs in this process. nearid says the same in one sentence, as an error."""
    below = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    loggers = [logging.getLogger(name) for name in (*LOGGERS, *below)]
    before = [(logger, logger.level) for logger in loggers]
    for logger, level in before:
        # Loggers without a level of their own follow those above them.
        if level or logger.name in LOGGERS:
            logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)

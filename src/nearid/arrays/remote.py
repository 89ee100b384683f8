"""Bytes of objects at addresses such as s3://bucket/rows.npy, read in ranges, with a bound on attempts and time."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar

from nearid.base.addresses import public
from nearid.base.errors import InputError, ReadError

T = TypeVar("T")

# What must be installed to read each protocol.
PACKAGES = {
    "s3": "'nearid[remote]'",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "https": "'nearid[remote]'",
    "http": "'nearid[remote]'",
    "memory": "'nearid[remote]'",
}
# A request is made at most so many times. Each attempt may take so many seconds, and longer for large ranges: a server
# that sends fewer bytes per second is treated as one that does not answer.
ATTEMPTS, SECONDS, SLOWEST = 3, 10.0, 250_000
# Seconds before the second attempt. The pause doubles with every attempt.
PAUSE = 0.5
# Requests for scattered ranges that run at once.
AT_ONCE = 16
# Ranges with at most so many bytes between them are one request, because the bytes arrive sooner than the answer to
# another request would. A request is for at most TOGETHER bytes of them.
GAP, TOGETHER = 1 << 16, 4 << 20


class State(NamedTuple):
    """Size of an object in bytes, and a mark that changes with its contents."""

    size: int
    mark: str


class NoSuchObject(InputError):
    """There is nothing at an address."""


def protocol_of(address: str) -> str:
    """Return the protocol of an address, such as "s3"."""
    return address.partition("://")[0]


def can_list(address: str) -> bool:
    """Return whether the objects below an address can be listed. Web servers have no common way to do so."""
    return protocol_of(address) not in ("http", "https")


def state_of(address: str) -> State:
    """Return the size and the mark of an object."""
    if not can_list(address):
        return _http(address, 0, 1)[1]
    return _state(_call(address, 0, "info", _inner(address)))


def read(address: str, start: int, stop: int) -> bytes:
    """Return the bytes `start` to `stop` of an object. Only this range is transferred."""
    if stop <= start:
        return b""
    if not can_list(address):
        return _http(address, start, stop)[0]
    got: bytes = _call(address, stop - start, "cat_file", _inner(address), start=start, end=stop)
    if len(got) != stop - start:
        raise ReadError(f"{public(address)} ended before byte {stop}. Write or copy it again.")
    return got


def read_into(address: str, parts: Iterable[tuple[int, memoryview]]) -> None:
    """Fill each target from its offset on. Targets that are near each other are read in one request.

    Some requests run at once, because most of their time is spent waiting.
    """
    groups = _near(sorted(parts, key=lambda part: part[0]))

    def fill(group: Sequence[tuple[int, memoryview]]) -> None:
        first = group[0][0]
        got = memoryview(read(address, first, max(at + len(target) for at, target in group)))
        for at, target in group:
            target[:] = got[at - first : at - first + len(target)]

    if len(groups) == 1:
        fill(groups[0])
        return
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(fill, groups):
            pass


def _near(parts: Sequence[tuple[int, memoryview]]) -> list[list[tuple[int, memoryview]]]:
    """Return sorted parts in groups, each of which is one request."""
    groups: list[list[tuple[int, memoryview]]] = []
    first = end = 0
    for at, target in parts:
        stop = at + len(target)
        if not groups or at > end + GAP or stop > first + TOGETHER:
            groups.append([])
            first = end = at
        groups[-1].append((at, target))
        end = max(end, stop)
    return groups


def read_whole(address: str, size: int) -> bytes:
    """Return a small object, such as a chunk. `size` is the number of bytes that the time limit is made for."""
    if not can_list(address):
        return _http(address, None, size)[0]
    # Without this, s3fs requests the size of every object before its bytes.
    options = {"max_concurrency": 1} if protocol_of(address) == "s3" else {}
    got: bytes = _call(address, size, "cat_file", _inner(address), **options)
    return got


def names_below(address: str) -> list[str]:
    """Return the names of objects and folders directly below an address; an empty list if there are none."""
    try:
        held = _call(address, 0, "ls", _inner(address), detail=False)
    except NoSuchObject:
        return []
    return [str(each).rstrip("/").rpartition("/")[2] for each in held]


def states_below(address: str, count: int) -> dict[str, State]:
    """Return the states of all objects below an address, by their names relative to it. About `count` are expected."""
    base = _inner(address).rstrip("/") + "/"
    try:
        # Stores list about a thousand objects per answer.
        held = _call(address, count // 1000 * SLOWEST, "find", base.rstrip("/"), detail=True)
    except NoSuchObject:
        return {}
    return {name.removeprefix(base): _state(info) for name, info in held.items()}


def _state(info: dict[str, Any]) -> State:
    marks = ("ETag", "etag", "LastModified", "updated", "mtime", "created")
    mark = next((info[key] for key in marks if key in info), "")
    # A listing may give the time in seconds, and the object itself a date.
    mark = mark.timestamp() if isinstance(mark, datetime) else mark
    return State(int(info.get("size") or 0), str(mark).strip('"'))


def _inner(address: str) -> str:
    """Return the address as its file system spells it: without the protocol."""
    inner = address.partition("://")[2]
    return f"/{inner}" if protocol_of(address) == "memory" else inner


def _filesystem(address: str) -> Any:
    protocol = protocol_of(address)
    if protocol not in PACKAGES:
        raise InputError(
            f"{public(address)} begins with {protocol}://, which nearid cannot read. It reads addresses that begin "
            f"with {', '.join(f'{known}://' for known in PACKAGES)}, and paths on this machine."
        )
    try:
        # A file system belongs to the process that made it, because a fork does not copy its thread.
        return _made(protocol, os.getpid())
    except ImportError:
        raise InputError(
            f"Reading {public(address)} needs packages that are not installed: pip install {PACKAGES[protocol]}"
        ) from None


@cache
def _made(protocol: str, _process: int) -> Any:
    import fsspec

    options: dict[str, Any] = {}
    if protocol == "s3" and "config_kwargs" not in fsspec.config.conf.get("s3", {}):
        # Attempts are counted here only. Otherwise each would be several attempts of two libraries below.
        options["config_kwargs"] = {"retries": {"total_max_attempts": 1}}
    # Not an instance that others share, because its attempts are changed, and without a cache of listings, because
    # objects may change.
    system = fsspec.filesystem(protocol, skip_instance_cache=True, use_listings_cache=False, **options)
    if protocol == "s3":
        system.retries = 1
    return system


def _call(address: str, size: int, method: str, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a method of the file system, whose answer has about `size` bytes."""
    system = _filesystem(address)

    def once(limit: float) -> Any:
        if not system.async_impl:
            return getattr(system, method)(*args, **kwargs)
        return _within(system, limit, getattr(system, f"_{method}")(*args, **kwargs))

    return _attempted(address, size, once)


def _within(system: Any, limit: float, work: Any) -> Any:
    """Return the result of a coroutine on the thread of a file system, cancelled after `limit` seconds."""
    # Loaded here, because most runs read only files, and their errors should come at once.
    import asyncio

    future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, limit), system.loop)
    # Longer than the limit above, in case the work does not react to being cancelled.
    return future.result(limit + SECONDS)


def _attempted(address: str, size: int, once: Callable[[float], T]) -> T:
    limit = SECONDS + size / SLOWEST
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            return once(limit)
        except (InputError, MemoryError):
            raise
        except FileNotFoundError:
            raise NoSuchObject(f"There is no {public(address)}. Check the address.") from None
        except PermissionError as error:
            raise InputError(f"{_refused(address)} ({_reason(error)}).") from None
        except TimeoutError:
            reason = f"no complete answer within {limit:.0f} seconds"
        except Exception as error:  # The libraries below raise errors of many types, which share no base class.
            if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
                raise InputError(f"{_refused(address)} (no credentials were found).") from None
            reason = _reason(error)
    raise ReadError(
        f"{public(address)} could not be read in {ATTEMPTS} attempts: {reason}. Check the address and the network, and "
        "repeat the call."
    )


def _refused(address: str) -> str:
    how = {
        "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_ENDPOINT_URL for a store other than Amazon's). "
        "For a public bucket set FSSPEC_S3_ANON=true",
        "gs": "Set GOOGLE_APPLICATION_CREDENTIALS",
    }
    return f"{public(address)} refuses access. {how.get(protocol_of(address), 'Check the address')}"


def _reason(error: BaseException) -> str:
    lines = public(str(error)).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(". ")


def _http(address: str, start: int | None, stop: int) -> tuple[bytes, State]:
    """Return a range of bytes, or everything if `start` is None, with the state of the object.

    fsspec's own method is not used: it asks with HEAD, which signed addresses refuse, and takes the beginning of the
    file for the range if the server ignores ranges.
    """
    system = _filesystem(address)

    async def get() -> tuple[bytes, State]:
        session = await system.set_session()
        # A compressed answer would have other bytes at these places.
        headers = {"Accept-Encoding": "identity"} | ({} if start is None else {"Range": f"bytes={start}-{stop - 1}"})
        async with session.get(system.encode_url(address), headers=headers) as answer:
            if answer.status in (404, 410):
                raise FileNotFoundError
            if answer.status in (401, 403):
                raise PermissionError(f"status {answer.status}")
            if answer.status == 416 and start == 0:
                return b"", State(0, "")
            if answer.status not in (200, 206):
                raise OSError(f"the server answered with status {answer.status}")
            mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
            if start is None:
                whole = await answer.read()
                return whole, State(len(whole), mark)
            place = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers.get("Content-Range", "").strip())
            if answer.status != 206 or place is None:
                raise InputError(
                    f"The server of {public(address)} does not send parts of files (HTTP range requests), so nearid "
                    "would have to transfer the whole file for every block. Download the file, and give its path."
                )
            first, last, total = map(int, place.groups())
            if (first, last) != (start, min(stop, total) - 1):
                raise OSError(f"the server sent bytes {first} to {last} instead of {start} to {stop - 1}")
            # At most the range: whatever else a server sends is left unread.
            body = await answer.content.readexactly(last + 1 - first)
            if last + 1 < stop and stop > 1:
                raise InputError(f"{public(address)} ended before byte {stop}. Write or copy it again.")
            return body, State(total, mark)

    size = stop - (start or 0)

    def once(limit: float) -> tuple[bytes, State]:
        got: tuple[bytes, State] = _within(system, limit, get())
        return got

    return _attempted(address, size, once)

"""Downloading one file: it goes on where it stopped, and only what was promised is kept.

pooch throws a partial file away when a transfer fails, and sets of many gigabytes need better. So the transfer is made
here, over requests, which pooch brings; of pooch itself only the place of the cache is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.files import write_text
from nearid.base.limits import readable
from nearid.base.progress import Progress, silent
from nearid.lab.data.base import RemoteFile

if TYPE_CHECKING:
    import requests

MB = 1_000_000
# Bytes that are asked for at a time: what a broken connection has sent of the last such block is lost.
BLOCK = 1 << 16
# Seconds to wait for a connection, and for the next bytes.
PATIENCE = (15.0, 60.0)
# Times that a broken transfer is taken up again before the user is asked to, and seconds before the first.
ATTEMPTS = 4
PAUSE = 1.0


class Unreachable(InputError):
    """No server answered: there may be no network."""


class _Broken(Exception):
    """The transfer failed, and may succeed when it is tried again."""


class _Silent(_Broken):
    """It failed before any answer."""


def download(
    file: RemoteFile, target: Path, *, progress: Progress = silent, say: Callable[[str], object] = lambda text: None
) -> None:
    """Download a file to `target`, which appears once it is whole and its checksum is right.

    What has arrived is kept beside it, in a file that ends in .part: after an interruption the next call goes on there,
    if the server still has the same file.
    """
    part = part_of(target)
    for attempt in range(ATTEMPTS):
        resumed = _size(part) > 0
        try:
            _transfer(file, part, progress, say)
        except _Broken as error:
            if attempt == ATTEMPTS - 1:
                kept = f"{readable(_size(part))} are kept; run the same command again to go on."
                if isinstance(error, _Silent):
                    said = f"{file.name} could not be downloaded from {file.url}: {error}."
                    raise Unreachable(f"{said} {kept}" if resumed else said) from None
                raise InputError(f"The transfer of {file.name} from {file.url} broke off: {error}. {kept}") from None
            say(f"{file.name}: {error}; trying again")
            time.sleep(PAUSE * 2**attempt)
            continue
        try:
            verify(file, part, file.url)
        except InputError:
            _forget(part)
            if not resumed:
                raise
            # Parts of two different files may have met: once more from the beginning tells.
            say(f"{file.name}: what was put together from parts is not right; beginning anew")
            continue
        os.replace(part, target)
        _forget(part)
        return
    raise InputError(f"{file.name} could not be downloaded from {file.url}. Try again later.")


def part_of(target: Path) -> Path:
    """Where what has arrived is kept until it is whole."""
    return target.with_name(f".{target.name}.part")


def verify(file: RemoteFile, path: Path, origin: object) -> None:
    """Refuse a file that is not the one that is described; what it came from, an address or a path, is blamed."""
    if file.size is not None and _size(path) != file.size:
        raise InputError(f"{origin} has {_size(path)} bytes, but {file.name} has {file.size}: it is another file.")
    if file.checksum is None:
        _refuse_damage(file, path, origin)
        return
    kind, _, expected = file.checksum.partition(":")
    try:
        with open(path, "rb") as held:
            found = hashlib.file_digest(held, kind).hexdigest()
    except OSError as error:
        raise InputError(f"{path} could not be read: {error.strerror or error}.") from None
    if found != expected:
        raise InputError(
            f"{origin} has the {kind} {found}, but {expected} is published for {file.name} ({file.checked_by}). It was "
            "damaged or changed, and is not used."
        )


def _refuse_damage(file: RemoteFile, path: Path, origin: object) -> None:
    """Refuse what plainly is not of the kind that its name says, such as a page that asks for something, or a half."""
    if file.members:
        # Unpacking it tells.
        return
    with damage_told(str(origin), f"{Path(file.name).suffix} file", "It is not used."):
        if file.name.endswith((".zip", ".npz")):
            zipfile.ZipFile(path).close()
        elif file.name.endswith(".pickle"):
            with open(path, "rb") as held:
                first = held.read(1)
                held.seek(-1, os.SEEK_END)
                if (first, held.read()) != (pickle.PROTO, pickle.STOP):
                    raise InputError(f"{origin} does not begin and end as a pickle does. It is not used.")


def _transfer(file: RemoteFile, part: Path, progress: Progress, say: Callable[[str], object]) -> None:
    """Bring the part to its full size."""
    import requests
    from urllib3.exceptions import ProtocolError, ReadTimeoutError, SSLError

    have, known = _size(part), _note(part)
    if have and known.get("url") != file.url:
        _forget(part)
        have = 0
    if have and have == known.get("total"):
        return
    # Bytes as they are: a length or a range of something compressed on the way would mean something else.
    headers = {"Accept-Encoding": "identity", "User-Agent": "nearid"}
    if have:
        headers |= {"Range": f"bytes={have}-"} | ({"If-Range": known["tag"]} if known.get("tag") else {})
    answered = False
    try:
        with requests.get(file.url, headers=headers, stream=True, timeout=PATIENCE) as response:
            answered = True
            if response.status_code == 416:
                _forget(part)
                raise _Broken("the server has a shorter file than before")
            begin, total = _agreed(file, response, have)
            if have and begin and total != known.get("total"):
                _forget(part)
                raise _Broken("the server has another file than before")
            if begin:
                say(f"{file.name}: going on after {readable(begin)}")
            else:
                _forget(part)
                tag = response.headers.get("ETag", "")
                # A weak tag does not promise the same bytes.
                note = {"url": file.url, "tag": "" if tag.startswith("W/") else tag, "total": total}
                write_text(_note_path(part), json.dumps(note))
            _check_room(file, part, (total or 0) - begin)
            _receive(file, response, part, begin, total, progress)
    # The libraries' own texts speak of their insides.
    except (ProtocolError, ReadTimeoutError, SSLError):
        raise _Broken("the connection was lost") from None
    except (requests.ConnectionError, requests.Timeout) as error:
        raise (_Broken("the connection was lost") if answered else _Silent(_silence(file, error))) from None
    except requests.RequestException as error:
        raise InputError(f"{file.url} could not be asked for ({type(error).__name__}).") from None


def _agreed(file: RemoteFile, response: requests.Response, have: int) -> tuple[int, int | None]:
    """Byte at which the answer begins, and the size of the whole file if it is known."""
    status = response.status_code
    if status >= 500 or status == 429:
        raise _Broken(f"the server answers {status} {response.reason}")
    if status not in (200, 206):
        hint = file.note or "Look at the home page of the data set: nearid data list --json tells it."
        raise InputError(f"{file.url} gives {status} {response.reason}. Is the address still right? {hint}")
    if status == 206:
        told = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if told is None or int(told[1]) != have:
            raise InputError(f"{file.url} answers with another part than the one that was asked for.")
        begin, length = have, told[2]
    else:
        begin, length = 0, response.headers.get("Content-Length", "")
    total = int(length) if length.isdigit() else file.size
    if file.size not in (None, total):
        raise InputError(
            f"{file.url} offers {total} bytes, but {file.name} has {file.size}: it is another file, or a page that "
            "asks for something. Open the address in a browser to see."
        )
    return begin, total


def _receive(
    file: RemoteFile, response: requests.Response, part: Path, begin: int, total: int | None, progress: Progress
) -> None:
    tick = progress(f"{file.name} (MB)", -(-(total or MB) // MB))
    have, shown = begin, 0
    with open(part, "ab") as out:
        # As they come, even where the server calls a .gz file its encoding of another: it is the .gz that is wanted.
        for block in response.raw.stream(BLOCK, decode_content=False):
            have += len(block)
            if total is not None and have > total:
                _forget(part)
                raise InputError(f"{file.url} sends more than the {total} bytes that were told. It is not used.")
            out.write(block)
            while shown < have // MB:
                tick()
                shown += 1
        out.flush()
        os.fsync(out.fileno())
    if total is not None and have < total:
        raise _Broken(f"the server stopped after {have} of {total} bytes")


def _check_room(file: RemoteFile, part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise InputError(
            f"{file.name} needs {readable(needed)} more, but {readable(free)} are free in {part.parent}. Make room, or "
            "put the cache elsewhere (on Linux XDG_CACHE_HOME says where)."
        )


def _silence(file: RemoteFile, error: requests.RequestException) -> str:
    """Why there was no answer."""
    import requests

    host = urlsplit(file.url).hostname
    if isinstance(error, requests.exceptions.ProxyError):
        return f"the proxy gives no connection to {host}"
    if isinstance(error, requests.exceptions.SSLError):
        return f"no safe connection to {host} can be made: its certificate is not accepted"
    if isinstance(error, requests.Timeout):
        return f"{host} does not answer"
    return f"there is no connection to {host}"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _note_path(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _note(part: Path) -> dict[str, Any]:
    """What is known about a part: the address, the server's tag and the size of the whole."""
    try:
        note = json.loads(_note_path(part).read_text())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note_path(part).unlink(missing_ok=True)

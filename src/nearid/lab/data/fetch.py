"""Getting a data set into the cache: download it or take files that are here, check, unpack, and put it in place.

pooch makes the transfer and the checksum. Where a transfer fails, what has arrived is kept beside the target in a file
that ends in .part, and the next attempt, or the next call, asks the server for the rest.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.files import alone_in, replacing, write_text
from nearid.base.limits import readable
from nearid.base.progress import Progress, Reporting, reporting, silent
from nearid.lab.data.base import FileSet, RemoteFile
from nearid.lab.data.registry import DOUBTFUL, VARIABLE, cache_folder, find, how_to_get, missing
from nearid.lab.data.unarchive import check_room, unarchive

if TYPE_CHECKING:
    import requests

Say = Callable[[str], object]

UNPACKING = ".unpacking-"
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


def fetch(
    dataset: FileSet,
    *,
    given: tuple[Path, ...] = (),
    again: bool = False,
    progress: Reporting = False,
    say: Say = lambda text: None,
) -> Path:
    """Folder of a data set, which is downloaded unless it is here.

    Parameters
    ----------
    given : tuple of Path
        Files that were downloaded before, to be used instead of their addresses and of what is here.
    again : bool
        Whether to get anew what is here; it stays until the new is whole.
    progress : bool, default=False
        Draw progress bars on stderr. A function is called with the name of each stage and its number of steps.
    say : callable
        Gets a sentence about each step.
    """
    if not dataset.files:
        raise InputError(f"{dataset.title} comes with scikit-learn: there is nothing to fetch.")
    # First: a given file that does not exist is an error whatever else is here.
    sources = _matched(dataset, given)
    folder, here = cache_folder() / dataset.name, find(dataset)
    if here is not None and not (again or sources):
        say(f"{dataset.title} is here already: {here}. To get it again: nearid data fetch {dataset.name} --again")
        return here
    if here not in (None, folder):
        raise InputError(
            f"{dataset.title} is read from {here}, below the folder {VARIABLE}, and not from the cache. Remove it "
            f"there, or unset {VARIABLE}, before getting it again."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The cache {folder} cannot be made: {error.strerror or error}.") from None
    wanted = [file for file in dataset.files if again or file.name in sources or not _is_in(file, folder)]
    if any(file.by_hand and file.name not in sources for file in wanted):
        raise missing(dataset) if here is None else InputError(f"To get {dataset.title} again, {how_to_get(dataset)}")
    with alone_in(folder), reporting(progress) as stages:
        asked = [file for file in wanted if file.name not in sources and (again or not (folder / file.name).exists())]
        if asked and dataset.name in DOUBTFUL:
            say(f"{dataset.title}: {DOUBTFUL[dataset.name].why}")
        try:
            for file in wanted:
                _one(file, folder, sources.get(file.name), again, stages, say)
        except Unreachable as error:
            raise InputError(f"{error} {_without_network(dataset, folder)}") from None
    return folder


def left_behind(dataset: FileSet) -> str:
    """What an interrupted fetch has left, as part of a sentence."""
    size = sum(_size(part_of(cache_folder() / dataset.name / file.name)) for file in dataset.files)
    return f"{readable(size)} are kept; the same command goes on" if size else "nothing was kept"


def _matched(dataset: FileSet, given: tuple[Path, ...]) -> dict[str, Path]:
    """Which given file stands for which of the data set: by name, or the only one for the only one."""
    for path in given:
        if not path.is_file():
            raise InputError(f"There is no file {path} to take {dataset.title} from.")
    names = [file.name for file in dataset.files]
    if len(given) == len(names) == 1:
        return {names[0]: given[0]}
    for path in given:
        if path.name not in names:
            raise InputError(f"{path.name} is not a file of {dataset.title}, which has {', '.join(names)}.")
    return {path.name: path for path in given}


def _without_network(dataset: FileSet, folder: Path) -> str:
    """What to do with the files that are not here yet."""
    lacking = [file for file in dataset.files if not _is_in(file, folder)]
    given = " ".join(f"--from {file.name}" for file in lacking)
    return (
        f"Where there is no network, download {', '.join(file.url for file in lacking)} on another machine, bring what "
        f"you get here and run: nearid data fetch {dataset.name} {given}"
    )


def _is_in(file: RemoteFile, folder: Path) -> bool:
    return all((folder / path).exists() for path in file.paths)


def _one(file: RemoteFile, folder: Path, source: Path | None, again: bool, progress: Progress, say: Say) -> None:
    target = folder / file.name
    if source is not None or again or not target.exists():
        if file.checksum is None:
            say(f"{file.name}: no checksum is published for it, so that its content cannot be checked")
        if source is None:
            say(f"{file.name}: downloading {file.url}")
            download(file, target, progress=progress, say=say)
        else:
            verify(file, source, source)
            if not file.members:
                with open(source, "rb") as held, replacing(target) as out:
                    shutil.copyfileobj(held, out, MB)
    if file.members:
        say(f"{file.name}: unpacking")
        _unpack(file, folder, target if source is None else source, progress)
        if source is None or not (target.exists() and target.samefile(source)):
            target.unlink(missing_ok=True)


def _unpack(file: RemoteFile, folder: Path, archive: Path, progress: Progress) -> None:
    """Unpack beside the place, then rename into it what is looked for: nothing is there by halves."""
    # Of a process that was killed.
    for left in folder.glob(f"{UNPACKING}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=UNPACKING) as temporary:
        new, old = Path(temporary, "new"), Path(temporary, "old")
        new.mkdir()
        unarchive(archive, new, file.members, progress)
        absent = [path for path in file.holds if not (new / path).exists()]
        if absent:
            raise InputError(f"{archive.name} lacks {', '.join(absent)}: it is another archive.")
        for path in file.holds:
            for place in (folder / path, old / path):
                place.parent.mkdir(parents=True, exist_ok=True)
            # A folder that is not empty cannot be renamed over: what is there goes with the temporary folder.
            if (folder / path).exists():
                os.replace(folder / path, old / path)
            os.replace(new / path, folder / path)


def download(file: RemoteFile, target: Path, *, progress: Progress = silent, say: Say = lambda text: None) -> None:
    """Download a file to `target`, which appears once it is whole and its checksum is right."""
    import requests

    part = part_of(target)
    for attempt in range(ATTEMPTS):
        transfer = _Transfer(file, part, progress, say)
        try:
            transfer.run()
        except requests.RequestException as error:
            reason = transfer.reason(error)
            if attempt == ATTEMPTS - 1:
                text = f"{file.name} could not be downloaded from {file.url}: {reason}."
                if _size(part):
                    text += f" {readable(_size(part))} are kept; run the same command again to go on."
                raise (InputError if transfer.answered else Unreachable)(text) from None
            say(f"{file.name}: {reason}; trying again")
            time.sleep(PAUSE * 2**attempt)
            continue
        try:
            verify(file, part, file.url)
        except InputError:
            _forget(part)
            if not transfer.resumed:
                raise
            # Parts of two different files may have met: once more from the beginning tells.
            say(f"{file.name}: the file made of its parts is damaged. The download starts again.")
            continue
        os.replace(part, target)
        _forget(part)
        return
    raise InputError(f"{file.name} could not be downloaded from {file.url}. Try again later.")


class _Transfer:
    """One attempt to bring a part to its full size: it looks at the server's answer, and pooch writes into it."""

    def __init__(self, file: RemoteFile, part: Path, progress: Progress, say: Say) -> None:
        self.file, self.part, self.progress, self.say = file, part, progress, say
        origin = _origin_of(part)
        url, _, self.tag = (origin.read_text(encoding="utf-8") if origin.exists() else "").partition("\n")
        # Without a checksum the server's tag alone tells whether the rest is of the same file.
        same = url == file.url and bool(self.tag or file.checksum)
        self.have = _size(part) if same else 0
        self.total: int | None = None
        self.answered = self.resumed = False

    def run(self) -> None:
        import requests
        from pooch import HTTPDownloader

        if self.have and self.have == self.file.size:
            self.resumed = True
            return
        # Bytes as they are: a length or a range of something compressed on the way would mean something else.
        headers = {"Accept-Encoding": "identity", "User-Agent": "nearid"}
        if self.have:
            headers |= {"Range": f"bytes={self.have}-"} | ({"If-Range": self.tag} if self.tag else {})
        get = HTTPDownloader(chunk_size=BLOCK, headers=headers, timeout=PATIENCE, hooks={"response": self.answer})
        try:
            with open(self.part, "ab" if self.have else "wb") as self.out:
                get(self.file.url, self, None)
                os.fsync(self.out.fileno())
        finally:
            if not _size(self.part):
                _forget(self.part)
        if self.total is not None and _size(self.part) < self.total:
            raise requests.ConnectionError

    def answer(self, response: requests.Response, **_: Any) -> None:
        """Refuse an answer that is not of the file, before its first byte is written."""
        file, status = self.file, response.status_code
        if response.is_redirect:
            return
        self.answered = True
        if status == 416:
            # The server has a shorter file than before.
            self.out.truncate(0)
        if status in (416, 429) or status >= 500:
            # pooch raises them, and they are tried again.
            return
        if status not in (200, 206):
            raise InputError(
                f"{file.url} gives {status} {response.reason}. Is the address still right? Look at the home page of "
                "the data set: nearid data list --json tells it."
            )
        if status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {self.have}-"):
            raise InputError(f"{file.url} sent another part of the file than the one that nearid requested.")
        begin, length = self.have if status == 206 else 0, response.headers.get("Content-Length", "")
        self.total = begin + int(length) if length.isdecimal() else file.size
        if file.size not in (None, self.total):
            raise InputError(
                f"{file.url} offers {self.total} bytes, but {file.name} has {file.size}: it is another file, or a page "
                "that asks for something. Open the address in a browser to see."
            )
        if begin:
            self.say(f"{file.name}: going on after {readable(begin)}")
            self.resumed = True
        else:
            self.out.truncate(0)
            tag = response.headers.get("ETag", "")
            # A weak tag does not promise the same bytes.
            strong = response.headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
            write_text(_origin_of(self.part), f"{file.url}\n{strong}")
        advice = "Make room, or put the cache elsewhere (on Linux XDG_CACHE_HOME says where)."
        check_room(f"The rest of {file.name}", (self.total or 0) - begin, self.part.parent, advice)
        # As they come, even where the server calls a .gz file its encoding of another: it is the .gz that is wanted.
        response.raw.headers.pop("Content-Encoding", None)
        self.tick = self.progress(f"{file.name} (MB)", -(-(self.total or MB) // MB))
        self.shown, self.received = 0, begin

    def write(self, block: bytes) -> None:
        self.out.write(block)
        self.received += len(block)
        while self.shown < self.received // MB:
            self.tick()
            self.shown += 1

    def flush(self) -> None:
        self.out.flush()

    def reason(self, error: requests.RequestException) -> str:
        """Why the transfer failed; the libraries' own texts speak of their insides."""
        from requests import exceptions

        host = urlsplit(self.file.url).hostname
        if isinstance(error, exceptions.HTTPError) and error.response is not None:
            return f"the server answers {error.response.status_code} {error.response.reason}"
        if self.answered:
            return "the connection was lost"
        if isinstance(error, exceptions.ProxyError):
            return f"the proxy gives no connection to {host}"
        if isinstance(error, exceptions.SSLError):
            return f"no safe connection to {host} can be made: its certificate is not accepted"
        return (
            f"{host} does not answer" if isinstance(error, exceptions.Timeout) else f"there is no connection to {host}"
        )


def verify(file: RemoteFile, path: Path, origin: object) -> None:
    """Refuse a file that is not the one that is described; what it came from, an address or a path, is blamed."""
    import pooch

    if file.size is not None and _size(path) != file.size:
        raise InputError(f"{origin} has {_size(path)} bytes, but {file.name} has {file.size}: it is another file.")
    if file.checksum is None:
        _refuse_damage(file, path, origin)
        return
    kind, _, expected = file.checksum.partition(":")
    try:
        digest = pooch.file_hash(str(path), alg=kind)
    except OSError as error:
        raise InputError(f"{path} could not be read: {error.strerror or error}.") from None
    if digest != expected:
        raise InputError(
            f"{origin} has the {kind} {digest}, but {expected} is published for {file.name} ({file.checked_by}). It "
            "was damaged or changed, and is not used."
        )


def _refuse_damage(file: RemoteFile, path: Path, origin: object) -> None:
    """Refuse what plainly is not of the kind that its name says, such as a page that asks for something, or a half."""
    with damage_told(str(origin), f"{Path(file.name).suffix} file", "It is not used."):
        # Unpacking tells it of an archive that is unpacked.
        if file.name.endswith((".zip", ".npz")) and not file.members:
            zipfile.ZipFile(path).close()
        elif file.name.endswith(".pickle"):
            with open(path, "rb") as held:
                first = held.read(1)
                held.seek(-1, os.SEEK_END)
                if (first, held.read()) != (pickle.PROTO, pickle.STOP):
                    raise InputError(f"{origin} does not begin and end as a pickle does. It is not used.")


def part_of(target: Path) -> Path:
    """Where what has arrived is kept until it is whole."""
    return target.with_name(f".{target.name}.part")


def _origin_of(part: Path) -> Path:
    """The file with the address of a part and the server's tag for it."""
    return part.with_name(f"{part.name}.origin")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _origin_of(part).unlink(missing_ok=True)

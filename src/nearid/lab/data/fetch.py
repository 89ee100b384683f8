"""Put a data set into the cache: download it or use local files, check them and unpack them.

pooch transfers the file and computes the checksum. If a transfer fails, the bytes that arrived are kept beside the
target in a file that ends in .part. The next attempt, or the next call, requests the remaining bytes from the server.
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
# Bytes that are read at a time. If the connection breaks, the last incomplete block is lost.
BLOCK = 1 << 16
# Seconds to wait for a connection, and for the next bytes.
PATIENCE = (15.0, 60.0)
# Number of automatic attempts to continue a broken transfer, and seconds before the first attempt.
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
    """Return the folder of a data set; download the data set first if it is not on this machine.

    Parameters
    ----------
    given : tuple of Path
        Files that the user has downloaded. They replace downloads and files that exist already.
    again : bool
        Whether to download the data set even if it exists. The old files stay until the new ones are complete.
    progress : bool, default=False
        Whether to draw progress bars on stderr; or a function that takes the name of a stage and its number of steps.
    say : callable
        Function that is called with a sentence about each step.
    """
    if not dataset.files:
        raise InputError(f"{dataset.title} comes with scikit-learn: there is nothing to fetch.")
    # Checked first: a given file that does not exist is always an error.
    sources = _matched(dataset, given)
    folder, here = cache_folder() / dataset.name, find(dataset)
    if here is not None and not (again or sources):
        say(
            f"{dataset.title} is already on this machine: {here}. To download it again: nearid data fetch "
            f"{dataset.name} --again"
        )
        return here
    if here not in (None, folder):
        raise InputError(
            f"{dataset.title} is read from {here}, below the folder that {VARIABLE} names, and not from the cache. "
            f"Remove it there or unset {VARIABLE}, then run the command again."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The cache folder {folder} cannot be created: {error.strerror or error}.") from None
    wanted = [file for file in dataset.files if again or file.name in sources or not _is_in(file, folder)]
    if any(file.by_hand and file.name not in sources for file in wanted):
        raise missing(dataset) if here is None else InputError(f"To get {dataset.title} again, {how_to_get(dataset)}")
    with alone_in(folder), reporting(progress) as stages:
        missing_files = [
            file for file in wanted if file.name not in sources and (again or not (folder / file.name).exists())
        ]
        if missing_files and dataset.name in DOUBTFUL:
            say(f"{dataset.title}: {DOUBTFUL[dataset.name].why}")
        try:
            for file in wanted:
                _one(file, folder, sources.get(file.name), again, stages, say)
        except Unreachable as error:
            raise InputError(f"{error} {_without_network(dataset, folder)}") from None
    return folder


def left_behind(dataset: FileSet) -> str:
    """How much an interrupted download has kept, as part of a sentence."""
    size = sum(_size(part_of(cache_folder() / dataset.name / file.name)) for file in dataset.files)
    return f"{readable(size)} are kept; run the same command to continue" if size else "nothing was kept"


def _matched(dataset: FileSet, given: tuple[Path, ...]) -> dict[str, Path]:
    """Match given files to files of the data set, by name; a single file matches a data set of one file."""
    for path in given:
        if not path.is_file():
            raise InputError(f"There is no file {path}. It was given with --from for {dataset.title}.")
    names = [file.name for file in dataset.files]
    if len(given) == len(names) == 1:
        return {names[0]: given[0]}
    for path in given:
        if path.name not in names:
            raise InputError(f"{path.name} is not a file of {dataset.title}, which has {', '.join(names)}.")
    return {path.name: path for path in given}


def _without_network(dataset: FileSet, folder: Path) -> str:
    """How to get the missing files on a machine without a network."""
    lacking = [file for file in dataset.files if not _is_in(file, folder)]
    given = " ".join(f"--from {file.name}" for file in lacking)
    return (
        f"Without a network: download {', '.join(file.url for file in lacking)} on another machine, copy the files to "
        f"this machine and run: nearid data fetch {dataset.name} {given}"
    )


def _is_in(file: RemoteFile, folder: Path) -> bool:
    return all((folder / path).exists() for path in file.paths)


def _one(file: RemoteFile, folder: Path, source: Path | None, again: bool, progress: Progress, say: Say) -> None:
    target = folder / file.name
    if source is not None or again or not target.exists():
        if file.checksum is None:
            say(f"{file.name}: no checksum is published, so nearid cannot check its content")
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
    """Unpack into a temporary folder, then rename the expected files into place, so that none is incomplete."""
    # Left by a process that was killed.
    for left in folder.glob(f"{UNPACKING}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=UNPACKING) as temporary:
        new, old = Path(temporary, "new"), Path(temporary, "old")
        new.mkdir()
        unarchive(archive, new, file.members, progress)
        absent = [path for path in file.holds if not (new / path).exists()]
        if absent:
            raise InputError(f"{archive.name} does not contain {', '.join(absent)}: it is a different archive.")
        for path in file.holds:
            for place in (folder / path, old / path):
                place.parent.mkdir(parents=True, exist_ok=True)
            # A folder cannot be renamed onto one that is not empty: move the old one into the temporary folder first.
            if (folder / path).exists():
                os.replace(folder / path, old / path)
            os.replace(new / path, folder / path)


def download(file: RemoteFile, target: Path, *, progress: Progress = silent, say: Say = lambda text: None) -> None:
    """Download a file to `target`, which appears only when it is complete and its checksum is right."""
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
                    text += f" {readable(_size(part))} are kept; run the same command again to continue."
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
            # The parts may be of two versions of the file. Downloading everything again decides.
            say(f"{file.name}: the file made of its parts is damaged. The download starts again.")
            continue
        os.replace(part, target)
        _forget(part)
        return
    raise InputError(f"{file.name} could not be downloaded from {file.url}. Try again later.")


class _Transfer:
    """One attempt to complete a partial file: it checks the server's response, and pooch writes into it."""

    def __init__(self, file: RemoteFile, part: Path, progress: Progress, say: Say) -> None:
        self.file, self.part, self.progress, self.say = file, part, progress, say
        origin = _origin_of(part)
        url, _, self.tag = (origin.read_text(encoding="utf-8") if origin.exists() else "").partition("\n")
        # Without a checksum only the server's tag shows whether the remaining bytes are of the same file.
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
        # No compression in transit: lengths and ranges would then count compressed bytes.
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
        """Refuse a response that is not the file, before its first byte is written."""
        file, status = self.file, response.status_code
        if response.is_redirect:
            return
        self.answered = True
        if status == 416:
            # The file on the server is now shorter.
            self.out.truncate(0)
        if status in (416, 429) or status >= 500:
            # pooch raises these, and the transfer is tried again.
            return
        if status not in (200, 206):
            raise InputError(
                f"{file.url} answered {status} {response.reason}. Is the address still right? Look at the home page "
                f"of the data set; nearid data list --json prints its address."
            )
        if status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {self.have}-"):
            raise InputError(f"{file.url} sent a different part of the file than nearid requested.")
        begin, length = self.have if status == 206 else 0, response.headers.get("Content-Length", "")
        self.total = begin + int(length) if length.isdecimal() else file.size
        if file.size not in (None, self.total):
            raise InputError(
                f"{file.url} offers {self.total} bytes, but {file.name} has {file.size}. It is a different file or a "
                f"web page. Open the address in a browser to see."
            )
        if begin:
            self.say(f"{file.name}: continuing after {readable(begin)}")
            self.resumed = True
        else:
            self.out.truncate(0)
            tag = response.headers.get("ETag", "")
            # A weak tag does not promise the same bytes.
            strong = response.headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
            write_text(_origin_of(self.part), f"{file.url}\n{strong}")
        advice = "Free some space, or move the cache (on Linux: set XDG_CACHE_HOME to another folder)."
        check_room(f"The rest of {file.name}", (self.total or 0) - begin, self.part.parent, advice)
        # Not decoded: some servers declare a .gz file as an encoding, but the .gz file itself is wanted.
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
        """Why the transfer failed, in plain words (the messages of the libraries describe their internals)."""
        from requests import exceptions

        host = urlsplit(self.file.url).hostname
        if isinstance(error, exceptions.HTTPError) and error.response is not None:
            return f"the server answers {error.response.status_code} {error.response.reason}"
        if self.answered:
            return "the connection was lost"
        if isinstance(error, exceptions.ProxyError):
            return f"the proxy refuses a connection to {host}"
        if isinstance(error, exceptions.SSLError):
            return f"no secure connection to {host}: its certificate is not accepted"
        return (
            f"{host} does not answer" if isinstance(error, exceptions.Timeout) else f"there is no connection to {host}"
        )


def verify(file: RemoteFile, path: Path, origin: object) -> None:
    """Refuse a file of the wrong size or checksum; the message names `origin`, its address or path."""
    import pooch

    if file.size is not None and _size(path) != file.size:
        raise InputError(f"{origin} has {_size(path)} bytes, but {file.name} has {file.size}: it is a different file.")
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
            f"{origin} has the {kind} {digest}, but {expected} is published for {file.name} ({file.checked_by}). The "
            f"file is damaged or was changed, so nearid does not use it."
        )


def _refuse_damage(file: RemoteFile, path: Path, origin: object) -> None:
    """Refuse a file that is clearly not of the type that its name says, such as a web page or an incomplete file."""
    with damage_told(str(origin), f"{Path(file.name).suffix} file", "It is not used."):
        # For an archive, unpacking finds damage.
        if file.name.endswith((".zip", ".npz")) and not file.members:
            zipfile.ZipFile(path).close()
        elif file.name.endswith(".pickle"):
            with open(path, "rb") as held:
                first = held.read(1)
                held.seek(-1, os.SEEK_END)
                if (first, held.read()) != (pickle.PROTO, pickle.STOP):
                    raise InputError(f"{origin} does not begin and end as a pickle does. It is not used.")


def part_of(target: Path) -> Path:
    """Path of the partial file: the bytes that arrived so far."""
    return target.with_name(f".{target.name}.part")


def _origin_of(part: Path) -> Path:
    """The file with the address of a part and the server's tag for it."""
    return part.with_name(f"{part.name}.origin")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _origin_of(part).unlink(missing_ok=True)

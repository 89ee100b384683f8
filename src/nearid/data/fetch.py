"""Getting a data set into the cache: download or take a file that is here, check it, unpack it, put it in place."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from nearid.arrays.memory import readable
from nearid.data.base import Dataset, RemoteFile
from nearid.data.download import Unreachable, download, part_of, verify
from nearid.data.extract import extract
from nearid.data.places import cache_folder, find, missing
from nearid.errors import InputError
from nearid.files import alone_in
from nearid.progress import Progress, silent


def fetch(
    dataset: Dataset,
    *,
    given: tuple[Path, ...] = (),
    progress: Progress = silent,
    say: Callable[[str], object] = lambda text: None,
) -> Path:
    """Get a data set, unless it is here already; gives its folder.

    Parameters
    ----------
    dataset : Dataset
    given : tuple of Path
        Files that were downloaded before, to be used instead of their addresses.
    progress : Progress
    say : callable
        Told what is done, in sentences.
    """
    if not dataset.files:
        raise InputError(f"{dataset.title} comes with scikit-learn: there is nothing to fetch.")
    here = find(dataset)
    if here is not None:
        say(f"{dataset.title} is here already: {here}")
        return here
    folder = cache_folder() / dataset.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The cache {folder} cannot be made: {error.strerror or error}.") from None
    sources = _matched(dataset, given)
    if any(file.by_hand and file.name not in sources and not _is_in(file, folder) for file in dataset.files):
        raise missing(dataset)
    with alone_in(folder):
        lacking = [file for file in dataset.files if not _is_in(file, folder)]
        asked = [file for file in lacking if file.name not in sources and not (folder / file.name).exists()]
        # Each once, though it may be said of many files.
        for note in dict.fromkeys(file.note for file in asked if not file.confirmed):
            say(f"{dataset.title}: {note}")
        try:
            for file in lacking:
                _one(file, folder, sources.get(file.name), progress, say)
        except Unreachable as error:
            raise InputError(f"{error}\n{_without_network(dataset, folder)}") from None
    return folder


def _without_network(dataset: Dataset, folder: Path) -> str:
    """What to do with the files that are not here yet."""
    lacking = [file for file in dataset.files if not _is_in(file, folder)]
    given = " ".join(f"--from {file.name}" for file in lacking)
    return (
        f"Where there is no network, download {', '.join(file.url for file in lacking)} on another machine, bring what "
        f"you get here and run: nearid data fetch {dataset.name} {given}"
    )


def left_behind(dataset: Dataset) -> str:
    """What an interrupted fetch has left, as part of a sentence."""
    parts = [part_of(cache_folder() / dataset.name / file.name) for file in dataset.files]
    size = sum(part.stat().st_size for part in parts if part.exists())
    return f"{readable(size)} are kept; the same command goes on" if size else "nothing was kept"


def _is_in(file: RemoteFile, folder: Path) -> bool:
    return all((folder / path).exists() for path in file.paths)


def _one(file: RemoteFile, folder: Path, source: Path | None, progress: Progress, say: Callable[[str], object]) -> None:
    target = folder / file.name
    if not target.exists():
        if file.checksum is None:
            say(f"{file.name}: no checksum is published for it, so that its content cannot be checked")
        if source is None:
            say(f"{file.name}: downloading {file.url}")
            download(file, target, progress=progress, say=say)
        else:
            verify(file, source, source)
            if not file.members:
                _copy(source, target)
    if file.members:
        _unpack(file, folder, target if source is None else source, progress, say)
        target.unlink(missing_ok=True)


def _unpack(file: RemoteFile, folder: Path, archive: Path, progress: Progress, say: Callable[[str], object]) -> None:
    """Unpack beside the place, then rename into it what is looked for: nothing is there by halves."""
    say(f"{file.name}: unpacking")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as temporary:
        new = Path(temporary)
        extract(archive, new, file.members, progress)
        absent = [path for path in file.holds if not (new / path).exists()]
        if absent:
            raise InputError(f"{archive.name} lacks {', '.join(absent)}: it is another archive.")
        for path in file.holds:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(new / path, folder / path)


def _copy(source: Path, target: Path) -> None:
    part = part_of(target)
    try:
        shutil.copyfile(source, part)
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{source} could not be copied to {target.parent}: {error.strerror or error}.") from None


def _matched(dataset: Dataset, given: tuple[Path, ...]) -> dict[str, Path]:
    """Which given file stands for which of the data set: by name, or the only one for the only one."""
    for path in given:
        if not path.is_file():
            raise InputError(f"There is no file {path} to take {dataset.title} from.")
    if len(given) == 1 and len(dataset.files) == 1:
        return {dataset.files[0].name: given[0]}
    names = [file.name for file in dataset.files]
    for path in given:
        if path.name not in names:
            raise InputError(f"{path.name} is not a file of {dataset.title}, which has {', '.join(names)}.")
    return {path.name: path for path in given}

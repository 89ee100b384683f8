"""Getting a data set into the cache: download or take a file that is here, check it, unpack it, put it in place."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from nearid.base.errors import InputError
from nearid.base.files import alone_in
from nearid.base.limits import readable
from nearid.base.progress import Progress, Reporting, reporting
from nearid.lab.data.base import FileSet, RemoteFile
from nearid.lab.data.download import Unreachable, download, part_of, verify
from nearid.lab.data.extract import extract
from nearid.lab.data.places import VARIABLE, cache_folder, find, how_to_get, missing

UNPACKING = ".unpacking-"


def fetch(
    dataset: FileSet,
    *,
    given: tuple[Path, ...] = (),
    again: bool = False,
    progress: Reporting = False,
    say: Callable[[str], object] = lambda text: None,
) -> Path:
    """Get a data set, unless it is here already; gives its folder.

    Parameters
    ----------
    dataset : FileSet
    given : tuple of Path
        Files that were downloaded before, to be used instead of their addresses and of what is here.
    again : bool
        Whether to get anew what is here; it stays until the new is whole.
    progress : bool, default=False
        Draw progress bars on stderr. A function is called with the name of each stage and its number of steps.
    say : callable
        Told what is done, in sentences.
    """
    if not dataset.files:
        raise InputError(f"{dataset.title} comes with scikit-learn: there is nothing to fetch.")
    # First: a file that is not there is told whatever else is here.
    sources = _matched(dataset, given)
    folder = cache_folder() / dataset.name
    here = find(dataset)
    if here is not None and not (again or sources):
        say(f"{dataset.title} is here already: {here}. To get it anew: nearid data fetch {dataset.name} --again")
        return here
    if here not in (None, folder):
        raise InputError(
            f"{dataset.title} is read from {here}, below the folder {VARIABLE}, and not from the cache. Remove it "
            f"there, or unset {VARIABLE}, before getting it anew."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The cache {folder} cannot be made: {error.strerror or error}.") from None
    wanted = [file for file in dataset.files if again or file.name in sources or not _is_in(file, folder)]
    if any(file.by_hand and file.name not in sources for file in wanted):
        raise missing(dataset) if here is None else InputError(f"To get {dataset.title} anew, {how_to_get(dataset)}")
    with alone_in(folder), reporting(progress) as report:
        asked = [file for file in wanted if file.name not in sources and (again or not (folder / file.name).exists())]
        # Each once, though it may be said of many files.
        for note in dict.fromkeys(file.note for file in asked if not file.confirmed):
            say(f"{dataset.title}: {note}")
        try:
            for file in wanted:
                _one(file, folder, sources.get(file.name), again, report, say)
        except Unreachable as error:
            raise InputError(f"{error}\n{_without_network(dataset, folder)}") from None
    return folder


def _without_network(dataset: FileSet, folder: Path) -> str:
    """What to do with the files that are not here yet."""
    lacking = [file for file in dataset.files if not _is_in(file, folder)]
    given = " ".join(f"--from {file.name}" for file in lacking)
    return (
        f"Where there is no network, download {', '.join(file.url for file in lacking)} on another machine, bring what "
        f"you get here and run: nearid data fetch {dataset.name} {given}"
    )


def left_behind(dataset: FileSet) -> str:
    """What an interrupted fetch has left, as part of a sentence."""
    parts = [part_of(cache_folder() / dataset.name / file.name) for file in dataset.files]
    size = sum(part.stat().st_size for part in parts if part.exists())
    return f"{readable(size)} are kept; the same command goes on" if size else "nothing was kept"


def _is_in(file: RemoteFile, folder: Path) -> bool:
    return all((folder / path).exists() for path in file.paths)


def _one(
    file: RemoteFile, folder: Path, source: Path | None, again: bool, progress: Progress, say: Callable[[str], object]
) -> None:
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
                _copy(source, target)
    if file.members:
        _unpack(file, folder, target if source is None else source, progress, say)
        if source is None or not (target.exists() and target.samefile(source)):
            target.unlink(missing_ok=True)


def _unpack(file: RemoteFile, folder: Path, archive: Path, progress: Progress, say: Callable[[str], object]) -> None:
    """Unpack beside the place, then rename into it what is looked for: nothing is there by halves."""
    say(f"{file.name}: unpacking")
    # Of a process that was killed.
    for left in folder.glob(f"{UNPACKING}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=UNPACKING) as temporary:
        new, old = Path(temporary, "new"), Path(temporary, "old")
        new.mkdir()
        extract(archive, new, file.members, progress)
        absent = [path for path in file.holds if not (new / path).exists()]
        if absent:
            raise InputError(f"{archive.name} lacks {', '.join(absent)}: it is another archive.")
        for path in file.holds:
            for parent in (folder / path, old / path):
                parent.parent.mkdir(parents=True, exist_ok=True)
            # A folder that is not empty cannot be renamed over: what is there goes with the temporary folder.
            if (folder / path).exists():
                os.replace(folder / path, old / path)
            os.replace(new / path, folder / path)


def _copy(source: Path, target: Path) -> None:
    copy = target.with_name(f".{target.name}.copy")
    try:
        shutil.copyfile(source, copy)
        os.replace(copy, target)
    except OSError as error:
        raise InputError(f"{source} could not be copied to {target.parent}: {error.strerror or error}.") from None
    finally:
        copy.unlink(missing_ok=True)


def _matched(dataset: FileSet, given: tuple[Path, ...]) -> dict[str, Path]:
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

"""Where data sets are: below NEARID_DATA, then in the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.lab.data.base import FileSet

VARIABLE = "NEARID_DATA"


def cache_folder() -> Path:
    """The folder that data sets are downloaded into, each into one of its own."""
    try:
        import pooch
    except ImportError:
        raise InputError("Data sets are found with pooch. Install it: pip install 'nearid[lab]'") from None
    return Path(pooch.os_cache("nearid")) / "data"


def candidates(dataset: FileSet) -> list[Path]:
    """Folders in which a data set is looked for, in order."""
    roots = [local_path(os.environ[VARIABLE])] if os.environ.get(VARIABLE) else []
    names = (dataset.name, *dataset.folders)
    return [root / name for root in roots for name in names] + [cache_folder() / dataset.name]


def find(dataset: FileSet) -> Path | None:
    """The first folder that holds all of a data set, or None."""
    if not dataset.files:
        return None
    return next((folder for folder in candidates(dataset) if dataset.held(folder) is not None), None)


def locate(dataset: FileSet) -> Path:
    """The folder of a data set; if there is none, the error says how to get it."""
    if not dataset.files:
        raise InputError(f"{dataset.title} comes with scikit-learn and has no folder of its own: just load it.")
    folder = find(dataset)
    if folder is None:
        raise missing(dataset)
    return folder


def missing(dataset: FileSet) -> InputError:
    """The error for a data set that is not here, with the command and addresses that get it."""
    how = how_to_get(dataset)
    return InputError(
        f"{dataset.title} is not here. It was looked for in {', '.join(map(str, candidates(dataset)))}.\n"
        f"{how[0].upper()}{how[1:]}\n"
        f"Or put {_wanted(dataset)} into {dataset.name}/ below a folder, and set {VARIABLE} to that folder."
    )


def how_to_get(dataset: FileSet) -> str:
    """The command and addresses that get a data set, as part of a sentence."""
    if any(file.by_hand for file in dataset.files):
        return (
            f"download {_addresses(dataset)} with a browser, as its host has no plain address for programs, then run: "
            f"nearid data fetch {dataset.name} --from FILE"
        )
    return f"get it from {_addresses(dataset)} with: nearid data fetch {dataset.name}"


def _addresses(dataset: FileSet) -> str:
    return ", ".join(file.url for file in dataset.files)


def _wanted(dataset: FileSet) -> str:
    return ", ".join(path for file in dataset.files for path in file.paths)

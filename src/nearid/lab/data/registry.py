"""All data sets, each declared in the module that reads it, and the folders where nearid looks for them."""

import os
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from nearid.base.errors import InputError, unknown
from nearid.base.files import local_path
from nearid.lab.data.base import FileSet

VARIABLE = "NEARID_DATA"

MODULES = (
    *("dsprites", "shapes3d", "mpi3d", "rooms3d", "cars3d", "smallnorb", "kitti_masks", "ident3d", "mnist", "cifar10"),
    *("digits", "faces", "coil20", "wikitext", "treebank", "cifar10_resnets", "profiles"),
)


class Doubt(NamedTuple):
    """Origin of an address that the source's own page does not give, with a remark."""

    origin: str
    why: str


# No address was tested when this list was written. All come from the sources' own pages or programs, except these.
DOUBTFUL = {
    "mpi3d-complex": Doubt(
        "mirror",
        "The address is a mirror. The source is https://drive.google.com/file/d/1Tp8eTdHxgUMtsZv5uAoYAbJR1BOa_OQm, for "
        "a browser.",
    ),
    "cars3d": Doubt(
        "other programs",
        "The address comes from programs that download the data set. No page of its author was found that gives it.",
    ),
    "3dident": Doubt(
        "other programs", "The authors give the record. The names of the files in it come from the package disent."
    ),
    "mnist": Doubt("mirror", "The address is PyTorch's mirror. The source is http://yann.lecun.com/exdb/mnist/."),
    "faces": Doubt(
        "archive",
        "The original address, http://isomap.stanford.edu/face_data.mat.Z, is gone; this is the Internet Archive's "
        "copy.",
    ),
    "coil20": Doubt(
        "other programs",
        "The address comes from programs that download the data set. The laboratory has moved its pages since; "
        "https://cave.cs.columbia.edu "
        "lists its databases.",
    ),
    "wikitext2": Doubt(
        "other programs",
        "This is the authors' former address, which many programs use. If it does not answer, "
        "https://huggingface.co/datasets/Salesforce/wikitext holds the same text in another format.",
    ),
    "cifar10-resnets": Doubt(
        "guess",
        "The addresses point to files of this kind in the histories of the repositories. The file of DanSun18 may be "
        "from another run. The checksums were computed from local copies, so a different file is refused.",
    ),
}


@cache
def datasets() -> dict[str, FileSet]:
    """All data sets by name, in the order of their modules."""
    modules = [import_module(f"nearid.lab.data.{name}") for name in MODULES]
    declared = [value for module in modules for value in vars(module).values() if isinstance(value, FileSet)]
    return {described.name: described for described in declared}


def dataset(name: str) -> FileSet:
    """A data set by name."""
    if name not in datasets():
        raise InputError(unknown("data set", name, datasets()))
    return datasets()[name]


def address_of(dataset: FileSet) -> str:
    """Where its addresses come from, in one or two words; empty for a data set that comes with a library."""
    if not dataset.files:
        return ""
    if dataset.name in DOUBTFUL:
        return DOUBTFUL[dataset.name].origin
    return "by hand" if any(file.by_hand for file in dataset.files) else "own page"


def cache_folder() -> Path:
    """The cache folder; each data set is downloaded into its own subfolder."""
    try:
        import pooch
    except ImportError:
        raise InputError(
            "The package pooch, which finds the cache, is not installed: pip install 'nearid[lab]'"
        ) from None
    return Path(pooch.os_cache("nearid")) / "data"


def candidates(dataset: FileSet) -> list[Path]:
    """Folders where nearid looks for a data set, in order: below NEARID_DATA, then in the user's cache."""
    roots = [local_path(os.environ[VARIABLE])] if os.environ.get(VARIABLE) else []
    names = (dataset.name, *dataset.folders)
    return [root / name for root in roots for name in names] + [cache_folder() / dataset.name]


def find(dataset: FileSet) -> Path | None:
    """The first folder that holds all of a data set, or None."""
    if not dataset.files:
        return None
    return next((folder for folder in candidates(dataset) if dataset.held(folder) is not None), None)


def locate(dataset: FileSet) -> Path:
    """Return the folder of a data set. If there is none, the error says how to get it."""
    if not dataset.files:
        raise InputError(f"{dataset.title} comes with scikit-learn and has no folder. Load it directly.")
    folder = find(dataset)
    if folder is None:
        raise missing(dataset)
    return folder


def missing(dataset: FileSet) -> InputError:
    """Return the error for a data set that is not on this machine, with the command and addresses to get it."""
    how = how_to_get(dataset)
    paths = ", ".join(path for file in dataset.files for path in file.paths)
    return InputError(
        f"{dataset.title} is not on this machine. nearid looked in {', '.join(map(str, candidates(dataset)))}.\n"
        f"{how[0].upper()}{how[1:]}\n"
        f"Or put {paths} into a folder {dataset.name}/, and set {VARIABLE} to its parent folder."
    )


def how_to_get(dataset: FileSet) -> str:
    """The command and addresses that get a data set, as part of a sentence."""
    addresses = ", ".join(dict.fromkeys(file.url for file in dataset.files))
    if any(file.by_hand for file in dataset.files):
        return (
            f"download {addresses} with a browser (no direct address is known), then run: nearid data "
            f"fetch {dataset.name} --from FILE"
        )
    return f"get it from {addresses} with: nearid data fetch {dataset.name}"

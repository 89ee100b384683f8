"""The data sets there are, each in a file of its own that is loaded when it is asked for."""

from __future__ import annotations

from pkgutil import resolve_name

from nearid.data.base import FileSet
from nearid.errors import InputError, unknown

HOMES = {
    "dsprites": "nearid.data.dsprites:DSPRITES",
    "shapes3d": "nearid.data.shapes3d:SHAPES3D",
    "mpi3d-toy": "nearid.data.mpi3d:TOY",
    "mpi3d-realistic": "nearid.data.mpi3d:REALISTIC",
    "mpi3d-real": "nearid.data.mpi3d:REAL",
    "mpi3d-complex": "nearid.data.mpi3d:COMPLEX",
    "falcor3d": "nearid.data.rooms3d:FALCOR3D",
    "isaac3d": "nearid.data.rooms3d:ISAAC3D",
    "cars3d": "nearid.data.cars3d:CARS3D",
    "smallnorb": "nearid.data.smallnorb:SMALLNORB",
    "kitti-masks": "nearid.data.kitti_masks:KITTI_MASKS",
    "3dident": "nearid.data.ident3d:IDENT3D",
    "mnist": "nearid.data.mnist:MNIST",
    "cifar10": "nearid.data.cifar10:CIFAR10",
    "digits": "nearid.data.digits:DIGITS",
    "faces": "nearid.data.faces:FACES",
    "coil20": "nearid.data.coil20:COIL20",
    "wikitext2": "nearid.data.wikitext:WIKITEXT2",
    "treebank": "nearid.data.treebank:TREEBANK",
    "cifar10-resnets": "nearid.data.cifar10_resnets:CIFAR10_RESNETS",
}


def dataset(name: str) -> FileSet:
    """A data set by name."""
    if name not in HOMES:
        raise InputError(unknown("data set", name, HOMES))
    found: FileSet = resolve_name(HOMES[name])
    return found


def datasets() -> list[FileSet]:
    """All data sets."""
    return [dataset(name) for name in HOMES]

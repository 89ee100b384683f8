"""The data sets there are, each in a file of its own that is loaded when it is asked for."""

from __future__ import annotations

from pkgutil import resolve_name

from nearid.base.errors import InputError, unknown
from nearid.lab.data.base import FileSet

HOMES = {
    "dsprites": "nearid.lab.data.dsprites:DSPRITES",
    "shapes3d": "nearid.lab.data.shapes3d:SHAPES3D",
    "mpi3d-toy": "nearid.lab.data.mpi3d:TOY",
    "mpi3d-realistic": "nearid.lab.data.mpi3d:REALISTIC",
    "mpi3d-real": "nearid.lab.data.mpi3d:REAL",
    "mpi3d-complex": "nearid.lab.data.mpi3d:COMPLEX",
    "falcor3d": "nearid.lab.data.rooms3d:FALCOR3D",
    "isaac3d": "nearid.lab.data.rooms3d:ISAAC3D",
    "cars3d": "nearid.lab.data.cars3d:CARS3D",
    "smallnorb": "nearid.lab.data.smallnorb:SMALLNORB",
    "kitti-masks": "nearid.lab.data.kitti_masks:KITTI_MASKS",
    "3dident": "nearid.lab.data.ident3d:IDENT3D",
    "mnist": "nearid.lab.data.mnist:MNIST",
    "cifar10": "nearid.lab.data.cifar10:CIFAR10",
    "digits": "nearid.lab.data.digits:DIGITS",
    "faces": "nearid.lab.data.faces:FACES",
    "coil20": "nearid.lab.data.coil20:COIL20",
    "wikitext2": "nearid.lab.data.wikitext:WIKITEXT2",
    "treebank": "nearid.lab.data.treebank:TREEBANK",
    "cifar10-resnets": "nearid.lab.data.cifar10_resnets:CIFAR10_RESNETS",
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

"""MPI3D: a robot arm that holds an object, drawn, rendered and photographed; every combination of seven factors."""

import math
from collections.abc import Callable
from pathlib import Path

from nearid.base.errors import InputError
from nearid.lab.data.base import AGAIN, Dataset, FactorInfo, LabelledImages, RemoteFile, grid
from nearid.lab.data.images import NpzImages

HUB = "https://huggingface.co/datasets/waleedgondal/mpi3d/resolve/main"


def _factors(colours: tuple[str, ...], shapes: tuple[str, ...]) -> tuple[FactorInfo, ...]:
    return (
        FactorInfo("object_color", "categorical", len(colours), levels=colours),
        FactorInfo("object_shape", "categorical", len(shapes), levels=shapes),
        FactorInfo("object_size", "integer", 2, levels=("small", "large")),
        FactorInfo("camera_height", "integer", 3, levels=("top", "center", "bottom")),
        FactorInfo("background_color", "categorical", 3, levels=("purple", "sea green", "salmon")),
        # Two joints of the arm over a part of a turn each.
        FactorInfo("horizontal_axis", "integer", 40),
        FactorInfo("vertical_axis", "integer", 40),
    )


SIMPLE = _factors(
    ("white", "green", "red", "blue", "brown", "olive"), ("cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere")
)
EVERYDAY = _factors(("yellow", "green", "olive", "red"), ("coffee-cup", "tennis-ball", "croissant", "beer-cup"))


def _reader(name: str, file: str, factors: tuple[FactorInfo, ...]) -> Callable[[Path, tuple[str, ...]], LabelledImages]:
    def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
        """Open the .npz; the factors follow from the order of the images."""
        images, codes = NpzImages(folder / file, "images"), grid(factors)
        if len(images) != len(codes):
            raise InputError(
                f"{file} has {len(images)} images, but all {len(codes)} combinations of its factors are expected. An "
                f"older file of this name had fewer colours and shapes. {AGAIN}"
            )
        return LabelledImages(name, images, factors, codes)

    return read


def _dataset(kind: str, about: str, file: RemoteFile, factors: tuple[FactorInfo, ...]) -> Dataset:
    name = f"mpi3d-{kind}"
    return Dataset(
        name=name,
        title=f"MPI3D {kind}",
        about=about,
        images=math.prod(factor.size or 1 for factor in factors),
        shape=(64, 64, 3),
        factors=factors,
        files=(file,),
        licence="CC BY 4.0",
        citation="Gondal et al.: On the Transfer of Inductive Bias from Simulation to the Real World, NeurIPS 2019",
        homepage="https://github.com/rr-learning/disentanglement_dataset",
        read=_reader(name, file.name, factors),
    )


def _simple(kind: str, about: str, md5: str) -> Dataset:
    file = RemoteFile(
        f"mpi3d_{kind}.npz",
        f"{HUB}/mpi3d_{kind}.npz",
        checksum=f"md5:{md5}",
        checked_by="the package disent, for the same file at its former address",
    )
    return _dataset(kind, about, file, SIMPLE)


TOY = _simple("toy", "a robot arm, drawn simply", "55889cb7c7dfc655d6e0277beee88868")
REALISTIC = _simple("realistic", "a robot arm, rendered", "59a6225b88b635365f70c91b3e52f70f")
REAL = _simple("real", "a robot arm, photographed", "0f33f609918fb5c97996692f91129802")
COMPLEX = _dataset(
    "complex",
    "a robot arm with everyday objects, photographed",
    RemoteFile(
        "real3d_complicated_shapes_ordered.npz",
        "https://huggingface.co/datasets/randall-lab/mpi3d-complex/resolve/main/real3d_complicated_shapes_ordered.npz",
    ),
    EVERYDAY,
)

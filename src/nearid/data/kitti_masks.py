"""KITTI Masks: outlines of people in street scenes, as short films."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nearid.data.array_pickle import read_arrays
from nearid.data.base import AGAIN, Dataset, FactorInfo, LabelledImages, RemoteFile
from nearid.data.images import ArrayImages
from nearid.errors import InputError

FILE = "kitti_peds_v2.pickle"
FACTORS = (
    FactorInfo("y", "continuous"),
    FactorInfo("x", "continuous"),
    FactorInfo("area", "continuous"),
)


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Read the pickle without running anything that it names; films follow each other, as `sequence` tells."""
    held = read_arrays(folder / FILE)
    if not isinstance(held, dict) or not {"pedestrians", "pedestrians_latents"} <= held.keys():
        raise InputError(f"{FILE} does not hold 'pedestrians' and 'pedestrians_latents'. Is it the canonical file?")
    films, latents = held["pedestrians"], held["pedestrians_latents"]
    if not films or len(films) != len(latents) or not all(_fit(f, z) for f, z in zip(films, latents, strict=True)):
        raise InputError(f"{FILE} has films and latents that do not fit each other. {AGAIN}")
    masks = np.concatenate(films).astype(np.uint8) * np.uint8(255)
    sequence = np.repeat(np.arange(len(films)), [len(film) for film in films])
    table = np.concatenate(latents).astype(np.float64)
    return LabelledImages("kitti-masks", ArrayImages("kitti-masks", masks), FACTORS, table, sequence)


def _fit(film: object, latents: object) -> bool:
    return (
        isinstance(film, np.ndarray)
        and isinstance(latents, np.ndarray)
        and film.ndim == 3
        and film.dtype == np.bool_
        and latents.shape == (len(film), len(FACTORS))
    )


KITTI_MASKS = Dataset(
    name="kitti-masks",
    title="KITTI Masks",
    about="films of outlines of people: position and area",
    images=None,
    shape=(64, 64, 1),
    factors=FACTORS,
    files=(RemoteFile(FILE, f"https://zenodo.org/record/3931823/files/{FILE}?download=1", confirmed=True),),
    licence="to be seen on the home page (derived from KITTI MOTS, CC BY-NC-SA 3.0)",
    citation="Klindt et al.: Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse Coding, ICLR 2021",
    homepage="https://zenodo.org/record/3931823",
    read=read,
)

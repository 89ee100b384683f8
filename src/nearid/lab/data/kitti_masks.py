"""KITTI Masks: outlines of people in street scenes, as short films."""

from pathlib import Path

import numpy as np

from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.lab.data.array_pickle import read_arrays
from nearid.lab.data.base import AGAIN, Dataset, FactorInfo, LabelledImages, RemoteFile
from nearid.lab.data.images import ArrayImages

FILE = "kitti_peds_v2.pickle"
FACTORS = (
    FactorInfo("y", "continuous"),
    FactorInfo("x", "continuous"),
    FactorInfo("area", "continuous"),
)


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Read the pickle without running its code; `sequence` gives the film of each image."""
    held = read_arrays(folder / FILE)
    if not isinstance(held, dict) or not {"pedestrians", "pedestrians_latents"} <= held.keys():
        raise InputError(f"{FILE} does not contain 'pedestrians' and 'pedestrians_latents'. Is it the canonical file?")
    films, latents = held["pedestrians"], held["pedestrians_latents"]
    lists = isinstance(films, list) and isinstance(latents, list)
    if not lists or not films or len(films) != len(latents) or not all(map(_fit, films, latents)):
        raise InputError(
            f"The films and latents in {FILE} do not match: each film needs one row of latents per frame. {AGAIN}"
        )
    sizes = sorted({film.shape[1:] for film in films})
    if len(sizes) > 1:
        raise InputError(f"{FILE} has films of {sizes[0]} and of {sizes[1]} pixels, but one size is expected. {AGAIN}")
    # A film that occurs many times in the pickle takes memory once there, but many times in the result.
    check_memory(FILE, sum(film.nbytes for film in films), "Close other programs.")
    masks = np.concatenate(films, dtype=np.uint8)
    masks *= 255
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
    files=(RemoteFile(FILE, f"https://zenodo.org/record/3931823/files/{FILE}?download=1"),),
    licence="see the home page (derived from KITTI MOTS, CC BY-NC-SA 3.0)",
    citation="Klindt et al.: Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse Coding, ICLR 2021",
    homepage="https://zenodo.org/record/3931823",
    read=read,
)

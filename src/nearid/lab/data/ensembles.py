"""What networks that others trained make of the same rows: several runs of one architecture, with rows that belong
together.

The files are made from published weights by plain forward passes. Nobody publishes them: whoever has the weights makes
them in this layout, one array of shape (n, width) for each network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from nearid.arrays import open_columns
from nearid.base.errors import InputError, unknown
from nearid.lab.data.base import AGAIN, FileSet, RemoteFile
from nearid.lab.data.registry import dataset, locate
from nearid.moments import Floats

# Time bins of a recording that belong together: neighbours are alike.
STRETCH = 200


class Ensemble(NamedTuple):
    """Representations of the same rows by several networks, and the block of each row."""

    runs: Mapping[str, Floats]
    blocks: np.ndarray


@dataclass(frozen=True, kw_only=True)
class EnsembleSet(FileSet):
    """Representations by networks that others trained; `read` gives the ensembles of a folder by name."""

    rows: int
    read: Callable[[Path], dict[str, Ensemble]]

    kind: ClassVar[str] = "representations"
    loader: ClassVar[str] = "nearid.lab.data.ensembles.load_ensembles"

    @property
    def amount(self) -> str:
        return f"{self.rows:,}\nrows"


def load_ensembles(name: str) -> dict[str, Ensemble]:
    """Ensembles of networks by name, of one set: "ani", "silero-vad" or "cebra"."""
    described = dataset(name)
    if not isinstance(described, EnsembleSet):
        sets = {"ani": ANI, "silero-vad": SILERO_VAD, "cebra": CEBRA}
        raise InputError(unknown("ensemble of networks", name, sets))
    return described.read(locate(described))


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file, each with as many rows."""
    with np.load(path, allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    if len({len(array) for array in arrays.values()}) != 1:
        raise InputError(f"{path.name} holds arrays of unequal numbers of rows. {AGAIN}")
    return arrays


def _chosen(arrays: Mapping[str, np.ndarray], begins: str) -> dict[str, Floats]:
    return {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items() if name.startswith(begins)}


def _ani(folder: Path) -> dict[str, Ensemble]:
    """Atoms of one element; those of a molecule, in whichever geometry, belong together."""
    made = {}
    for element in "HC":
        arrays = _arrays(folder / f"ani_{element}.npz")
        made[element] = Ensemble(_chosen(arrays, "ani1"), arrays["molecule"])
    return made


def _silero(folder: Path) -> dict[str, Ensemble]:
    """States h and c of a recurrent network, frame by frame; frames of a clip belong together."""
    arrays = _arrays(folder / "silero_vad.npz")
    return {state: Ensemble(_chosen(arrays, f"{state}_"), arrays["clip"]) for state in "hc"}


def _cebra(folder: Path) -> dict[str, Ensemble]:
    """Embeddings of one recording by width, named after what they were trained to follow."""
    arrays = _arrays(folder / "cebra_hippocampus.npz")
    table = open_columns(folder / "cebra_hippocampus.csv").values
    widths = np.asarray(table["width"], dtype=int)
    blocks = np.arange(len(next(iter(arrays.values())))) // STRETCH
    made = {}
    for width in np.unique(widths):
        named = {
            str(told): np.asarray(arrays[str(key)], dtype=np.float64)
            for key, told, own in zip(table["key"], table["hypothesis"], widths, strict=True)
            if own == width
        }
        made[str(width)] = Ensemble(named, blocks)
    return made


def _by_hand(page: str, *names: str) -> tuple[RemoteFile, ...]:
    return tuple(RemoteFile(name, page, by_hand=True) for name in names)


ANI = EnsembleSet(
    name="ani",
    title="ANI-1x and ANI-1ccx",
    about="last hidden layer of eight networks of molecular energies and of their fine-tunes, for atoms of molecules",
    rows=2249,
    files=_by_hand("https://github.com/aiqm/torchani", "ani_H.npz", "ani_C.npz"),
    licence="torchani: MIT (weights not stated apart)",
    citation="Smith et al.: Less is more: sampling chemical space with active learning, 2018; Smith et al.: "
    "Approaching coupled cluster accuracy with a general-purpose neural network potential, 2019",
    homepage="https://github.com/aiqm/torchani",
    read=_ani,
    folders=("ensembles",),
)
SILERO_VAD = EnsembleSet(
    name="silero-vad",
    title="Silero VAD",
    about="states of a recurrent network that detects speech, in three trainings, frame by frame",
    rows=1375,
    files=_by_hand("https://github.com/snakers4/silero-vad", "silero_vad.npz"),
    licence="MIT",
    citation="Silero Team: Silero VAD, 2024",
    homepage="https://github.com/snakers4/silero-vad",
    read=_silero,
    folders=("ensembles",),
)
CEBRA = EnsembleSet(
    name="cebra",
    title="CEBRA embeddings",
    about="embeddings of one recording of a rat's hippocampus under 21 hypotheses on its labels",
    rows=8133,
    files=_by_hand(
        "https://github.com/AdaptiveMotorControlLab/cebra-figures", "cebra_hippocampus.npz", "cebra_hippocampus.csv"
    ),
    licence="MIT",
    citation="Schneider, Lee and Mathis: Learnable latent embeddings for joint behavioural and neural analysis, 2023",
    homepage="https://github.com/AdaptiveMotorControlLab/cebra-figures",
    read=_cebra,
    folders=("ensembles",),
)

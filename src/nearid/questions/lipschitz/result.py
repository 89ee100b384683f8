"""What a measurement of bi-Lipschitz constants returns: typed, immutable, printable, and plain data on request."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.jsonable import finite
from nearid.geometry.bounds import RigidBound
from nearid.geometry.constants import Constants, Isometry, Pairwise


@dataclass(frozen=True, repr=False, eq=False)
class BiLipschitz:
    """How far a decoder is from preserving distances.

    Attributes
    ----------
    name : str
    n, latents, outputs, directions : int
        Points, coordinates of a latent and of an output, random directions at each point.
    rows : ndarray of shape (n,)
        Rows of the latents that are the points.
    sampled : Constants
        Over the random directions, as in the paper: lower bounds of the exact ones.
    exact : Constants or None
        Over all directions, from singular values, where whole Jacobians were formed.
    isometry : Isometry or None
        Dynamical isometry: the spectrum of these Jacobians.
    pairwise : Pairwise
        Global: distances between outputs over those between latents.
    bound, scaled_bound : RigidBound
        Theorem 1 at the largest constant found, as it is and under the best global scale (for a group of rigid motions
        with one scale).
    alerts : tuple of Alert
    provenance : dict
        What made the result.
    """

    name: str
    n: int
    latents: int
    outputs: int
    directions: int
    rows: np.ndarray
    sampled: Constants
    exact: Constants | None
    isometry: Isometry | None
    pairwise: Pairwise
    bound: RigidBound
    scaled_bound: RigidBound
    alerts: tuple[Alert, ...]
    provenance: dict[str, Any]

    @property
    def constants(self) -> Constants:
        """The exact constants where they are known, the sampled ones otherwise."""
        return self.sampled if self.exact is None else self.exact

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON (infinities become null)."""
        plain: dict[str, Any] = {
            "name": self.name,
            "n": self.n,
            "latents": self.latents,
            "outputs": self.outputs,
            "directions": self.directions,
            "rows": self.rows.tolist(),
            "sampled": _constants_dict(self.sampled),
            "exact": None if self.exact is None else _constants_dict(self.exact),
            "isometry": None
            if self.isometry is None
            else {**asdict(self.isometry), "spectrum": self.isometry.spectrum.tolist()},
            "pairwise": asdict(self.pairwise),
            "bound": asdict(self.bound),
            "scaled_bound": asdict(self.scaled_bound),
            "alerts": [asdict(a) for a in self.alerts],
            "provenance": self.provenance,
        }
        cleaned: dict[str, Any] = finite(plain)
        return cleaned

    def __repr__(self) -> str:
        c = self.constants
        kind = f"{self.directions} directions" if self.exact is None else "exact"
        return (
            f"<BiLipschitz {self.name}: {kind}, mean {c.local.mean:.3f}, maximum {c.local.maximum.value:.3f}, "
            f"scale-free {c.scale_free:.3f}>"
        )

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page."""
        from nearid.questions.lipschitz.page import write_report

        write_report(self, path)

    def __str__(self) -> str:
        from nearid.questions.lipschitz.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from nearid.questions.lipschitz.page import fragment

        return fragment(self)


def _constants_dict(c: Constants) -> dict[str, Any]:
    return {
        "local": asdict(c.local),
        "scale": c.scale,
        "scaled": asdict(c.scaled),
        "scale_free": c.scale_free,
        "values": c.values.tolist(),
    }

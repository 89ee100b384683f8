"""What `lipschitz` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.base.alerts import Alert
from nearid.geometry.bounds import RigidBound
from nearid.geometry.constants import Constants, Isometry, Pairwise
from nearid.show.result import Result

if TYPE_CHECKING:
    from nearid.show.view import View


@dataclass(frozen=True, repr=False, eq=False)
class BiLipschitz(Result):
    """Result of `lipschitz`: how far a decoder is from preserving distances.

    Attributes
    ----------
    name : str
        Name of the decoder.
    n, latents, outputs, directions : int
        Number of points, of coordinates of a latent and of an output, and of random directions at each point.
    rows : ndarray of shape (n,)
        Which rows of the latents are the points.
    sampled : Constants
        Constants over the random directions, as in the paper. They are lower bounds of the exact ones.
    exact : Constants or None
        Constants over all directions, from singular values; None if whole Jacobians were not formed.
    isometry : Isometry or None
        Dynamical isometry: the spectrum of the Jacobians; None if they were not formed.
    pairwise : Pairwise
        Distances between outputs divided by distances between latents, for all pairs of points.
    bound, scaled_bound : RigidBound
        Theorem 1 at the largest constant found: for rigid motions, and for rigid motions with one scale.
    alerts : tuple of Alert
    provenance : dict
        What made the result.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> result = nearid.lipschitz(lambda z: 3 * z, np.random.default_rng(0).normal(size=(50, 2)))
    >>> round(result.constants.scale, 3), round(float(result.constants.scaled.mean), 3)
    (0.333, 1.0)
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
        """The exact constants if they are known, the sampled ones otherwise."""
        return self.sampled if self.exact is None else self.exact

    def _view(self) -> View:
        from nearid.questions.lipschitz.view import view

        return view(self)

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for over, constants in (("random directions", self.sampled), ("all directions", self.exact)):
            if constants is None:
                continue
            for scale, d in ((1.0, constants.local), (constants.scale, constants.scaled)):
                mean = {"mean": d.mean.value, "low": d.mean.low, "high": d.mean.high}
                quantiles = {f"{share:.0%}": quantile.value for share, quantile in d.quantiles.items()}
                ends = {"maximum": d.maximum.value, "of_half": d.maximum.of_half}
                records.append({"over": over, "scale": scale, **mean, **quantiles, **ends})
        return records

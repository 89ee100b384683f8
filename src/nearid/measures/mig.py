"""Mutual information gap (Chen et al. 2018): how much more information about a factor the best latent has."""

from __future__ import annotations

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.progress import Progress, silent
from nearid.measures.factors import BINS, Bins, Factors
from nearid.measures.information import mutual_information
from nearid.measures.registry import EACH_LATENT, Measured, measure
from nearid.moments import Floats


@measure(
    "MIG",
    invariances=EACH_LATENT,
    each="MIG",
    heat_map="Mutual information / entropy, binned",
    heat_map_of="information",
    held_out=False,
)
def mig(x: Floats, factors: Factors, *, bins: Bins = BINS, progress: Progress = silent) -> Measured:
    """Return the mean over factors of the gap between the two largest mutual informations, divided by the entropy.

    Latents and continuous factors are cut into bins of equal width, as is usual.

    Returns
    -------
    Measured
        `matrix` holds mutual information divided by the factor's entropy, `per_factor` the gaps.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).integers(0, 4, size=(500, 2))
    >>> nearid.mig(u * [3, -1], u).value > 0.95
    True
    """
    information, entropies, alerts = mutual_information(x, factors, bins, progress)
    matrix = information / entropies
    per_factor, more = gaps(matrix)
    return Measured(float(per_factor.mean()), matrix, factors.names, per_factor, alerts=alerts + more)


def gaps(matrix: Floats) -> tuple[Floats, tuple[Alert, ...]]:
    """Difference of the two largest values of each column; with one row, its values and an alert."""
    if len(matrix) == 1:
        return matrix[0], (
            Alert("one_latent", "There is only one latent, so the gap to the second best is the whole value."),
        )
    ordered = np.sort(matrix, axis=0)
    return np.asarray(ordered[-1] - ordered[-2]), ()

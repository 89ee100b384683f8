"""Mutual information gap (Chen et al. 2018): how much more the best latent tells of a factor than the next."""

from __future__ import annotations

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.options import checked
from nearid.base.progress import Reporting, reporting
from nearid.engines.local import ordered_map
from nearid.measures.factors import BINS, Factors, binned, check_bins, load_pair
from nearid.measures.information import discrete_mutual_information, entropy
from nearid.measures.recovery import FactorRecovery
from nearid.moments import Floats

# Mutual information of independent codes is not 0 in finite samples; above this share of the entropy it is told.
BIAS = 0.05


@checked
def mig(
    latents: object, factors: object, *, bins: int = BINS, drop_nonfinite: bool = False, progress: Reporting = False
) -> FactorRecovery:
    """Mean over factors of the gap between the two largest mutual informations, in units of the factor's entropy.

    Latents and continuous factors are cut into bins of equal width, as is usual. The matrix holds mutual information
    divided by the factor's entropy.

    Parameters
    ----------
    latents : array, tensor, path or Rows, of shape (n, d)
    factors : anything `open_factors` takes, of m factors
    bins : int
        Bins of each latent and of each factor that has no classes of its own.
    drop_nonfinite : bool
        Leave out rows with a NaN or an infinity among the latents; otherwise that is an error.
    progress : bool, default=False
        Draw a progress bar on stderr. A function is called with the name of each stage and its number of steps.

    Returns
    -------
    FactorRecovery
    """
    x, found, alerts = load_pair(latents, factors, drop_nonfinite=drop_nonfinite)
    information, entropies, more = mutual_information(x, found, bins, progress)
    matrix = information / entropies
    per_factor, lone = gaps(matrix)
    return FactorRecovery(float(per_factor.mean()), matrix, found.names, alerts + more + lone, per_factor)


def mutual_information(
    x: Floats, factors: Factors, bins: int, progress: Reporting
) -> tuple[Floats, Floats, tuple[Alert, ...]]:
    """Mutual information of binned latents and factors, shape (d, m); entropies of the factors; and cautions."""
    check_bins(bins, len(x))
    latent_codes = [binned(column, bins) for column in x.T]
    factor_codes = [factor.codes(bins) for factor in factors.items]

    def of_latent(a: np.ndarray) -> list[float]:
        return [discrete_mutual_information(a, b) for b in factor_codes]

    with reporting(progress) as report:
        matrix = np.array(list(ordered_map(of_latent, latent_codes, tick=report("information", x.shape[1]))))
    entropies = np.array([entropy(codes) for codes in factor_codes])
    # The first term of the bias (Miller 1955): (levels - 1)(levels - 1) / 2n
    levels = np.array([len(np.unique(codes)) for codes in factor_codes])
    bias = (bins - 1) * (levels - 1) / (2 * len(x)) / entropies
    short = [repr(name) for name, share in zip(factors.names, bias, strict=True) if share > BIAS]
    alerts: tuple[Alert, ...] = ()
    if short:
        alerts += (
            Alert(
                "few_rows",
                f"{len(x)} rows are few for {bins} bins and the levels of {', '.join(short)}: noise alone has up to "
                f"about {min(float(bias.max()), 1.0):.2g} of the entropy in common. Take fewer bins or more rows.",
            ),
        )
    return matrix, entropies, alerts


def gaps(matrix: Floats) -> tuple[Floats, tuple[Alert, ...]]:
    """Difference of the two largest values of each column; with one row, its values and a caution."""
    if len(matrix) == 1:
        return matrix[0], (Alert("one_latent", "There is one latent: the gap to the next is its whole value."),)
    ordered = np.sort(matrix, axis=0)
    return np.asarray(ordered[-1] - ordered[-2]), ()

"""A statistic with an interval over whatever can be left out: networks of pairs, or seeds of pooled runs."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from nearid.base.estimate import Estimate

T = TypeVar("T")
# Parts without which there is no interval.
FEWEST = 3


def jackknife(parts: Sequence[T], statistic: Callable[[T | None], float], of: str) -> Estimate:
    """A statistic of all parts, and its interval from the statistics without each of them (Student's t).

    Parameters
    ----------
    statistic : callable
        Of all parts but the one that is named; of all with None.
    of : str
        What the parts are.

    Returns
    -------
    Estimate
        Without an interval, and made of one value, where there are fewer than three parts or a statistic is not known.
    """
    from scipy.special import stdtrit

    n, value = len(parts), statistic(None)
    each = np.array([statistic(part) for part in parts]) if n >= FEWEST else np.array([np.nan])
    if not np.isfinite(each).all():
        return Estimate(value, n=1)
    half = float(stdtrit(n - 1, 0.975) * np.sqrt((n - 1) / n * np.sum((each - each.mean()) ** 2)))
    return Estimate(value, value - half, value + half, of=f"{of}, jackknife", n=n)

"""Each group's errors in a handful of figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearid.groups.ladder import Group
from nearid.measures.diameter import Diameter
from nearid.moments import Floats
from nearid.questions.compare.bootstrap import Replicates, interval
from nearid.questions.compare.chance import Chance
from nearid.questions.compare.result import Epsilon, GroupResult


def summaries(
    groups: Sequence[Group],
    dims: tuple[int, int],
    errors: Floats,
    unexplained: Floats,
    diameter: Diameter,
    replicates: Replicates | None = None,
    chance: Chance | None = None,
) -> dict[str, GroupResult]:
    """Summaries of each group's errors; intervals and chance where they were measured."""
    size, nan = diameter.lower, float("nan")
    results = {}
    for g, group in enumerate(groups):
        median, q95 = np.quantile(errors[g], [0.5, 0.95])
        low, high = interval(replicates.error[:, g]) if replicates else (nan, nan)
        r2_high, r2_low = (1 - v for v in interval(replicates.unexplained[:, g])) if replicates else (nan, nan)
        results[group.name] = GroupResult(
            name=group.name,
            title=group.title,
            epsilon=Epsilon(
                float(errors[g].mean()) / size,
                float(median) / size,
                float(q95) / size,
                float(errors[g].max()) / size,
                low / size,
                high / size,
            ),
            chance=float(chance.error[:, g].mean()) / size if chance else nan,
            r2=float(1 - unexplained[g]),
            r2_low=r2_low,
            r2_high=r2_high,
            chance_r2=float(chance.r2[:, g].max()) if chance else nan,
            degrees_of_freedom=group.degrees_of_freedom(*dims),
        )
    return results

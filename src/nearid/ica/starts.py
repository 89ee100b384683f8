"""Starts of the search for the rotation, and the choice of the best one.

Real data have many optima, and no single start always leads to the best one. Three kinds of starts are tried, each of
which is best on some real data: a random rotation with the fixed point, a random rotation with the climb, and
eigenvectors of a fourth moment with the fixed point. Each start is followed until its next steps would gain little.
Starts that are then behind are dropped, the others are followed further, and the best one is followed to the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearid.groups.fits import polar
from nearid.ica.solver import Search, Stage, State
from nearid.moments import Floats

# A start is first followed until a step would gain at most this share of the contrast. Unless it is this far behind the
# best one, it is then followed until a step would gain at most the last share.
FIRST_GAIN, BEHIND, LAST_GAIN = 3e-3, 0.02, 1e-4
# Maximum number of starts.
MOST_STARTS = 100
# Size of the random rotation of the eigenvectors. With the same start for every seed, its influence would be hidden.
START_NOISE = 0.5
# Number of groups of eigenvectors with similar kurtosis within which the climb begins, and the minimum number of
# components per group.
GROUPS, LEAST_GROUP = 2, 16


@dataclass(frozen=True)
class Start:
    """A start: the rotation, the first stage of the search, and the number of groups of a climb."""

    rotation: Floats
    stage: Stage
    groups: int = 1


def random_rotation(k: int, rng: np.random.Generator) -> Floats:
    """Return a random rotation."""
    return polar(rng.normal(size=(k, k)))


def stirred(rotation: Floats, rng: np.random.Generator) -> Floats:
    """Return the rotation after a small random rotation."""
    k = len(rotation)
    return np.asarray(polar(np.eye(k) + START_NOISE / np.sqrt(k) * rng.normal(size=(k, k))) @ rotation)


def several(count: int, eigenvectors: Floats, seed: int) -> list[Start]:
    """Return starts of the three kinds in turn. A single start is the eigenvectors with the climb.

    Parameters
    ----------
    eigenvectors : ndarray of shape (k, k)
        Eigenvectors in rows, which separate sources of different kurtosis.
    """
    turned = stirred(eigenvectors, np.random.default_rng(seed))
    if count == 1:
        return [Start(turned, "climb", GROUPS if len(turned) >= GROUPS * LEAST_GROUP else 1)]
    k, starts = len(eigenvectors), [Start(turned, "fixed point")]
    for place in range(count - 1):
        drawn = random_rotation(k, np.random.default_rng([seed, place]))
        starts.append(Start(drawn, "climb" if place % 2 else "fixed point"))
    return starts


def race(
    count: int, begin: Callable[[int], Search], contrast: Callable[[State], float], tol: float
) -> tuple[list[Search], Floats]:
    """Return searches from several starts, each followed as far as it is promising, and the J that each reached.

    Parameters
    ----------
    count : int
        Number of starts.
    begin : callable
        Returns the search from the start with this number.
    contrast : callable
        Returns J of the current state of a search.
    """

    def followed(search: Search, gain: float) -> float:
        search.advance(tol, gain)
        return contrast(search.state)

    searches, contrasts = [], np.zeros(count)
    for place in range(count):
        searches.append(begin(place))
        contrasts[place] = followed(searches[place], FIRST_GAIN)
    for place in np.flatnonzero(contrasts >= (1 - BEHIND) * contrasts.max()).tolist():
        contrasts[place] = followed(searches[place], LAST_GAIN)
    return searches, contrasts

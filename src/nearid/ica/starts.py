"""Where searches for the rotation start, which of them goes on, and which components several of them find.

Real data have many optima, and no one start leads to the best of them. Three kinds are tried, each of which wins on
some real data: a random rotation followed by the fixed point, a random one followed by the climb, and eigenvectors of a
fourth moment followed by the fixed point. A start is followed until its next steps would gain little; those that are
behind by then are given up, the others are followed further, and the best goes on to the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearid.groups.fits import polar
from nearid.ica.solver import Search, Stage, State
from nearid.moments import Floats

# A start is first followed until steps promise no more than this share of the contrast, then, unless it is this far
# behind the best one, until they promise no more than the last share.
FIRST_GAIN, BEHIND, LAST_GAIN = 3e-3, 0.02, 1e-4
# More starts than anybody needs.
MOST_STARTS = 100
# How far a seed turns the eigenvectors: the same start for every seed would hide what depends on it.
START_NOISE = 0.5
# Groups of eigenvectors, alike in kurtosis, that the climb from them first stays within, and the least components of
# each that make it worth while.
GROUPS, LEAST_GROUP = 2, 16


@dataclass(frozen=True)
class Start:
    """Where a search begins, with which stage, and in how many groups a climb begins."""

    rotation: Floats
    stage: Stage
    groups: int = 1


def random_rotation(k: int, rng: np.random.Generator) -> Floats:
    """A rotation drawn at random."""
    return polar(rng.normal(size=(k, k)))


def stirred(rotation: Floats, rng: np.random.Generator) -> Floats:
    """The rotation turned a little."""
    k = len(rotation)
    return np.asarray(polar(np.eye(k) + START_NOISE / np.sqrt(k) * rng.normal(size=(k, k))) @ rotation)


def several(count: int, eigenvectors: Floats, seed: int) -> list[Start]:
    """Starts of the three kinds in turn; one alone is the eigenvectors followed by the climb.

    Parameters
    ----------
    eigenvectors : ndarray of shape (k, k)
        In rows: they part sources of different kurtosis.
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
    """Searches from several starts, each followed as far as it is worth it, and the J that each reached.

    Parameters
    ----------
    count : int
        Starts.
    begin : callable
        Makes the search from the start of this place.
    contrast : callable
        J of where a search stands.
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

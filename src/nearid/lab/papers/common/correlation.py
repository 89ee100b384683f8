"""Canonical correlations as papers compute them."""

from __future__ import annotations

from nearid.measures.registry import Measured
from nearid.moments import Floats


def plain_cca(x: Floats, y: Floats) -> Measured:
    """Held-out CCA along all directions, where `nearid.cca` would choose how many of them few rows can carry."""
    from nearid.measures.similarity import svcca

    return svcca(x, y, k=max(x.shape[1], y.shape[1]))

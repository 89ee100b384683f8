"""What every measure of recovery returns."""

from __future__ import annotations

from dataclasses import dataclass

from nearid.base.alerts import Alert
from nearid.moments import Floats


@dataclass(frozen=True)
class Recovery:
    """A number that says how well factors are recovered, and what it rests on.

    Attributes
    ----------
    value : float
    matrix : ndarray of shape (d, m)
        What was measured of each latent and factor.
    factors : tuple of str
        Names of the m factors; constant ones are left out.
    alerts : tuple of Alert
    """

    value: float
    matrix: Floats
    factors: tuple[str, ...]
    alerts: tuple[Alert, ...]


@dataclass(frozen=True)
class FactorRecovery(Recovery):
    """The same with a number for each factor.

    Attributes
    ----------
    per_factor : ndarray of shape (m,)
    """

    per_factor: Floats

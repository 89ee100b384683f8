"""The ladder of equivalence, as data: signed permutation < rigid < linear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nearid.errors import InputError
from nearid.groups.fits import fit_linear, fit_permutation, fit_rigid
from nearid.groups.maps import Map
from nearid.moments import PairMoments


@dataclass(frozen=True)
class Group:
    """One rung: what it is called, what it contains, how it is fitted and what that spends.

    Attributes
    ----------
    name : str
    title : str
        For people.
    contains : tuple of str
        Names of the smaller groups.
    fit : callable
        (moments, **options) -> Map
    options : tuple of str
        Names of the options that `fit` takes.
    degrees_of_freedom : callable
        (p, q) -> number of continuous parameters, translation and scale included.
    """

    name: str
    title: str
    contains: tuple[str, ...]
    fit: Callable[..., Map]
    options: tuple[str, ...]
    degrees_of_freedom: Callable[[int, int], int]

    def fitted(self, moments: PairMoments, options: dict[str, float | bool]) -> Map:
        """Fit with those of the given options that this group knows."""
        return self.fit(moments, **{k: v for k, v in options.items() if k in self.options})


def _stiefel(p: int, q: int) -> int:
    """Dimension of the manifold of orthonormal frames that links widths p and q."""
    k, m = min(p, q), max(p, q)
    return m * k - k * (k + 1) // 2


LADDER: dict[str, Group] = {
    g.name: g
    for g in (
        Group(
            "permutation",
            "signed permutation",
            (),
            fit_permutation,
            ("translation", "scale"),
            lambda p, q: q + 1,
        ),
        Group(
            "rigid",
            "rigid motion",
            ("permutation",),
            fit_rigid,
            ("translation", "scale"),
            lambda p, q: _stiefel(p, q) + q + 1,
        ),
        Group(
            "linear",
            "linear map",
            ("permutation", "rigid"),
            fit_linear,
            ("translation", "ridge"),
            lambda p, q: p * q + q,
        ),
    )
}


def rungs(names: Iterable[str] | str | None = None) -> list[Group]:
    """The named groups in ladder order; all of them by default."""
    if names is None:
        return list(LADDER.values())
    wanted = [n.strip() for n in (names.split(",") if isinstance(names, str) else names)]
    if "ica" in wanted:
        raise InputError(
            "The ica rung needs unmixing, which this version does not have; there are permutation, rigid, linear."
        )
    unknown = [n for n in wanted if n not in LADDER]
    if unknown or not wanted:
        given = f"Unknown group {unknown[0]!r}" if unknown else "No group was named"
        raise InputError(f"{given}; the groups are {', '.join(LADDER)}.")
    return [g for name, g in LADDER.items() if name in wanted]

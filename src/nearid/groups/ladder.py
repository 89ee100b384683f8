"""The ladder of equivalence, as data: signed permutation < rigid < linear; and ICA, which stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nearid.base.errors import InputError
from nearid.groups.fits import fit_linear, fit_permutation, fit_rigid, fit_unmixed
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
        (p, q) -> number of continuous parameters fitted to pairs of rows, translation and scale included.
    """

    name: str
    title: str
    contains: tuple[str, ...]
    fit: Callable[..., Map]
    options: tuple[str, ...]
    degrees_of_freedom: Callable[[int, int], int]

    def fitted(self, moments: PairMoments, options: dict[str, Any]) -> Map:
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


# A signed permutation of components that each side found alone: a linear map, but it neither contains the groups of the
# ladder nor is contained in the rigid one. It is measured as they are and takes no part in the verdict.
UNMIXED = Group(
    "ica",
    "ICA of each side, matched",
    (),
    fit_unmixed,
    ("translation", "scale", "source", "target", "mixing"),
    lambda p, q: q + 1,
)


def rungs(names: Iterable[str] | str | None = None) -> list[Group]:
    """The named groups, the ladder's in its order and then ica; the ladder's by default, every one for "all"."""
    if names is None:
        return list(LADDER.values())
    known = {**LADDER, UNMIXED.name: UNMIXED}
    wanted = [n.strip() for n in (names.split(",") if isinstance(names, str) else names)]
    if wanted == ["all"]:
        return list(known.values())
    unknown = [n for n in wanted if n not in known]
    if unknown or not wanted:
        given = f"Unknown group {unknown[0]!r}" if unknown else "No group was named"
        raise InputError(f"{given}; the groups are {', '.join(known)}, or all.")
    if not any(n in LADDER for n in wanted):
        raise InputError("ica stands beside the ladder and gives no verdict: add permutation,rigid, or say all.")
    return [g for name, g in known.items() if name in wanted]

"""The registry of groups, from the smallest to the largest. Fits, verdict, tables, pages and help use it.

Groups are only partially ordered by `contains`. For example, signed permutations with a scale for each column and rigid
motions both contain the signed permutations, and both are linear, but neither contains the other. The ladder is a list:
each group comes after all groups that it contains, and otherwise the group with fewer parameters comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import listed
from nearid.groups.fits import (
    Map,
    fit_linear,
    fit_linear_to_many,
    fit_permutation,
    fit_rigid,
    fit_rigid_to_many,
    fit_scaled_permutation,
    linear_influence,
    rigid_influence,
    scale_influence,
    scales_influence,
)
from nearid.moments import Floats, PairMoments

# Number of columns on both sides for which parameters are counted, to order two groups.
WIDTH = 16


@dataclass(frozen=True)
class Prepared:
    """Options of a fit that were computed on each side separately.

    Attributes
    ----------
    whole : dict
        Options from all rows in use.
    folds : list of dict
        Options from the rows outside each fold.
    alerts : tuple of Alert
    """

    whole: dict[str, Any]
    folds: list[dict[str, Any]]
    alerts: tuple[Alert, ...]


@dataclass(frozen=True)
class Group:
    """A group of the ladder: its name, the groups that it contains, its fit and its number of parameters.

    Attributes
    ----------
    name : str
    title : str
        Title in sentences, after "a" or "up to a".
    colour : str
        Colour in figures, such as "#009E73".
    contains : tuple of str
        Names of the smaller groups. `register` adds the groups that these contain.
    fit : callable
        `(moments, **options) -> Map`
    options : tuple of str
        Names of the options of `fit`.
    degrees_of_freedom : callable
        (p, q) -> number of continuous parameters of the fit, including translation and scale.
    default : bool
        Whether it is fitted if no groups are named.
    prepare : callable, optional
        (seed, engine, progress) -> function of (pair, fold, parts) -> Prepared, for a fit that needs more than moments.
        The maps of such a group depend on the rows of each side, so it is not nested in the other groups. It is
        measured in addition to the ladder and does not affect the verdict.
    influence : callable, optional
        (moments, fitted, gradient, x, y, **options) -> influence of each row on the fit, see `scale_influence`. Without
        it, intervals do not include the uncertainty of the fit.
    matches : bool
        Whether the fit matches columns (a `MatchMap`). The choice of matches has no derivative by the rows.

    Examples
    --------
    >>> from nearid.groups.ladder import GROUPS
    >>> rigid = GROUPS["rigid"]
    >>> rigid.title, rigid.contains, rigid.degrees_of_freedom(3, 3)
    ('rigid motion', ('permutation',), 7)
    """

    name: str
    title: str
    colour: str
    contains: tuple[str, ...]
    fit: Callable[..., Map]
    options: tuple[str, ...]
    degrees_of_freedom: Callable[[int, int], int]
    default: bool = True
    prepare: Callable[..., Callable[..., Prepared]] | None = None
    influence: Callable[..., Floats] | None = None
    matches: bool = False

    def fitted(self, moments: PairMoments, options: dict[str, Any]) -> Map:
        """Return the fit with those options that this group has."""
        return self.fit(moments, **{k: v for k, v in options.items() if k in self.options})

    def fitted_to_many(self, many: Sequence[PairMoments], options: Sequence[dict[str, Any]]) -> Sequence[Map]:
        """Return the fits of several targets of one source and one width, each with its own options.

        Rigid motions and linear maps are fitted together if their options are equal except for penalties, which is
        faster. This is decided by `fit`, so that a registered group with another fit is not affected.
        """
        known = [{k: v for k, v in own.items() if k in self.options} for own in options]
        shared = [{k: v for k, v in own.items() if k != "ridge"} for own in known]
        if all(own == shared[0] for own in shared):
            if self.fit is fit_rigid:
                return fit_rigid_to_many(many, **shared[0])
            if self.fit is fit_linear:
                return fit_linear_to_many(many, [own.get("ridge", 0.0) for own in known], **shared[0])
        return [self.fit(moments, **own) for moments, own in zip(many, known, strict=True)]


# All groups by name, in the order of the ladder. Groups that are not part of the ladder come last.
GROUPS: dict[str, Group] = {}


def register(group: Group) -> None:
    """Add a group, or replace the group of that name, and sort the ladder.

    Parameters
    ----------
    group : Group

    Examples
    --------
    >>> from dataclasses import replace
    >>> from nearid.groups.ladder import GROUPS, register
    >>> register(replace(GROUPS["rigid"], name="motion", title="motion", default=False))
    >>> list(GROUPS)[:4]
    ['permutation', 'scaled_permutation', 'rigid', 'motion']
    >>> del GROUPS["motion"]
    """
    unknown = [name for name in group.contains if name not in GROUPS]
    if unknown:
        raise InputError(f"The group {group.name} contains {unknown[0]}, which is not registered.")
    inner = {deeper for name in group.contains for deeper in (name, *GROUPS[name].contains)}
    waiting = {**GROUPS, group.name: replace(group, contains=tuple(name for name in GROUPS if name in inner))}
    ordered: dict[str, Group] = {}
    while waiting:
        ready = [g for g in waiting.values() if not any(name in waiting for name in g.contains)]
        if not ready:
            raise InputError(f"These groups contain each other: {', '.join(waiting)}.")
        smallest = min(ready, key=lambda g: (g.prepare is not None, g.degrees_of_freedom(WIDTH, WIDTH)))
        ordered[smallest.name] = waiting.pop(smallest.name)
    GROUPS.clear()
    GROUPS.update(ordered)


def ladder(names: Iterable[str] | str | None = None) -> list[Group]:
    """Return the named groups in the order of the ladder. Default: those with `default`. "all" means every group."""
    if names is None:
        return [g for g in GROUPS.values() if g.default]
    wanted = listed(names, "group", GROUPS)
    chosen = [g for name, g in GROUPS.items() if name in wanted]
    if all(g.prepare for g in chosen):
        raise InputError(
            f"{chosen[0].name} is not part of the ladder, so it gives no verdict. Add permutation and rigid, "
            'or give groups="all" (--groups all).'
        )
    return chosen


def _stiefel(p: int, q: int) -> int:
    """Return the dimension of the Stiefel manifold of orthonormal frames for widths p and q."""
    k, m = min(p, q), max(p, q)
    return m * k - k * (k + 1) // 2


# Colours: Okabe-Ito, legible on light and dark pages and for the colour-blind.
_WITH_SCALE = ("translation", "scale")
for _group in (
    Group(
        "permutation",
        "signed permutation",
        "#009E73",
        (),
        fit_permutation,
        _WITH_SCALE,
        lambda p, q: q + 1,
        influence=scale_influence,
        matches=True,
    ),
    Group(
        "scaled_permutation",
        "signed permutation with a scale for each column",
        "#CC79A7",
        ("permutation",),
        fit_scaled_permutation,
        ("translation",),
        lambda p, q: q + min(p, q),
        default=False,
        influence=scales_influence,
        matches=True,
    ),
    Group(
        "rigid",
        "rigid motion",
        "#56B4E9",
        ("permutation",),
        fit_rigid,
        _WITH_SCALE,
        lambda p, q: _stiefel(p, q) + q + 1,
        influence=rigid_influence,
    ),
    Group(
        "linear",
        "linear map",
        "#E69F00",
        ("scaled_permutation", "rigid"),
        fit_linear,
        ("translation", "ridge"),
        lambda p, q: p * q + q,
        influence=linear_influence,
    ),
):
    register(_group)

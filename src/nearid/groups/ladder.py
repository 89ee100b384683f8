"""The ladder of equivalence, as data: one registry of groups, read by fits, verdict, tables, pages and help.

`contains` orders it. Groups are only partially ordered: a signed permutation with a scale for each column and a rigid
motion both contain the signed permutations, both are linear, and neither contains the other. The ladder is a list all
the same: each group comes after all that it contains, and otherwise the one with fewer parameters comes first.
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

# Columns on both sides for which parameters are counted where two groups are compared by their number.
WIDTH = 16


@dataclass(frozen=True)
class Prepared:
    """Options of a fit that were found on each side alone.

    Attributes
    ----------
    whole : dict
        From all rows in use.
    folds : list of dict
        From the rows outside each fold.
    alerts : tuple of Alert
    """

    whole: dict[str, Any]
    folds: list[dict[str, Any]]
    alerts: tuple[Alert, ...]


@dataclass(frozen=True)
class Group:
    """One rung: what it is called, what it contains, how it is fitted and what that spends.

    Attributes
    ----------
    name : str
    title : str
        For people, after "a" or "up to a".
    colour : str
        Of its marks in figures, as "#009E73".
    contains : tuple of str
        Names of the smaller groups; `register` adds those that these contain.
    fit : callable
        `(moments, **options) -> Map`
    options : tuple of str
        Names of the options that `fit` takes.
    degrees_of_freedom : callable
        (p, q) -> number of continuous parameters fitted to pairs of rows, translation and scale included.
    default : bool
        Whether it is fitted if no groups are named.
    prepare : callable, optional
        (seed, engine, progress) -> function of (pair, fold, parts) -> Prepared, for a fit that needs more than moments.
        What such a map can be depends on the rows of each side, so that it has no place among groups that contain each
        other: it is measured beside the ladder and takes no part in the verdict.
    influence : callable, optional
        `(moments, fitted, gradient, x, y, **options)` -> how far each row moves the fit; see `scale_influence`.
        Intervals allow for the fit only where it is given.
    matches : bool
        Whether the fit gives each target column a partner (a `MatchMap`): no derivative shows how that choice changes
        from rows to rows.

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
        """Fit with those of the given options that this group knows."""
        return self.fit(moments, **{k: v for k, v in options.items() if k in self.options})

    def fitted_to_many(self, many: Sequence[PairMoments], options: Sequence[dict[str, Any]]) -> Sequence[Map]:
        """The same for several targets of one source and one width, each with options of its own.

        Rigid motions and linear maps cost less together where but for penalties their options are the same. By the fit,
        so that a group with a fit of its own has none of these.
        """
        known = [{k: v for k, v in own.items() if k in self.options} for own in options]
        shared = [{k: v for k, v in own.items() if k != "ridge"} for own in known]
        if all(own == shared[0] for own in shared):
            if self.fit is fit_rigid:
                return fit_rigid_to_many(many, **shared[0])
            if self.fit is fit_linear:
                return fit_linear_to_many(many, [own.get("ridge", 0.0) for own in known], **shared[0])
        return [self.fit(moments, **own) for moments, own in zip(many, known, strict=True)]


# Every group by its name, in the order of the ladder; what stands beside it comes last.
GROUPS: dict[str, Group] = {}


def register(group: Group) -> None:
    """Add a group, or replace the one of that name, and put the ladder in order.

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
    """The named groups in the order of the ladder. Default: those with `default`. "all" gives every group."""
    if names is None:
        return [g for g in GROUPS.values() if g.default]
    wanted = listed(names, "group", GROUPS)
    chosen = [g for name, g in GROUPS.items() if name in wanted]
    if all(g.prepare for g in chosen):
        raise InputError(
            f"{chosen[0].name} stands beside the ladder and gives no verdict. Add permutation and rigid, or give "
            'groups="all" (--groups all).'
        )
    return chosen


def _stiefel(p: int, q: int) -> int:
    """Dimension of the manifold of orthonormal frames that links widths p and q."""
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

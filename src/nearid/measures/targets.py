"""Latents and the columns of their factors in one streaming pass: the moments that linear measures rest on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nearid.alerts import Alert
from nearid.arrays import Rows, open_rows, pair_rows
from nearid.arrays.columns import named_columns
from nearid.arrays.metadata import input_alerts
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, blocks
from nearid.errors import InputError
from nearid.folds import FoldMoments, assign, fold_moments
from nearid.measures.factors import (
    Factors,
    constant_factor,
    constant_latents,
    dropped_rows,
    factors_of,
    open_latents,
    unnamed,
)
from nearid.moments import PairMoments
from nearid.progress import Progress

T = TypeVar("T")


@dataclass(frozen=True)
class Targets:
    """Moments of latents and factor columns, fold by fold.

    Attributes
    ----------
    parts : FoldMoments
    names : tuple of str
        Factors that vary.
    blocks : tuple of slice
        Columns of each of them.
    kinds : tuple of str
        "continuous" also for numbers that are streamed, whose kind nobody looked at.
    alerts : tuple of Alert
    """

    parts: FoldMoments
    names: tuple[str, ...]
    blocks: tuple[slice, ...]
    kinds: tuple[str, ...]
    alerts: tuple[Alert, ...]

    def splits(self, function: Callable[[PairMoments, PairMoments], T]) -> list[T]:
        """function(train, test) of every fold; with one fold both are all rows."""
        if len(self.parts.parts) == 1:
            return [function(self.parts.all, self.parts.all)]
        return self.parts.map_splits(lambda _, train, test: function(train, test))


def gather(
    latents: object,
    factors: object,
    *,
    folds: int,
    random_state: int,
    drop_nonfinite: bool,
    engine: Engine = LOCAL,
    progress: Progress,
) -> Targets:
    """Moments of latents and factors.

    Factors without names or kinds are numbers and are streamed like the latents, whatever their size.
    """
    named = None if isinstance(factors, Factors | Rows) else named_columns(factors, name=unnamed(factors, "factors"))
    known = factors if isinstance(factors, Factors) else None if named is None else factors_of(named)
    rows = known.rows if known else open_rows(factors, name=unnamed(factors, "factors"))
    pair = pair_rows(open_latents(latents), rows)
    steps = len(blocks(pair.n, pair.x.shape[1] + pair.y.shape[1]))
    parts = fold_moments(
        pair,
        assign(pair.n, folds, random_state),
        folds,
        drop_nonfinite=drop_nonfinite,
        engine=engine,
        tick=progress("moments", steps),
    )
    alerts = tuple(input_alerts(pair)) + (known.alerts if known else ())
    if parts.kept is not None:
        alerts += (dropped_rows(int(np.sum(~parts.kept)), pair.n),)
    if min(part.n for part in parts.parts) < 2:
        raise InputError(f"{sum(part.n for part in parts.parts)} usable rows are too few for {folds} folds.")
    names = known.names if known else tuple(map(str, range(rows.shape[1])))
    kinds = tuple(factor.kind for factor in known.items) if known else ("continuous",) * rows.shape[1]
    widths = [factor.columns.shape[1] for factor in known.items] if known else [1] * rows.shape[1]
    ends = np.cumsum(widths)
    return _varying(parts, names, [slice(e - w, e) for e, w in zip(ends, widths, strict=True)], kinds, alerts)


def _varying(
    parts: FoldMoments, names: tuple[str, ...], columns: list[slice], kinds: tuple[str, ...], alerts: tuple[Alert, ...]
) -> Targets:
    """Leave out what is constant in the rows in use, and say so."""
    moments = parts.all
    spread = np.diag(moments.yy)
    alerts += constant_latents(np.diag(moments.xx) <= 0)
    live = [at for at, block in enumerate(columns) if spread[block].any()]
    if not live:
        raise InputError("Every factor is constant: there is nothing to recover.")
    alerts += tuple(constant_factor(name) for at, name in enumerate(names) if at not in live)
    for at in live:
        if not all(np.diag(part.scatter)[parts.width :][columns[at]].any() for part in parts.parts):
            alerts += (
                Alert(
                    "constant_in_fold",
                    f"The factor {names[at]!r} is constant among the rows of a fold, where nothing can be recovered: "
                    "its held-out value is too low. Take fewer folds or more rows.",
                ),
            )
    pick = [columns[at] for at in live]
    return Targets(parts, tuple(names[at] for at in live), tuple(pick), tuple(kinds[at] for at in live), alerts)

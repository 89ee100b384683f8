"""Alerts of a comparison: what to know about inputs and figures before trusting the verdict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nearid.arrays import Rows
from nearid.arrays.metadata import column_names, input_alerts
from nearid.arrays.names import few
from nearid.base.alerts import Alert
from nearid.folds import repeated_rows
from nearid.measures.diameter import Diameter
from nearid.moments import Floats, cholesky, spectrum
from nearid.questions.compare.errors import Evaluation, Gathered
from nearid.questions.compare.many import Farthest
from nearid.questions.compare.outlying import DECIDE, ENOUGH, far_out, held_by
from nearid.show.view import counted

FEW_ROWS = 10
# With fewer blocks than this, the spread between blocks is poorly known.
FEW_BLOCKS = 20
DUPLICATE = 1e-10


def alerts(gathered: Gathered, evaluation: Evaluation, diameter: Diameter) -> Iterator[Alert]:
    """All alerts about the inputs and the numbers of a pair."""
    pair, moments, kept, whole = gathered.pair, gathered.moments, evaluation.of(gathered), evaluation.whole
    (x, p), (y, q) = ((rows.name, rows.shape[1]) for rows in (pair.x, pair.y))
    n = moments.n
    if evaluation.same:
        yield Alert("same_input", f"{x} and {y} have the same numbers in every row.")
    yield from input_alerts(pair)
    if n < pair.n:
        yield Alert("input", f"{pair.n - n} of {pair.n} pairs of rows of {x} and {y} held NaN or Inf and were dropped.")
    if p != q:
        yield Alert(
            "widths_differ",
            f"{x} has {p} columns and {y} has {q}: the verdict says whether {y} can be computed from {x}, not the "
            "reverse. Compare both ways with symmetric=True (--symmetric).",
        )
    yield from repeated_rows(gathered.parts.traits, n, pair.n, in_blocks=gathered.blocks is not None)
    yield from few_rows(n, max(p, q))
    if gathered.blocks is not None:
        yield from few_blocks(gathered.block_count)
    yield from _columns(pair.x, moments.xx, n)
    yield from _columns(pair.y, moments.yy, n)
    yield from _outliers(x, evaluation.source_radii[kept], None if whole is None else whole.source)
    yield from _tails(y, evaluation.radii[kept], diameter, None if whole is None else whole.target)
    yield from gathered.alerts


def few_rows(n: int, widest: int) -> Iterator[Alert]:
    """The alert about too few rows for the columns of the widest side."""
    if n < FEW_ROWS * widest:
        yield Alert(
            "few_rows",
            f"{n} rows for {widest} columns (n/d = {n / widest:.2g}): maps with many parameters are noisy, and errors "
            "and R2 have no intervals. Use at least 10 rows for each column.",
        )


def few_blocks(count: int) -> Iterator[Alert]:
    """The alert about few blocks of rows."""
    if count < FEW_BLOCKS:
        yield Alert(
            "few_blocks",
            f"There {'are only' if count > 1 else 'is only'} {counted(count, 'block')} of rows that belong together. "
            f"Held-out scores, intervals and p-values depend on {f'these {count}' if count > 1 else 'it'} alone. Use "
            f"{FEW_BLOCKS} blocks or more.",
        )


def _columns(rows: Rows, scatter: Floats, n: int) -> Iterator[Alert]:
    """Constant, duplicate and dependent columns of one side."""
    name, names = rows.name, column_names(rows)
    size = np.sqrt(np.diag(scatter))
    constant = np.flatnonzero(size == 0)
    if len(constant):
        some = len(constant) > 1
        which = f"{'Columns' if some else 'Column'} {few((repr(names[at]) for at in constant), 5)} of {name}"
        yield Alert("constant_columns", f"{which} {'are' if some else 'is'} constant and cannot be aligned.")
    live = np.flatnonzero(size > 0)
    rho = scatter[np.ix_(live, live)] / size[live, None] / size[live]
    twins = np.argwhere(np.triu(np.abs(rho) > 1 - DUPLICATE, 1))
    if len(twins) and n > 2:
        i, j = (names[at] for at in live[twins[0]])
        yield Alert(
            "duplicate_columns",
            f"{name} has {counted(len(twins), 'pair')} of columns that are copies of each other up to a scale, such as "
            f"{i!r} and {j!r}. Which of the copies is matched is arbitrary.",
        )
    if cholesky(scatter[np.ix_(live, live)], n) is not None:
        return
    rank, possible = spectrum(scatter, n).rank, min(len(live), n - 1)
    if rank < possible:
        yield Alert(
            "rank_deficient",
            f"{name} has rank {rank} with {len(live)} varying columns: some are linear combinations of others (to "
            "about 3e-7 of the spread, the precision of float64 moments). The linear map with the smallest norm is "
            "used.",
        )


def _outliers(name: str, radii: Floats, farthest: Farthest | None = None) -> Iterator[Alert]:
    """The alert about outlying source rows: a map fitted to squared errors follows them."""
    if len(far_out(radii, farthest)):
        largest = radii.max() if farthest is None else farthest.radii[0]
        times = float(largest / np.quantile(radii, 0.99))
        yield Alert(
            "outlying_source",
            f"A few outlying rows dominate {name}: the furthest lies {times:.1f} times as far from "
            "the mean as 99% of the rows, so the maps fit this row at the cost of others. Look for damaged values.",
        )


def _tails(name: str, radii: Floats, diameter: Diameter, farthest: Farthest | None = None) -> Iterator[Alert]:
    """The alert about a diameter that a few rows determine: it makes every epsilon look small."""
    bulk = 2 * float(np.quantile(radii, 0.99))
    if len(radii) >= ENOUGH and diameter.lower > 2 * bulk:
        decide = held_by(radii, far_out(radii, farthest), farthest) > DECIDE
        advice = "They determine R2 too. Look for damaged values." if decide else "Compare R2."
        yield Alert(
            "heavy_tails",
            f"A few outlying rows determine the diameter of {name}: it is {diameter.lower / bulk:.1f} times as wide as "
            f"the ball around 99% of its rows. Without these rows every epsilon would be about that many times larger. "
            f"{advice}",
        )
    if not diameter.exact:
        yield Alert(
            "diameter_bracket",
            f"The diameter of {name} lies between {diameter.lower:.6g} and {diameter.upper:.6g}; epsilon divides by "
            "the lower bound, so it is exact or too large.",
        )

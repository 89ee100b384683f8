"""Rows that are judged as `compare` does it, up to the influences of the rows."""

from nearid.arrays import open_rows, pair_rows
from nearid.base.progress import silent
from nearid.engines.local import LOCAL
from nearid.groups.ladder import GROUPS
from nearid.questions.compare.errors import Fits, evaluate, gather, held_out_maps
from nearid.questions.compare.intervals import influences

LADDER = [group for group in GROUPS.values() if group.prepare is None]


def gathered_of(x, y, blocks=None, folds=5, seed=0, **options):
    """Moments of the folds."""
    options = {"translation": True, "scale": True, "ridge": 0.0} | options
    return gather(
        pair_rows(open_rows(x), open_rows(y)),
        folds,
        options,
        seed,
        together=blocks,
        drop_nonfinite=False,
        prepare=(),
        engine=LOCAL,
        progress=silent,
    )


def judged(x, y, blocks=None, groups=LADDER, seed=0, **options):
    """Moments and fits, the rows' errors, and influences."""
    gathered = gathered_of(x, y, blocks, seed=seed, **options)
    # Correlations, which take longer than the rest, are no part of errors and influences.
    fits = Fits(*held_out_maps(gathered, groups), None, None)
    seen = evaluate(gathered, fits)
    return gathered, seen, influences(gathered, groups, fits, seen.errors, seen.spread)

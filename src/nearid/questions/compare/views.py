"""Small summaries of a comparison for the eye."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearid.arrays import Pair
from nearid.groups.fits import apply, correlation, fit_permutation
from nearid.groups.ladder import Group
from nearid.moments import Floats, PairMoments, eigen
from nearid.questions.compare.evaluate import Options
from nearid.questions.compare.result import Views

BINS = 80
MAP_COLUMNS = 64
OVERLAY_ROWS = 800


def views(
    pair: Pair,
    kept: np.ndarray | None,
    moments: PairMoments,
    groups: Sequence[Group],
    options: Options,
    errors: Floats,
    diameter: float,
    seed: int,
) -> Views:
    """Histograms, spectra, the map of matched columns and a 2-D overlay.

    Maps here are fitted on all rows: they are for looking at, the figures are held out.
    """
    epsilon = errors / diameter
    edges = np.linspace(0, float(np.quantile(epsilon, 0.999)) or 1.0, BINS + 1)
    counts = {g.name: np.histogram(np.minimum(e, edges[-1]), edges)[0] for g, e in zip(groups, epsilon, strict=True)}
    rho, matched = _matched(moments)
    return Views(
        edges,
        counts,
        _shares(moments.xx, moments.n),
        _shares(moments.yy, moments.n),
        rho,
        matched,
        _overlay(pair, kept, moments, groups, options, seed),
    )


def _shares(scatter: Floats, n: int) -> Floats:
    values = np.clip(eigen(scatter, n)[0], 0, None)
    return np.asarray(values / values.sum())


def _matched(moments: PairMoments) -> tuple[Floats, np.ndarray]:
    """|Correlation| with columns in the order of their matches, strongest first."""
    rho = np.abs(correlation(moments))
    fit = fit_permutation(moments)
    targets = np.flatnonzero(fit.weights)
    sources = fit.columns[targets]
    order = np.argsort(-rho[sources, targets], kind="stable")[:MAP_COLUMNS]
    sources, targets = sources[order], targets[order]
    return rho[np.ix_(sources, targets)], np.stack([sources, targets], axis=1)


def _overlay(
    pair: Pair,
    kept: np.ndarray | None,
    moments: PairMoments,
    groups: Sequence[Group],
    options: Options,
    seed: int,
) -> dict[str, Floats]:
    """Both runs in the plane of the target's first two principal components, in units of its size."""
    rows = np.arange(pair.n) if kept is None else np.flatnonzero(kept)
    if len(rows) > OVERLAY_ROWS:
        rows = np.sort(np.random.default_rng([seed, 2]).choice(rows, OVERLAY_ROWS, replace=False))
    x, y = pair.take(rows)
    vectors = eigen(moments.yy, moments.n)[1]
    # In units of the target's size: what is drawn has no units, and may come in any.
    plane = vectors[:, :2] / np.sqrt(np.trace(moments.yy) / moments.n)
    pictures = {"target": (y - moments.mean_y) @ plane}
    # The source as it is, in its own first columns where the widths differ, brought to the target's size.
    width = min(x.shape[1], y.shape[1])
    unit = np.sqrt(np.trace(moments.yy) / (np.trace(moments.xx) or 1.0))
    pictures["as it is"] = ((x - moments.mean_x) * unit)[:, :width] @ plane[:width]
    for g in groups:
        pictures[g.name] = (apply(g.fitted(moments, options), x) - moments.mean_y) @ plane
    return {k: v if v.shape[1] == 2 else np.hstack([v, np.zeros_like(v)]) for k, v in pictures.items()}

"""The view of bi-Lipschitz constants: tables, figures and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nearid.geometry.constants import SHARES, Constants, Distribution, Isometry
from nearid.show.figures import SOURCE, TARGET, Curve, Figure, Lines
from nearid.show.view import BAD, CAREFUL, GOOD, Cell, Column, Row, Table, View, counted, number

if TYPE_CHECKING:
    from nearid.geometry.bounds import RigidBound
    from nearid.questions.lipschitz.result import BiLipschitz

# Of the histogram of L, and the least range of its logarithm to base 10.
BINS, NARROWEST = 40, 1e-3


def view(c: BiLipschitz) -> View:
    """The view of a measurement."""
    return View(
        question="Does this decoder preserve distances?",
        subject=c.name,
        headline=headline(c),
        colour=colour(c),
        alerts=c.alerts,
        tables=[_table(c)],
        facts=dict(facts(c)),
        figures=_figures(c),
        provenance=c.provenance,
    )


def colour(c: BiLipschitz) -> str:
    """Good if the theorem applies, careful if it does not or is undecided, bad if there is no finite constant.

    Random directions give only lower bounds of L, so they never lead to good.
    """
    if not np.isfinite(c.constants.local.maximum.value):
        return BAD
    return GOOD if c.exact is not None and c.scaled_bound.applies else CAREFUL


def headline(c: BiLipschitz) -> str:
    """The outcome in a sentence."""
    best = c.constants
    if colour(c) == BAD:
        return "No: some directions of the latents change no output, so the decoder is not bi-Lipschitz"
    mean, largest, free = (number(v) for v in (best.local.mean.value, best.local.maximum.value, best.scale_free))
    sizes = f"{mean} on average and {largest} at its largest ({free} under the best scale)"
    if c.exact is None:
        sizes = f"at least {sizes}"
    if not c.scaled_bound.applies:
        return f"No: the decoder is too far from an isometry for Theorem 1. L is {sizes}"
    if c.exact is not None:
        kind = "an isometry" if c.bound.applies else "a scaled isometry"
        return f"Nearly: the decoder is near enough to {kind} for Theorem 1. L is {sizes}"
    few = counted(c.directions, "random direction")
    return f"Undecided: {few} cannot show whether the decoder is near an isometry. L is {sizes}"


def facts(c: BiLipschitz) -> Iterator[tuple[str, str]]:
    """The other measurements as sentences, by name."""
    if colour(c) != BAD:
        yield "Maximum", _largest(c)
    if c.isometry is not None:
        i = c.isometry
        low, middle, high = (_shown(q) for q in i.condition)
        kind = (
            ""
            if np.isnan(i.anisotropy)
            else f" {_percent(i.anisotropy)} of the variance of their logarithms lies within points (conformal: 0%)."
        )
        yield (
            "Dynamical isometry",
            f"singular values from {_shown(i.smallest)} to {_shown(i.largest)}, median {_shown(i.quantiles[1])}; "
            f"median condition number {middle} ({low} to {high} for 90% of the points).{kind}",
        )
    p = c.pairwise
    yield (
        "Pairs",
        f"distances change by factors from {_shown(p.least)} to {_shown(p.greatest)}, median "
        f"{_shown(p.quantiles[1])}. The global constant is at least {_shown(p.constant)}, or {_shown(p.scale_free)} "
        f"under the best scale ({counted(p.pairs, 'pair')}).",
    )
    yield "Theorem 1, rigid motions", _bounded(c.bound)
    yield "Theorem 1, with one scale", _bounded(c.scaled_bound)


def _bounded(b: RigidBound) -> str:
    """What Theorem 1 says, proven and given apart."""
    if not b.applies:
        size = f"{number(b.lipschitz)} or more" if np.isfinite(b.lipschitz) else "infinite"
        return f"does not apply: it requires L below 1.414, but L is {size}."
    # What was measured is a lower bound of L over all latents: the theorem is proven, that it applies is not.
    proven = (
        f"if L is nowhere larger than {number(b.lipschitz)}, it is proven that error / diameter <= c * sqrt(L^2 - 1) = "
        f"c * {number(b.rate)}, where c depends only on the dimension."
    )
    if b.epsilon is None:
        return f"{proven} No c was given."
    return f"{proven} With the given c = {b.constant:g} the bound is {number(b.epsilon)}."


def _shown(value: float) -> str:
    """A figure for people, infinite ones too."""
    return "inf" if np.isposinf(value) else number(value)


def _largest(c: BiLipschitz) -> str:
    """How far the largest constant can be trusted."""
    beyond = _percent(c.constants.local.maximum.beyond)
    if c.exact is not None:
        return f"a lower bound of the supremum. With 95% confidence at most {beyond} of such latents exceed it."
    drawn = counted(c.directions, "random direction")
    return (
        f"the largest over {drawn} at each point. With 95% confidence at most {beyond} of such latents give more over "
        "as many directions. Other directions may give more at any point."
    )


def _percent(share: float) -> str:
    # Two digits, but 100% rather than 1e+02%.
    return f"{float(f'{100 * share:.2g}'):g}%"


def _table(c: BiLipschitz) -> Table:
    quantiles = [Column("median" if share == 0.5 else f"{share:.0%}", wide=share in (0.05, 0.99)) for share in SHARES]
    columns = [Column("over"), Column("mean"), *quantiles, Column("maximum"), Column("of half", wide=True)]
    rows = []
    for over, constants in _kinds(c).items():
        rows.append(Row([over, *_cells(constants.local)]))
        rows.append(Row([f"scaled by {constants.scale:.3g}", *_cells(constants.scaled)], faint=True))
    sizes = f"{counted(c.n, 'point')}, {counted(c.latents, 'latent')} -> {counted(c.outputs, 'output')}"
    return Table(f"local bi-Lipschitz constants at {sizes}", columns, rows)


def _kinds(c: BiLipschitz) -> dict[str, Constants]:
    sampled = {counted(c.directions, "random direction"): c.sampled}
    return sampled if c.exact is None else {**sampled, "all directions": c.exact}


def _cells(d: Distribution) -> list[Cell]:
    values = [*(q.value for q in d.quantiles.values()), d.maximum.value, d.maximum.of_half]
    mean = d.mean if np.isfinite(d.mean.value) else _shown(d.mean.value)
    return [mean, *map(_shown, values)]


def _figures(c: BiLipschitz) -> list[Figure]:
    over = "; over all directions it may be far larger" if c.exact is None else " and over all directions"
    caption = (
        f"Local constant L over random directions{over}. With a long right tail, a few latents decide the maximum."
    )
    figures: list[Figure] = [Lines("Local constants", caption, "L", "share of points", _histogram(c), log_x=True)]
    if c.isometry is not None:
        caption = (
            "Median over points and a band with 90% of them. An isometry gives 1 everywhere, a scaled one a flat line."
        )
        title = "Singular values of the Jacobians"
        figures.append(Lines(title, caption, "rank", "singular value", _spectrum(c.isometry), log=True))
    return figures


def _histogram(c: BiLipschitz) -> dict[str, Curve]:
    """Shares of points by their local constant; infinite ones are not drawn."""
    logs = {over: np.log10(each.values[np.isfinite(each.values)]) for over, each in _kinds(c).items()}
    together = np.concatenate(list(logs.values()))
    low, high = (together.min(), together.max()) if len(together) else (0.0, 0.0)
    # An isometry's constants differ by rounding alone: bins have some width all the same.
    edges = np.linspace(low, max(high, low + NARROWEST), BINS + 1)
    middle = 10 ** ((edges[1:] + edges[:-1]) / 2)
    return {
        over: Curve(middle, np.histogram(values, edges)[0] / c.n, colour, steps=True)
        for (over, values), colour in zip(logs.items(), (SOURCE, TARGET), strict=False)
    }


def _spectrum(isometry: Isometry) -> dict[str, Curve | list[Curve]]:
    """Singular values by rank: the median over points and a band; zeros have no place on a logarithmic axis."""
    low, middle, high = np.where(isometry.spectrum > 0, isometry.spectrum, np.nan).T
    rank = np.arange(1, len(middle) + 1)
    band = [Curve(rank, end, TARGET, dash="dot") for end in (low, high)]
    return {"median": Curve(rank, middle, TARGET, markers=True), "5% and 95%": band}

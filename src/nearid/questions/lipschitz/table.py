"""Bi-Lipschitz constants as a table for a terminal, and the words of their page."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nearid.questions.compare.tables import WIDE, number, span, warned
from nearid.show.view import counted

if TYPE_CHECKING:
    from nearid.geometry.bounds import RigidBound
    from nearid.geometry.constants import Distribution
    from nearid.questions.lipschitz.result import BiLipschitz

HEADS = ("mean", "95% interval", "5%", "median", "95%", "99%", "maximum", "of half")


def as_text(found: BiLipschitz, width: int = 120) -> str:
    """Render without colours."""
    buffer = StringIO()
    Console(file=buffer, width=width, no_color=True).print(render(found, width))
    return buffer.getvalue().rstrip()


def render(found: BiLipschitz, width: int) -> RenderableType:
    """The conclusion, the constants, what else was measured and the cautions, for so many columns of text."""
    colour = {"good": "green", "careful": "yellow", "bad": "red"}[standing(found)]
    panel = Panel(Text(headline(found), style=f"bold {colour}"), title=escape(found.name), border_style=colour)
    told = [Text(f"{name}: {sentence}") for name, sentence in facts(found)]
    return Group(panel, _table(found, width), *told, *warned(a.message for a in found.alerts))


def standing(found: BiLipschitz) -> str:
    """Whether the theorem applies (good), it does not or none can tell (careful), or there is no constant (bad).

    Random directions give lower bounds of L, from which nothing good follows.
    """
    if not np.isfinite(found.constants.local.maximum.value):
        return "bad"
    return "good" if found.exact is not None and found.scaled_bound.applies else "careful"


def headline(found: BiLipschitz) -> str:
    """The outcome in a sentence."""
    c = found.constants
    if standing(found) == "bad":
        return "Not bi-Lipschitz: some directions of the latents change nothing"
    mean, largest, free = (number(v) for v in (c.local.mean, c.local.maximum.value, c.scale_free))
    near = "near enough to an isometry" if found.scaled_bound.applies else "too far from an isometry"
    if found.exact is not None:
        return f"L is {mean} on average, {largest} at most ({free} under the best scale): {near} for Theorem 1"
    sizes = f"L is at least {mean} on average and {largest} at its largest ({free} under the best scale)"
    if not found.scaled_bound.applies:
        return f"{sizes}: {near} for Theorem 1"
    alone = counted(found.directions, "random direction", "random directions")
    return f"{sizes}: {alone} alone cannot tell whether that is {near} for Theorem 1"


def sizes(found: BiLipschitz) -> str:
    """How many points, latents and outputs."""
    latents, outputs = counted(found.latents, "latent", "latents"), counted(found.outputs, "output", "outputs")
    return f"local bi-Lipschitz constants at {counted(found.n, 'point', 'points')}, {latents} -> {outputs}"


class Line(NamedTuple):
    """A row of the table: its title, whether it is under the best scale, and its cells in the order of HEADS."""

    title: str
    is_scaled: bool
    cells: list[str]


def lines(found: BiLipschitz) -> Iterator[Line]:
    """Rows of the table."""
    kinds = [(counted(found.directions, "random direction", "random directions"), found.sampled)]
    if found.exact is not None:
        kinds.append(("all directions", found.exact))
    for title, c in kinds:
        yield Line(title, False, _cells(c.local))
        yield Line(f"scaled by {c.scale:.3g}", True, _cells(c.scaled))


def facts(found: BiLipschitz) -> Iterator[tuple[str, str]]:
    """What was measured besides, name by name, in sentences."""
    if standing(found) != "bad":
        yield "Maximum", _largest(found)
    if found.isometry is not None:
        i = found.isometry
        low, middle, high = (shown(q) for q in i.condition)
        kind = (
            ""
            if np.isnan(i.anisotropy)
            else f" {_percent(i.anisotropy)} of the variance of their logarithms is within points (conformal: 0%)."
        )
        yield (
            "Dynamical isometry",
            f"singular values from {shown(i.smallest)} to {shown(i.largest)}, median {shown(i.quantiles[1])}; "
            f"condition number {middle} in the median ({low} to {high} for 90% of points).{kind}",
        )
    p = found.pairwise
    yield (
        "Pairs",
        f"distances change by factors from {shown(p.least)} to {shown(p.greatest)}, median {shown(p.quantiles[1])}: no "
        f"global constant below {shown(p.constant)}, or {shown(p.scale_free)} under the best scale "
        f"({counted(p.pairs, 'pair', 'pairs')}).",
    )
    yield "Theorem 1, rigid motions", bounded(found.bound)
    yield "Theorem 1, with one scale", bounded(found.scaled_bound)


def bounded(b: RigidBound) -> str:
    """What Theorem 1 says, proven and given apart."""
    if not b.applies:
        size = f"{number(b.lipschitz)} or more" if np.isfinite(b.lipschitz) else "infinite"
        return f"silent: it asks for L below 1.414, and L is {size}."
    # What was measured is a lower bound of L over all latents: the theorem is proven, that it applies is not.
    proven = (
        f"if L is no larger than {number(b.lipschitz)}, error / diameter <= c * {number(b.rate)} = c * sqrt(L^2 - 1) "
        "(c depends on the dimension alone: proven)"
    )
    if b.epsilon is None:
        return f"{proven}; no c was given."
    return f"{proven}; with the given c = {b.constant:g}: {number(b.epsilon)}."


def shown(value: float) -> str:
    """A figure for people, infinite ones too."""
    return "inf" if np.isposinf(value) else number(value)


def _largest(found: BiLipschitz) -> str:
    """How far the largest constant can be trusted."""
    beyond = _percent(found.constants.local.maximum.beyond)
    if found.exact is not None:
        return f"a lower bound of the supremum; with 95% confidence at most {beyond} of such latents exceed it."
    drawn = counted(found.directions, "random direction", "random directions")
    return (
        f"the largest over {drawn} at each point. With 95% confidence at most {beyond} of such latents give more over "
        "as many; along others any of them may."
    )


def _percent(share: float) -> str:
    # Two digits, but 100% rather than 1e+02%.
    return f"{float(f'{100 * share:.2g}'):g}%"


def _cells(d: Distribution) -> list[str]:
    values = [q.value for q in d.quantiles]
    return [shown(d.mean), span(d.low, d.high), *map(shown, values), shown(d.maximum.value), shown(d.maximum.of_half)]


def _table(found: BiLipschitz, width: int) -> Table:
    table = Table(
        title=sizes(found),
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1) if width >= WIDE else (0, 0, 0, 1),
    )
    # A narrow terminal shows the mean, the median and the maximum.
    columns = [k for k, head in enumerate(HEADS) if width >= WIDE or head in ("mean", "median", "95%", "maximum")]
    table.add_column("over", no_wrap=True)
    for k in columns:
        table.add_column(HEADS[k], justify="right", no_wrap=True)
    for line in lines(found):
        title = f"  {line.title}" if line.is_scaled else line.title
        table.add_row(title, *(line.cells[k] for k in columns), style="dim" if line.is_scaled else "")
    return table

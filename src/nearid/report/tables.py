"""Comparisons as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from nearid.identifiability.result import Comparison, GroupResult

COLOURS = {"permutation": "green", "rigid": "cyan", "linear": "yellow", "none": "red"}


def number(value: float, digits: int = 3) -> str:
    """A figure for people: fixed digits, or scientific where those would show nothing."""
    if not np.isfinite(value):
        return "-"
    return f"{value:.1e}" if 0 < abs(value) < 10**-digits else f"{value:.{digits}f}"


def span(low: float, high: float, digits: int = 3) -> str:
    """An interval for people."""
    return f"[{number(low, digits)}, {number(high, digits)}]" if np.isfinite(low) else ""


def as_text(found: Comparison | Iterable[Comparison], width: int = 120) -> str:
    """Render without colours."""
    buffer = StringIO()
    Console(file=buffer, width=width, no_color=True).print(render(found))
    return buffer.getvalue().rstrip()


def render(found: Comparison | Iterable[Comparison]) -> RenderableType:
    """A comparison in full, or several as one row each."""
    from nearid.identifiability.result import Comparison

    return _one(found) if isinstance(found, Comparison) else many(found)


def _one(c: Comparison) -> RenderableType:
    parts: list[RenderableType] = [_verdict(c), _ladder(c)]
    parts.append(_similarity(c))
    if c.reverse is not None:
        parts.append(_ladder(c.reverse))
    parts.extend(_alerts(a.message for a in c.alerts))
    return Group(*parts)


def _verdict(c: Comparison) -> Panel:
    colour = COLOURS[c.verdict.group]
    head = Text(f"{headline(c)}\n", style=f"bold {colour}")
    head.append(c.verdict.reason, style="default not bold")
    return Panel(head, title=f"{escape(c.names[0])} -> {escape(c.names[1])}", border_style=colour)


def headline(c: Comparison) -> str:
    """The verdict in a line."""
    if c.verdict.group == "none":
        return "Not the same representation up to any group of the ladder"
    title = {"permutation": "a signed permutation", "rigid": "a rigid motion", "linear": "a linear map"}
    return f"The same representation, {c.verdict.strength}, up to {title[c.verdict.group]}"


def _ladder(c: Comparison) -> Table:
    table = Table(
        title=f"{escape(c.names[0])} -> {escape(c.names[1])}: error / diameter, held out (n = {c.n:,}, "
        f"d = {c.dims[0]} -> {c.dims[1]})",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("group")
    for head in ("mean (95% interval)", "median", "95%", "max", "chance", "R2 (95% interval)"):
        table.add_column(head, justify="right")
    if c.in_sample:
        table.add_column("in sample", justify="right")
    for name, g in c.groups.items():
        chosen = "bold" if name == c.verdict.group else ""
        table.add_row(*_ladder_row(name, g, c.in_sample), style=chosen)
    return table


def _ladder_row(name: str, g: GroupResult, in_sample: dict[str, GroupResult] | None) -> list[str]:
    e = g.epsilon
    row = [name, f"{number(e.mean)} {span(e.low, e.high)}", number(e.median), number(e.q95), number(e.max)]
    row += [number(g.chance), f"{number(g.r2)} {span(g.r2_low, g.r2_high)}"]
    if in_sample:
        row.append(number(in_sample[name].epsilon.mean))
    return row


def _similarity(c: Comparison) -> Text:
    s, chance = c.similarity, c.chance_similarity
    parts = (
        ("CCA", float(np.mean(s.cca)), float(np.mean(chance.cca))),
        ("SVCCA", s.svcca, chance.svcca),
        ("linear CKA", s.cka, chance.cka),
    )
    said = ";  ".join(f"{name} {number(v)} (chance {number(w)})" for name, v, w in parts)
    kind = "exact" if c.diameter.exact else "lower bound"
    return Text(f"{said};  diameter {c.diameter.lower:.6g} ({kind})", style="dim")


def _alerts(messages: Iterable[str]) -> list[Text]:
    return [Text(f"! {m}", style="yellow") for m in messages]


def many(found: Iterable[Comparison]) -> RenderableType:
    """Several comparisons, a row each, as in a paper's table."""
    results = list(found)
    table = Table(
        title="mean error / diameter, held out (± half of the 95% interval)", title_justify="left", box=SIMPLE_HEAD
    )
    table.add_column("source", overflow="fold")
    table.add_column("target", overflow="fold")
    groups = list(results[0].groups)
    for name in groups:
        table.add_column(name, justify="right", no_wrap=True)
    for head in ("best R2", "CCA", "verdict"):
        table.add_column(head, justify="right")
    for c in results:
        cells = [f"{number(e.mean)} ±{number((e.high - e.low) / 2)}" for e in (g.epsilon for g in c.groups.values())]
        table.add_row(
            escape(c.names[0]),
            escape(c.names[1]),
            *cells,
            number(max(g.r2 for g in c.groups.values())),
            number(float(np.mean(c.similarity.cca))),
            Text(f"{c.verdict.group} ({c.verdict.strength})", style=COLOURS[c.verdict.group]),
        )
    said = {a.message for c in results for a in c.alerts}
    return Group(table, *_alerts(sorted(said)))

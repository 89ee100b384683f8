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

from nearid.groups.ladder import GROUPS

if TYPE_CHECKING:
    from nearid.questions.compare.result import Comparison

# From so many columns of text on, a table shows all it has.
WIDE = 105

COLOURS = {name: group.colour for name, group in GROUPS.items()} | {"none": "red", "undefined": "yellow"}


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
    Console(file=buffer, width=width, no_color=True).print(render(found, width))
    return buffer.getvalue().rstrip()


def render(found: Comparison | Iterable[Comparison], width: int) -> RenderableType:
    """A comparison in full, or several as one row each, for so many columns of text."""
    from nearid.questions.compare.result import Comparison

    return _one(found, width) if isinstance(found, Comparison) else many(found, width)


def _one(c: Comparison, width: int) -> RenderableType:
    parts: list[RenderableType] = [_verdict(c), _ladder(c, width), *_efficiency(c), _similarity(c)]
    if c.reverse is not None:
        parts += [Text(f"\nThe other direction: {verdict_line(c.reverse)}. {c.reverse.verdict.reason}")]
        parts += [_ladder(c.reverse, width), *_efficiency(c.reverse)]
    return Group(*parts, *warned(a.message for a in c.alerts))


def _verdict(c: Comparison) -> Panel:
    colour = COLOURS[c.verdict.group]
    head = Text(f"{headline(c)}\n", style=f"bold {colour}")
    head.append(c.verdict.reason, style="default not bold")
    return Panel(head, title=f"{escape(c.names[0])} -> {escape(c.names[1])}", border_style=colour)


def headline(c: Comparison) -> str:
    """The verdict in a line, and where the other direction differs or is not known, a second one."""
    return ". ".join(filter(None, (verdict_line(c), c.other_direction.text)))


def verdict_line(c: Comparison) -> str:
    """The verdict alone; it names its direction where that is the other one."""
    if c.decided_by_reverse and c.reverse is not None:
        line = verdict_line(c.reverse)
        return f"From {c.names[1]} to {c.names[0]}, the worse direction: {line[0].lower()}{line[1:]}"
    verdict = c.verdict
    if verdict.group == "none":
        return "Not the same representation up to any group of the ladder"
    up_to = f"up to a {GROUPS[verdict.group].title}"
    if c.dims[0] != c.dims[1]:
        return f"The target is contained in the source, {verdict.strength}, {up_to}"
    return {
        "in part": f"Partly the same representation, {up_to}",
        "weakly": f"Only weakly alike, {up_to}",
    }.get(verdict.strength, f"The same representation, {verdict.strength}, {up_to}")


def _ladder(c: Comparison, width: int) -> Table:
    """All figures of each group; where the terminal is narrow, the quantiles go first."""
    table = Table(
        title=f"{escape(c.names[0])} -> {escape(c.names[1])}: error / diameter, held out (n = {c.n:,}, "
        f"d = {c.dims[0]} -> {c.dims[1]})",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1) if width >= WIDE else (0, 0, 0, 1),
    )
    quantiles = ("median", "95%", "max") if width >= WIDE else () if c.in_sample else ("max",)
    for head in ("group", "mean [95% interval]", *quantiles, "chance", "R2 [95% interval]"):
        table.add_column(head, justify="left" if head == "group" else "right", no_wrap=True)
    if c.in_sample:
        table.add_column("in sample", justify="right", no_wrap=True)
    for name, g in c.groups.items():
        e = g.epsilon
        known = {"median": e.median, "95%": e.q95, "max": e.max}
        row = [name, f"{number(e.mean)} {span(e.low, e.high)}", *(number(known[q]) for q in quantiles)]
        row += [number(g.chance), f"{number(g.r2)} {span(g.r2_low, g.r2_high)}"]
        if c.in_sample:
            row.append(number(c.in_sample[name].epsilon.mean))
        table.add_row(*row, style="bold" if name == c.verdict.group else "")
    return table


def _efficiency(c: Comparison) -> list[Text]:
    return [Text(c.efficiency.reason)] if c.efficiency else []


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


def warned(messages: Iterable[str]) -> list[Text]:
    """Cautions, a line each."""
    return [Text(f"! {m}", style="yellow") for m in messages]


def many(found: Iterable[Comparison], width: int) -> RenderableType:
    """Several comparisons, a row each, as in a paper's table; in a narrow terminal without intervals."""
    results = list(found)
    # A fourth group and its efficiency take their room.
    wide = width >= WIDE + (30 if results[0].efficiency else 0)
    table = Table(
        title="mean error / diameter, held out"
        + (" (± half of the 95% interval)" if wide else "")
        + ("; efficiency of ICA in brackets" if results[0].efficiency else ""),
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1) if wide else (0, 0, 0, 1),
    )
    table.add_column("pair", overflow="fold")
    for head in (*results[0].groups, "best R2", *(["CCA"] if wide else []), "verdict"):
        table.add_column(head, justify="right", no_wrap=True)
    for c in results:
        cells = []
        for g in c.groups.values():
            half = (g.epsilon.high - g.epsilon.low) / 2
            cells.append(f"{number(g.epsilon.mean)} ±{number(half)}" if wide else number(g.epsilon.mean))
            if g.name == "ica" and c.efficiency and np.isfinite(c.efficiency.value):
                cells[-1] += f" ({100 * c.efficiency.value:.0f}%)"
        cells.append(number(max(g.r2 for g in c.groups.values())))
        if wide:
            cells.append(number(float(np.mean(c.similarity.cca))))
        strength = f"{c.verdict.strength}, back" if c.decided_by_reverse else c.verdict.strength
        said = f"{c.verdict.group} ({strength})" if wide else f"{c.verdict.group}\n{strength}"
        pair = f"{c.names[0]} -> {c.names[1]}" if wide else f"{c.names[0]}\n-> {c.names[1]}"
        table.add_row(escape(pair), *cells, Text(said, style=COLOURS[c.verdict.group]))
    said_once = {a.message for c in results for a in c.alerts}
    return Group(table, *_directions(results), *warned(sorted(said_once)))


def _directions(results: list[Comparison]) -> list[Text]:
    """Of several comparisons: those whose other direction differs, and how many have one that is not known."""
    known = [c.other_direction for c in results]
    unknown = sum(direction.status == "not computed" for direction in known)
    said = [f"{direction.text}." for direction in known if direction.status == "differs"]
    if unknown:
        said.append(
            f"The other direction of {unknown} of {len(results)} pairs was not computed and may differ: use "
            "--symmetric (symmetric=True)."
        )
    return [Text(sentence) for sentence in said]

"""Maps from heads beside fitted ones as a table for a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nearid.questions.compare.html import environment
from nearid.questions.compare.tables import number, span, warned

if TYPE_CHECKING:
    from nearid.geometry.transforms import Share
    from nearid.questions.heads.result import HeadComparison

COLOURS = {"agree": "green", "in part": "yellow", "disagree": "red", "undetermined": "yellow"}
HEADLINES = {
    "agree": "The heads tell the map between the features",
    "in part": "The heads tell a part of the map between the features",
    "disagree": "The heads do not tell the map between the features",
    "undetermined": "The heads say nothing of the features",
}


def as_text(found: HeadComparison, width: int = 120) -> str:
    """Render without colours."""
    buffer = StringIO()
    Console(file=buffer, width=width, no_color=True).print(render(found, width))
    return buffer.getvalue().rstrip()


def render(found: HeadComparison, width: int) -> RenderableType:
    """The verdict, what was measured, and the cautions."""
    colour = COLOURS[found.verdict.outcome]
    head = Text(f"{headline(found)}\n", style=f"bold {colour}")
    head.append(found.verdict.reason, style="default not bold")
    title = f"{escape(found.names[0])} -> {escape(found.names[1])}"
    table = Table(box=SIMPLE_HEAD, show_header=False)
    for name, value in lines(found):
        table.add_row(name, value)
    return Group(Panel(head, title=title, border_style=colour), table, *warned(a.message for a in found.alerts))


def fragment(found: HeadComparison) -> str:
    """The table alone, for a notebook."""
    template = environment().get_template("heads_fragment.html")
    return template.render(found=found, headline=headline(found), lines=list(lines(found)))


def headline(found: HeadComparison) -> str:
    """The verdict in a line."""
    part = found.verdict.outcome == "agree" and found.compared.heads.matrix is None
    return HEADLINES[found.verdict.outcome] + (", as far as they see them" if part else "")


def lines(found: HeadComparison) -> Iterator[tuple[str, str]]:
    """What was measured, name by name."""
    compared, seen = found.compared, found.compared.seen
    sizes = f"{found.classes:,} classes, {found.width} features, {found.n:,} rows"
    yield "sizes", sizes + (", logits with biases" if found.biased else "")
    for i, d in enumerate(compared.heads.diversity, start=1):
        yield f"diversity of head {i}", ("" if d.holds else "fails: ") + d.note
    if found.pairs is not None:
        yield "pairs", f"the best of {found.pairs.draws} choices: {found.pairs.note}"
    if seen is not None:
        if compared.heads.matrix is None:
            held = f"{seen.dimensions} of {found.width}, with {seen.variance:.1%} of the variance"
            yield "directions that the heads see", held
        there = "" if compared.heads.matrix is not None else " in these"
        yield f"R2{there}, map from heads", _share(seen.heads)
        yield f"R2{there}, fitted map", _share(seen.fitted)
        yield "R2 of differences of logits, nothing fitted", _share(seen.logits)
        yield f"distance of both maps{there}", f"{number(seen.distance)} of the spread of what the fitted one predicts"
    if compared.disagreement is not None and compared.heads.misfit is not None:
        yield "distance of their matrices", f"{number(compared.disagreement)} of the fitted one"
        yield "misfit of the heads to one map", number(compared.heads.misfit)


def _share(share: Share) -> str:
    return f"{number(share.value)} {span(share.low, share.high)}"

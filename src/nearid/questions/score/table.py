"""Scores as tables for a terminal, and the words of their pages."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nearid.groups.ladder import GROUPS
from nearid.measures.declarations import DECLARATIONS
from nearid.questions.compare.tables import COLOURS, WIDE, number, span, warned
from nearid.show.view import counted

if TYPE_CHECKING:
    from nearid.questions.score.resampling import Estimate
    from nearid.questions.score.result import FactorInfo, Measured, Score

# Parts that the table leaves to the plain data: those that the measure's own row tells, and those in raw units.
UNTOLD = {"infom", "disentanglement", "orthogonality_error", "scale", "scale_error"}
UNRECOVERED = "not recovered up to any group of the ladder"
IN_SAMPLE = "* of all rows, as defined, not held out: compare with chance."


def as_text(score: Score, width: int = 120) -> str:
    """Render without colours."""
    buffer = StringIO()
    Console(file=buffer, width=width, no_color=True).print(render(score, width))
    return buffer.getvalue().rstrip()


def render(score: Score, width: int) -> RenderableType:
    """The verdict, the measures, the factors and the cautions, for so many columns of text."""
    parts: list[RenderableType] = [_verdict(score), *_resolved(score), _measures(score, width)]
    if note(score):
        parts.append(Text(note(score), "dim"))
    for each in (score, score.resolved):
        if each is not None:
            parts.append(_factors(each, width))
    return Group(*parts, *warned(told for _, told in alerts(score)))


def headline(score: Score) -> str:
    """The verdict in a line, and the figures of the factors that it does not judge."""
    verdict, judged = score.verdict, score.judged
    if not judged:
        return f"There is no verdict on a group, because all factors are categorical. {_separate(score)}"
    group = None if verdict.group == "none" else f"{verdict.strength}, up to a {GROUPS[verdict.group].title}"
    # A joint verdict of less than nine tenths may hide factors that are lost beside others that are found.
    jointly = group is not None and verdict.strength in ("in part", "weakly") and len(judged) > 1
    if not score.separate:
        which = "Together, the true factors are" if jointly else "The true factors are"
        return f"{which} {f'recovered {group}' if group else UNRECOVERED}"
    kinds = {factor.kind for factor in judged}
    kind = kinds.pop() if len(kinds) == 1 else "numeric"
    count = "Both" if len(judged) == 2 and group else f"{'All' if group else 'The'} {len(judged)}"
    which = f"{count} {kind} factors are" if len(judged) > 1 else f"The {kind} factor is"
    if jointly:
        which = f"Together, the {len(judged)} {kind} factors are"
    return f"{which} {f'recovered {group}' if group else UNRECOVERED}. {_separate(score)}"


def _separate(score: Score) -> str:
    """The factors that the verdict does not judge, and how well one measure recovers them."""
    count = len(score.separate)
    which = "The categorical factor is" if count == 1 else f"The {count} categorical factors are"
    known = {name: [m.factors[f.name].value for f in score.separate if f.name in m.factors] for name, m in _each(score)}
    name = next((name for name in known if len(known[name]) == count), None)
    if name is None:
        return f"{which} scored separately, by the measures below"
    title, ends = DECLARATIONS[name].each.split(",")[0], (number(min(known[name])), number(max(known[name])))
    return f"{which} scored separately: {title} {' to '.join(dict.fromkeys(ends))}"


def _each(score: Score) -> list[tuple[str, Measured]]:
    """Measures that give a figure of each factor; a share of explained variance is the easiest to read."""
    return sorted(score.measures.items(), key=lambda item: item[0] != "r2")


def alerts(score: Score) -> Iterator[tuple[str, str]]:
    """Codes and sentences of a score and of what ICA made of it, each said once."""
    yield from ((a.code, a.message) for a in score.alerts)
    if score.resolved is not None:
        said = {a.message for a in score.alerts}
        yield from ((a.code, f"After ICA: {a.message}") for a in score.resolved.alerts if a.message not in said)


class Line(NamedTuple):
    """A measure or one of its further parts: its title, its figures, and those after ICA."""

    title: str
    is_part: bool
    before: Estimate
    after: Estimate | None


def lines(score: Score) -> Iterator[Line]:
    """Lines of the table of measures."""
    for name, m in score.measures.items():
        later = None if score.resolved is None else score.resolved.measures[name]
        yield Line(starred(m.declared.title, m), False, m.overall, None if later is None else later.overall)
        for part, e in m.parts.items():
            if part not in UNTOLD:
                yield Line(
                    part.replace("infoe", "InfoE").replace("infoc", "InfoC"),
                    True,
                    e,
                    None if later is None else later.parts[part],
                )


def note(score: Score) -> str:
    """What the mark of titles means, where there is one."""
    return "" if all(m.declared.held_out for m in score.measures.values()) else IN_SAMPLE


def starred(title: str, m: Measured) -> str:
    """A title, marked where the measure is not held out."""
    return title + ("" if m.declared.held_out else " *")


def columns(score: Score) -> list[tuple[str, str]]:
    """Name and title of the measures that say something of each factor."""
    return [(n, starred(m.declared.each, m)) for n, m in score.measures.items() if m.factors]


def sizes(score: Score) -> str:
    """How many factors, latents and rows."""
    m, d = len(score.factors), len(score.active)
    return f"{counted(m, 'factor', 'factors')} by {counted(d, 'latent', 'latents')}, n = {score.n:,}"


def kind_of(factor: FactorInfo) -> str:
    """Kind of a factor, whether it was given, and its levels."""
    levels = f", {factor.levels} levels" if factor.kind in ("integer", "categorical") else ""
    return f"{factor.kind}{levels}" + (" (inferred)" if factor.inferred else "")


def _verdict(score: Score) -> Panel:
    colour = COLOURS[score.verdict.group]
    head = Text(f"{headline(score)}\n", style=f"bold {colour}")
    head.append(score.verdict.reason, style="default not bold")
    return Panel(head, title=f"{escape(score.names[0])} -> {escape(score.names[1])}", border_style=colour)


def _resolved(score: Score) -> list[RenderableType]:
    if score.resolved is None:
        return []
    return [Text("After ICA: ").append(f"{headline(score.resolved)}. {score.resolved.verdict.reason}")]


def _figure(e: Estimate) -> str:
    return f"{number(e.value)} {span(e.low, e.high)}".rstrip()


def _measures(score: Score, width: int) -> Table:
    after = score.resolved
    table = _table(f"recovery of {sizes(score)}", width)
    heads = ["value [95% interval]", "chance"] if after is None else ["value", "chance", "after ICA", "chance"]
    if after is not None and width >= WIDE:
        heads = [h if h == "chance" else f"{h} [95% interval]" for h in heads]
    table.add_column("measure", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    brief = after is not None and width < WIDE
    for line in lines(score):
        found = [e for e in (line.before, line.after) if e is not None]
        cells = [c for e in found for c in (number(e.value) if brief else _figure(e), number(e.chance))]
        table.add_row(f"  {line.title}" if line.is_part else line.title, *cells, style="dim" if line.is_part else "")
    return table


def _factors(score: Score, width: int) -> Table:
    table = _table(f"each factor of {escape(score.names[1])} from {escape(score.names[0])}", width)
    shown = columns(score) if width >= WIDE else columns(score)[:4]
    table.add_column("factor", overflow="fold")
    table.add_column("kind", overflow="fold")
    for head in ("latent", *(title for _, title in shown)):
        table.add_column(head, justify="right", overflow="fold")
    for f in score.factors:
        cells = [
            number(score.measures[n].factors[f.name].value) if f.name in score.measures[n].factors else "-"
            for n, _ in shown
        ]
        table.add_row(escape(f.name), kind_of(f), "-" if f.matched is None else str(f.matched), *cells)
    return table


def _table(title: str, width: int) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1) if width >= WIDE else (0, 0, 0, 1))

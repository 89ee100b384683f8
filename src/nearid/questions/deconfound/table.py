"""Deconfounding as tables for a terminal, and the words of its page."""

from __future__ import annotations

import math
from io import StringIO
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nearid.questions.compare.tables import WIDE, number, span, warned
from nearid.questions.deconfound.classifiers import TITLES as CLASSIFIERS
from nearid.questions.deconfound.paired import ALL
from nearid.questions.deconfound.splits import DIRECTIONS

if TYPE_CHECKING:
    from nearid.questions.deconfound.paired import Mean, Paired
    from nearid.questions.deconfound.result import ConditionResult, Deconfounding

LEVEL = 0.05
# Perturbations that a terminal shows; the page and the plain data have all.
SHOWN = 25
BRIEF = {"base": "Base", "pca": "PCA", "random": "PCA + Rand", "ica": "PCA + ICA", "kept": "technical dropped"}
TESTED = (
    "Paired t tests over splits (variance of overlapping folds enlarged after Nadeau and Bengio), over perturbations "
    "for all together (which share controls, so that p is somewhat too small); p corrected by Holm's method within a "
    "score, classifier and direction."
)


def as_text(found: Deconfounding, width: int = 120) -> str:
    """Render without colours."""
    buffer = StringIO()
    Console(file=buffer, width=width, no_color=True).print(render(found, width))
    return buffer.getvalue().rstrip()


def render(found: Deconfounding, width: int) -> RenderableType:
    """The headline, scores with tests of every direction and classifier, batch metrics and cautions."""
    parts: list[RenderableType] = [_verdict(found)]
    for direction, classifier in found.families:
        for score in found.score_names(direction, classifier):
            wanted = score in ("auroc", "sparsity") and (direction, classifier) == found.families[0]
            parts.append(_scores(found, direction, classifier, score, width, whole=wanted))
    parts += [_tests(found, score, width) for score in dict.fromkeys(t.score for t in overall_tests(found))]
    parts += [Text(TESTED, "dim"), _metrics(found, width)]
    parts += [Text(told) for told in trust(found)]
    return Group(*parts, *warned(a.message for a in found.alerts))


def headline(found: Deconfounding) -> str:
    """Where the last condition stands against the first, in a line."""
    test = main_test(found)
    if test is None:
        return "One condition: nothing to compare"
    first, second = BRIEF[test.first], BRIEF[test.second]
    if math.isnan(test.p):
        return f"{second} against {first}: too little to test"
    if test.p_holm >= LEVEL:
        return f"{second} is not told from {first} in batches that were held out"
    better = "better" if test.difference > 0 else "worse"
    return f"{second} tells perturbations {better} than {first} in batches that were held out"


def reason(found: Deconfounding) -> str:
    """The figures behind the headline."""
    test = main_test(found)
    direction, classifier = found.families[0]
    means = ", ".join(f"{BRIEF[c]} {number(found.mean(c).mean)}" for c in conditions(found, direction, classifier))
    said = f"Mean AUROC ({CLASSIFIERS[classifier]}, {DIRECTIONS[direction]}): {means}."
    if test is None or math.isnan(test.p):
        return said
    return (
        f"{said} {BRIEF[test.second]} less {BRIEF[test.first]}: {test.difference:+.3f} {span(test.low, test.high)}, "
        f"p = {number(test.p_holm)} after Holm's correction, over {counted(test)}."
    )


def counted(test: Paired) -> str:
    """What a test is over."""
    what = "perturbation" if test.perturbation == ALL else "split"
    return f"{test.pairs} {what}{'' if test.pairs == 1 else 's'}"


def main_test(found: Deconfounding) -> Paired | None:
    """The test of the headline: ICA (or the last condition) against the first, of all perturbations or the only one."""
    direction, classifier = found.families[0]
    names = conditions(found, direction, classifier)
    if len(names) < 2:
        return None
    last = "ica" if "ica" in names and names[0] != "ica" else names[-1]
    one = len(found.perturbations) == 1
    return found.test(names[0], last, perturbation=next(iter(found.perturbations)) if one else ALL)


def conditions(found: Deconfounding, direction: str, classifier: str) -> list[str]:
    """Conditions that have scores in a direction by a classifier."""
    family = (direction, classifier)
    return list(dict.fromkeys(e.condition for e in found.scores if (e.direction, e.classifier) == family))


def named(score: str) -> str:
    """A score in words."""
    return {"auroc": "AUROC", "auroc_within": "AUROC within batches"}.get(
        score, score.replace("concentration@", "concentration, k = ")
    )


def titled(direction: str, classifier: str, score: str) -> str:
    """Title of a table of scores."""
    name = named(score)
    return f"{name[0].upper()}{name[1:]} ({CLASSIFIERS[classifier]}, {DIRECTIONS[direction]})"


def figure(mean: Mean) -> str:
    """A mean with its standard error, and in how many splits it is defined where that is not in all."""
    defined, every = mean.splits
    part = f" ({defined} of {every} splits)" if 0 < defined < every else ""
    return number(mean.mean) + ("" if math.isnan(mean.se) else f" ±{number(mean.se)}") + part


def marked(test: Paired) -> str:
    """A difference with its interval and corrected p-value."""
    if math.isnan(test.difference):
        return "-"
    p = "" if math.isnan(test.p_holm) else f" p {number(test.p_holm)}"
    return f"{test.difference:+.3f} {span(test.low, test.high)}{p}".strip()


def _verdict(found: Deconfounding) -> Panel:
    test = main_test(found)
    good = test is not None and test.p_holm < LEVEL
    colour = ("green" if test.difference > 0 else "red") if test is not None and good else "yellow"
    head = Text(f"{headline(found)}\n", style=f"bold {colour}")
    head.append(reason(found), style="default not bold")
    return Panel(head, title=escape(f"{found.name}: {sizes(found)}"), border_style=colour)


def sizes(found: Deconfounding) -> str:
    """Rows, columns, batches and perturbations."""
    against = f"against {found.control}" if found.control is not None else "each against all others"
    many = len(found.perturbations)
    return (
        f"n = {found.n:,}, d = {found.width}, {len(found.batches)} batches, {many} "
        f"perturbation{'' if many == 1 else 's'} {against}"
    )


def _table(title: str, width: int) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1) if width >= WIDE else (0, 0, 0, 1))


def _scores(found: Deconfounding, direction: str, classifier: str, score: str, width: int, *, whole: bool) -> Table:
    """A row for each perturbation, or that of all together."""
    table = _table(f"{titled(direction, classifier, score)}: mean ± standard error", width)
    names = conditions(found, direction, classifier)
    table.add_column("perturbation (rows)", overflow="fold")
    for name in names:
        table.add_column(BRIEF[name], justify="right", no_wrap=width >= WIDE)
    listed = list(found.perturbations.items())[:SHOWN] if whole else []
    for perturbation, (positives, _) in listed:
        cells = [_cell(found, c, score, perturbation, direction, classifier) for c in names]
        table.add_row(escape(f"{perturbation} ({positives})"), *cells)
    if len(listed) < len(found.perturbations) and whole:
        table.add_row(f"... {len(found.perturbations) - len(listed)} more", style="dim")
    cells = [_cell(found, c, score, ALL, direction, classifier) for c in names]
    table.add_row("all", *cells, style="bold" if whole else "")
    return table


def _cell(found: Deconfounding, c: str, score: str, perturbation: str, direction: str, classifier: str) -> str:
    for e in found.scores:
        if (e.condition, e.score, e.perturbation, e.direction, e.classifier) == (
            c,
            score,
            perturbation,
            direction,
            classifier,
        ):
            return figure(e.found)
    return "-"


def overall_tests(found: Deconfounding) -> list[Paired]:
    """Tests for all perturbations together, or for the only one."""
    only = next(iter(found.perturbations)) if len(found.perturbations) == 1 else ALL
    return [t for t in found.tests if t.perturbation == only]


def _tests(found: Deconfounding, score: str, width: int) -> Table:
    table = _table(f"Differences of {named(score)} [95% interval], p after Holm's correction", width)
    tests = [t for t in overall_tests(found) if t.score == score]
    families = list(dict.fromkeys((t.direction, t.classifier) for t in tests))
    table.add_column("conditions", overflow="fold")
    for direction, classifier in families:
        table.add_column(f"{CLASSIFIERS[classifier]}, {DIRECTIONS[direction]}", justify="right", overflow="fold")
    cells: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for t in tests:
        cells.setdefault((t.second, t.first), {})[(t.direction, t.classifier)] = marked(t)
    for (second, first), by_family in cells.items():
        table.add_row(f"{BRIEF[second]} - {BRIEF[first]}", *(by_family.get(f, "-") for f in families))
    return table


def trust(found: Deconfounding) -> list[str]:
    """How far the independent components can be trusted, where there are some: a sentence, or none."""
    ica = found.provenance["ica"]
    if ica is None:
        return []
    components, gaussian = found.conditions["ica"].width, ica["gaussian_components"]
    return [
        f"ICA: {components} components of {found.provenance['fitted_rows']:,} rows, {ica['rows_per_parameter']:.2g} "
        f"for each angle of the rotation; {gaussian} {'is' if gaussian == 1 else 'are'} not told from Gaussian ones; "
        f"{'converged' if ica['converged'] else 'not converged'} after {ica['passes']} passes."
    ]


def metric_cells(c: ConditionResult) -> list[str]:
    """Batch metrics of a condition as text."""
    kinds = c.components.kinds
    return [
        number(c.batch_r2),
        number(c.label_r2),
        f"{kinds.count('technical')} / {kinds.count('biological')} / {kinds.count('neither')}",
        f"{number(c.mixing.value)} (LISI {number(c.mixing.lisi, 2)})",
        f"{number(c.replicates.value)} ({number(c.replicates.chance)})",
    ]


METRICS = (
    "batch R2",
    "label R2",
    "technical / biological / neither",
    "batch mixing within labels",
    "replicate mAP (chance)",
)


def _metrics(found: Deconfounding, width: int) -> Table:
    table = _table("Batch metrics; R2 is the mean adjusted share of a component's variance", width)
    table.add_column("condition", overflow="fold")
    for head in METRICS:
        table.add_column(head, justify="right", overflow="fold")
    for c in found.conditions.values():
        table.add_row(c.title, *metric_cells(c))
    return table

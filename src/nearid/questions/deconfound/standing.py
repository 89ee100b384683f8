"""Which condition wins: what it gains in mixing of batches, and what it loses of biology, against the first one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nearid.arrays.names import few
from nearid.base.alerts import Alert
from nearid.measures.replicates import Replicates
from nearid.questions.deconfound.answer import brief, conditions, reference, score_of
from nearid.questions.deconfound.paired import ALL, Paired, corrected, over_labels, over_rows, paired
from nearid.questions.deconfound.plan import CLASSIFIERS, CONDITIONS, CORRECTIONS, DIRECTIONS, KEPT
from nearid.show.view import Column, Row, Table, number, span

if TYPE_CHECKING:
    from nearid.questions.deconfound.result import ConditionResult, Deconfounding

LEVEL = 0.05
# Names of the scores of neighbours, and how they are spoken of.
MIXING, MAP = "mixing", "map"


def neighbour_tests(results: Mapping[str, ConditionResult], labels: np.ndarray, batches: np.ndarray) -> list[Paired]:
    """Mixing and replicate mAP of every condition against the first; labels and batches are of the searched rows."""
    first, *others = results
    tests: dict[str, list[Paired]] = {MIXING: [], MAP: []}
    base = results[first]
    # Cleaning is fitted on all rows, so that their neighbours cannot judge it.
    for name in (other for other in others if other not in KEPT.values()):
        other = results[name]
        at = base.mixing.places
        tested = over_rows(other.mixing.each - base.mixing.each, batches[at])
        # Mixing is a ratio to chance and may be above 1.
        tests[MIXING].append(paired(("", "", MIXING, ALL, first, name), tested, math.inf))
        at = base.replicates.queries
        gaps = other.replicates.precision - base.replicates.precision
        tested = over_labels(gaps, labels[at], batches[at]) if len(at) else over_rows(gaps, batches[at])
        tests[MAP].append(paired(("", "", MAP, ALL, first, name), tested, 1.0))
    return [test for each in tests.values() for test in corrected(each)]


@dataclass(frozen=True)
class Standing:
    """How a condition stands against the first one.

    Attributes
    ----------
    carries, mixes, finds : Paired or None
        Differences of the AUROC in held-out batches, of mixing and of the replicate mAP.
    better, worse : tuple of str
        Perturbations whose AUROC clearly differs, each tested on its own. Few perturbations leave the test of their
        mean hardly any degree of freedom.
    """

    condition: str
    carries: Paired | None
    mixes: Paired | None
    finds: Paired | None
    better: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()

    @property
    def carrying(self) -> int:
        """1 where classifiers clearly carry over better, -1 where worse, and 0 where neither, or where it depends."""
        return _sign(self.carries) or bool(self.better) - bool(self.worse)

    @property
    def loses(self) -> bool:
        """Whether biology is clearly lost: classifiers carry over worse, or replicates are found less."""
        return self.carrying < 0 or _sign(self.finds) < 0

    @property
    def gains(self) -> bool:
        """Whether biology is clearly gained, and none lost."""
        return not self.loses and (self.carrying > 0 or _sign(self.finds) > 0)

    @property
    def verdict(self) -> str:
        """In words."""
        mixed = {1: "mixes batches better", -1: "mixes batches worse", 0: ""}[_sign(self.mixes)]
        if self.loses:
            return f"{mixed}, but loses biology" if _sign(self.mixes) > 0 else _joined("loses biology", mixed)
        return _joined("gains biology" if self.gains else "", mixed) or "no clear difference"


def _joined(*parts: str) -> str:
    return " and ".join(filter(None, parts))


def _sign(test: Paired | None) -> int:
    if test is None or not test.p_holm < LEVEL:
        return 0
    return 1 if test.difference.value > 0 else -1


def standings(result: Deconfounding) -> list[Standing]:
    """Every condition but the first."""
    first, *others = result.conditions
    direction, classifier = result.families[0]
    whole = next(iter(result.perturbations)) if len(result.perturbations) == 1 else ALL
    known = conditions(result, direction, classifier)
    tested = [
        t for t in result.tests if (t.direction, t.classifier, t.score) == (direction, classifier, score_of(result))
    ]
    near = {(t.score, t.second): t for t in result.neighbours}
    each = []
    for name in others:
        mine = [t for t in tested if t.second == name and t.first == reference(known or [first], name)]
        carried = next((t for t in mine if t.perturbation == whole), None)
        better, worse = (
            tuple(t.perturbation for t in mine if t.perturbation != ALL and _sign(t) == sign) for sign in (1, -1)
        )
        each.append(Standing(name, carried, near.get((MIXING, name)), near.get((MAP, name)), better, worse))
    return each


def standing_table(result: Deconfounding) -> list[Table]:
    """All conditions with their gains and losses; folded unless there are corrections."""
    if len(result.conditions) < 2:
        return []
    direction, classifier = result.families[0]
    by_name = {s.condition: s for s in standings(result)}
    first = next(iter(result.conditions))
    known = {s.condition for s in result.scores if (s.direction, s.classifier) == (direction, classifier)}
    rows = []
    for name, c in result.conditions.items():
        s = by_name.get(name)
        tests = (None,) * 3 if s is None else (s.carries, s.mixes, s.finds)
        auroc = result.mean(name, score_of(result)).mean if name in known else None
        # Cleaning was fitted on the rows whose neighbours would be counted.
        values = (auroc, None, None) if name in KEPT.values() else (auroc, c.mixing.value, c.replicates.value)
        cells = [cell for v, t in zip(values, tests, strict=True) for cell in (v, _change(t))]
        rows.append(Row([brief(name), "" if s is None else s.verdict, *cells, c.label_r2]))
    pairs = [(kept, name) for name, kept in KEPT.items() if {kept, name} <= known and name != first]
    cleaned = "".join(f"The change of {brief(kept)} is from {brief(name)}. " for kept, name in pairs)
    titles = ("AUROC", "change", "batch mixing", "change", "replicate mAP", "change")
    return [
        Table(
            f"Gain and loss against {CONDITIONS[first]}, with [95% interval]",
            [Column("condition", left=True), Column("verdict", left=True), *map(Column, titles), Column("label R2")],
            rows,
            note=f"{_winner(result, known)} {cleaned}AUROC {_within(result)}: {CLASSIFIERS[classifier]}, "
            f"{DIRECTIONS[direction]}. A verdict names "
            "differences with p < .05 after Holm's correction, of the mean or of single perturbations. Intervals of "
            "mixing and mAP: jackknife over batches.",
            folded=not corrections(result),
        )
    ]


def corrections(result: Deconfounding) -> list[str]:
    """Conditions that are corrections of batch effects: those of nearid by controls, and those that were given."""
    return [name for name in result.conditions if name in CORRECTIONS or name not in CONDITIONS]


def _change(test: Paired | None) -> str | None:
    if test is None or math.isnan(test.difference.value):
        return ""
    return f"{test.difference.value:+.3f} {span(test.difference.low, test.difference.high)}".strip()


def _winner(result: Deconfounding, known: set[str]) -> str:
    """Who is first in each of the three, in a sentence."""

    def best(values: Mapping[str, float]) -> str:
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        if not finite:
            return "-"
        name = max(finite, key=lambda each: finite[each])
        return f"{result.conditions[name].title} ({number(finite[name])})"

    carried = best({name: result.mean(name, score_of(result)).mean for name in result.conditions if name in known})
    judged = {name: c for name, c in result.conditions.items() if name not in KEPT.values()}
    mixed = best({name: c.mixing.value for name, c in judged.items()})
    found = best({name: c.replicates.value for name, c in judged.items()})
    where = f"{_within(result)} in held-out batches"
    return f"Largest AUROC {where}: {carried}. Best mixed: {mixed}. Most replicates found: {found}."


def loss_alerts(result: Deconfounding) -> list[Alert]:
    """An alert for each correction that loses biology."""
    first = CONDITIONS[next(iter(result.conditions))]
    alerts = []
    for s in standings(result):
        if s.condition not in corrections(result) or not s.loses:
            continue
        clear = "" if _sign(s.carries) < 0 else f" (clearly worse on its own: {few(s.worse)})"
        lost = _joined(
            f"AUROC {_within(result)} {_change(s.carries)}{clear}" if s.carrying < 0 else "",
            f"replicate mAP {_change(s.finds)}" if _sign(s.finds) < 0 else "",
        )
        mixed = f"mixes batches better ({_change(s.mixes)}), but it " if _sign(s.mixes) > 0 else ""
        sentence = f"{CONDITIONS[s.condition]} {mixed}loses biology compared with {first}: {lost}."
        alerts.append(Alert("loses_biology", sentence + _scaled(result, s.condition, first)))
    return alerts


def _within(result: Deconfounding) -> str:
    """Which rows the AUROC of the answer compares."""
    return "within batches" if score_of(result) == "auroc_within" else "over all batches"


def _scaled(result: Deconfounding, condition: str, first: str) -> str:
    """What else differs between a given embedding and Base."""
    one_number = np.ptp(result.conditions[condition].condition.scales) == 0
    if condition in CONDITIONS or first != CONDITIONS["base"] or not one_number:
        return ""
    how = "To compare with the embedding in its own scales, give it too: --also raw=FILE."
    return f" Base has columns of unit variance. {how}"


def activity_table(result: Deconfounding) -> list[Table]:
    """Replicate mAP of each perturbation with its p-value, in the first condition and in the corrections."""
    shown = [next(iter(result.conditions)), *corrections(result)]
    searched = [("all rows of other labels", {name: result.conditions[name].replicates for name in shown})]
    against = {name: result.conditions[name].activity for name in shown}
    tables = []
    known: dict[str, Replicates] = {name: found for name, found in against.items() if found is not None}
    if known:
        searched.insert(0, (f"{result.control} rows", known))
    for what, found in searched:
        codes = sorted({code for each in found.values() for code in each.per_label})
        rows = [
            Row(
                [
                    result.labels[code],
                    *(
                        cell
                        for each in found.values()
                        for cell in (each.per_label.get(code), each.p_adjusted.get(code))
                    ),
                ]
            )
            for code in codes
        ]
        counts = [sum(p < LEVEL for p in each.p_adjusted.values()) for each in found.values()]
        sums = [cell for each, n in zip(found.values(), counts, strict=True) for cell in (each.value, f"{n} below .05")]
        columns = [Column(f"{CONDITIONS[name]}\n{title}") for name in found for title in ("mAP", "adjusted p")]
        tables.append(
            Table(
                f"Replicate mAP in other batches, against {what} of other batches",
                [Column("perturbation", left=True), *columns],
                [*rows, Row(["all", *sums], strong=True)],
                note="p: exact or drawn orders of so many positive and negative rows, adjusted after Benjamini and "
                "Hochberg.",
                folded=True,
            )
        )
    return tables


def scib_table(result: Deconfounding) -> list[Table]:
    """Mixing of batches and conservation of labels as scib-metrics defines them."""
    judged = {name: c for name, c in result.conditions.items() if name not in KEPT.values()}
    known = {brief(name): c.conservation for name, c in judged.items() if c.conservation}
    titles = ("iLISI", "kBET", "batch silhouette", "connectivity", "cLISI", "label silhouette")
    rows = [
        Row([title, c.ilisi, c.kbet, c.silhouette_batch, c.connectivity, c.clisi, c.silhouette_label])
        for title, c in known.items()
    ]
    note = (
        "Each from 0 to 1, where 1 is best: batches mixed (iLISI, kBET, batch silhouette, connectivity of the graph of "
        "neighbours), labels conserved (cLISI, label silhouette). kBET needs labels with 30 rows."
    )
    columns = [Column("condition", left=True), *map(Column, titles)]
    return [Table("Figures of scib-metrics, on at most 2,000 rows", columns, rows, note=note, folded=True)]


def position_table(result: Deconfounding) -> list[Table]:
    """What the position on the plate explains of the components of each condition."""
    rows = []
    for c in result.conditions.values():
        if c.position is None:
            continue
        shares = np.nan_to_num(c.position.share, nan=-1.0)
        top = np.argsort(-shares, kind="stable")[:3]
        largest = ", ".join(f"{k} ({number(c.position.share[k])})" for k in top if shares[k] > 0)
        used = f"{c.position.wells:,}{' controls' if c.position.of_controls else ''}"
        rows.append(Row([c.title, c.position.mean, largest or "-", used]))
    if not rows:
        return []
    columns = [
        Column("condition", left=True),
        Column("mean share"),
        Column("largest", left=True),
        Column("wells", left=True),
    ]
    return [Table("Share of components that the position on the plate explains (row and column)", columns, rows)]

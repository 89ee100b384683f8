"""Alerts of several results in few lines: those that differ in figures and in names alone become one."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from nearid.arrays.names import few
from nearid.base.alerts import Alert

# Source and target of a result, and what to call them where they differ.
Pair = tuple[str, str]
ROLES = ("the source", "the target")
# Results, runs or lists of quoted names that a line names.
SHOWN = 3
# Not digits within words, and not names in quotation marks, as of columns.
FIGURE = r"(?<![\w.'])(?:(?<![\w.'\-])-)?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w'])"
# Names in quotation marks, as of columns, with "and" or commas between several. Not options that somebody may copy.
QUOTED = r"""(?<![\w=])(?:'[^']*'|"[^"]*")(?:(?:, | and )(?:'[^']*'|"[^"]*"))*(?!\w)"""


def joined(results: Sequence[tuple[Pair, Iterable[Alert]]]) -> list[Alert]:
    """Alerts of some results in few lines: those that differ only in numbers and names become one.

    It has the range of the numbers and the first of the quoted names. Alerts of a single result become one only if
    their numbers and quoted names are the same. An alert that names no run begins with the pairs that have it, unless
    all have it.
    """
    lines = Lines(results)
    together: dict[Hashable, list[Alert]] = {}
    for alert in lines.having:
        parts = lines.split(alert)
        kinds = tuple(map(lines.kind, parts[1::2]))
        figures = tuple(part for part in parts[1::2] if part not in lines.runs and lines.count == 1)
        together.setdefault((alert.code, tuple(parts[::2]), kinds, figures), []).append(alert)
    return [lines.told(alike) for alike in together.values()]


class Lines:
    """The alerts of some results, and how they are told."""

    def __init__(self, results: Sequence[tuple[Pair, Iterable[Alert]]]) -> None:
        self.having: dict[Alert, list[Pair]] = {}
        for pair, alerts in results:
            for alert in dict.fromkeys(alerts):
                self.having.setdefault(alert, []).append(pair)
        self.count, self.pairs = len(results), {pair for pair, _ in results}
        self.runs = {name for pair in self.pairs for name in pair if name}
        # A name that begins with another one comes before it.
        names = [rf"(?<![\w']){re.escape(name)}(?![\w'])" for name in sorted(self.runs, key=len, reverse=True)]
        self._slots = re.compile(f"({'|'.join([*names, QUOTED, FIGURE])})")

    def split(self, alert: Alert) -> list[str]:
        """The sentence of an alert; each second part is a figure, quoted names or the name of a run."""
        return self._slots.split(alert.message)

    def kind(self, part: str) -> str:
        """What a second part of a sentence is."""
        return "run" if part in self.runs else "quoted" if part[0] in "'\"" else "figure"

    def told(self, alike: Sequence[Alert]) -> Alert:
        """One alert for those that differ in figures and names alone."""
        subjects = [self._subjects(alert) for alert in alike]
        pairs = list(dict.fromkeys(pair for alert in alike for pair in self.having[alert]))
        if len(alike) == 1 and (subjects[0] or len(pairs) == self.count):
            return alike[0]
        runs = list(dict.fromkeys(name for own in subjects for name in own))
        of_runs = all(len(own) == 1 for own in subjects)
        each = zip(*map(self.split, alike), strict=True)
        words = [self._word(alike, values, of_runs) for values in each]
        # It goes on after a colon; names and abbreviations stay as they are.
        words[0] = re.sub(r"^[A-Z](?=[a-z ])", lambda letter: letter[0].lower(), words[0])
        if of_runs:
            of = few(runs, SHOWN) if len(runs) > SHOWN else " and ".join(filter(None, [", ".join(runs[:-1]), runs[-1]]))
        else:
            of = f"All {self.count} pairs" if len(pairs) == self.count else few(map(" -> ".join, pairs), SHOWN)
        return replace(alike[0], message=f"{of}: {''.join(words)}")

    def _subjects(self, alert: Alert) -> set[str]:
        """Runs that an alert is about: both of its pair, or one that has it wherever it is source, target or either.

        That a sentence has the word is not enough: a run may be called "a".
        """
        named, pairs = self.runs.intersection(self.split(alert)[1::2]), set(self.having[alert])
        if len(pairs) == 1 and named.issuperset(*pairs):
            return named
        return {name for name in named if any(pairs == self._where(name, sides) for sides in ((0,), (1,), (0, 1)))}

    def _where(self, name: str, sides: Sequence[int]) -> set[Pair]:
        return {pair for pair in self.pairs if any(pair[side] == name for side in sides)}

    def _word(self, alike: Sequence[Alert], values: Sequence[str], of_runs: bool) -> str:
        """One place of the sentence: what all alerts say, the range of figures, quoted names, or what the runs are."""
        if len(set(values)) == 1:
            return values[0]
        if self.kind(values[0]) == "quoted":
            names = list(dict.fromkeys(values))
            more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
            return " or ".join([*names[:SHOWN], *more])
        if self.kind(values[0]) == "figure":
            ordered = sorted(values, key=lambda figure: float(figure.replace(",", "")))
            return f"{ordered[0]} to {ordered[-1]}"
        for k, role in enumerate(ROLES):
            if not of_runs and all(value == self.having[a][0][k] for a, value in zip(alike, values, strict=True)):
                return role
        return "each run"

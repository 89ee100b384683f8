"""Which rows are told apart, and which batches are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays.names import few, not_found
from nearid.arrays.tables import as_text
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.plan import DIRECTIONS


class Split(NamedTuple):
    """Rows to learn from and rows of other batches to judge on.

    Splits of one perturbation share the arrays: all of their rows would be many times those of the embedding.

    Attributes
    ----------
    rows : ndarray of int, shape (n,)
        Places of a perturbation and its controls among all rows.
    parts : ndarray of int, shape (n,)
        Fold, or batch, of each of these.
    part : int
        That is held out, or alone learned from.
    alone : bool
        Whether it is learned from.
    """

    rows: np.ndarray
    parts: np.ndarray
    part: int
    alone: bool

    @property
    def train(self) -> np.ndarray:
        """Places of the rows to learn from."""
        return np.asarray(self.rows[(self.parts == self.part) == self.alone])

    @property
    def test(self) -> np.ndarray:
        """Places of the rows to judge on."""
        return np.asarray(self.rows[(self.parts == self.part) != self.alone])


@dataclass(frozen=True)
class Contrast:
    """A perturbation against its controls, or against all other labels.

    Attributes
    ----------
    name : str
    code : int
        Of the label.
    positives, negatives : int
    splits : dict of direction -> list of Split
    """

    name: str
    code: int
    positives: int
    negatives: int
    splits: dict[str, list[Split]]


def batch_folds(positive: np.ndarray, batches: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Fold of each batch, by code; -1 for codes without rows.

    Batches with positive rows are dealt out first, the largest share first, each to the fold with the fewest positive
    rows so far; then the others, each to the fold with the fewest negative rows. Every fold has positive rows where
    there are enough batches of them.
    """
    count = int(batches.max()) + 1
    hits = np.bincount(batches, weights=positive, minlength=count)
    sizes = np.bincount(batches, minlength=count)
    fold = np.full(count, -1)
    loads = np.zeros((folds, 2))
    # A random order first: ties are broken by the seed, not by names.
    order = rng.permutation(count)
    order = order[np.lexsort((-sizes[order], -hits[order]))]
    for batch in order[sizes[order] > 0]:
        rank = loads if hits[batch] else loads[:, ::-1]
        fold[batch] = np.lexsort((rank[:, 1], rank[:, 0]))[0]
        loads[fold[batch]] += (hits[batch], sizes[batch] - hits[batch])
    return fold


def chosen(
    design: Design, perturbations: Sequence[Any] | str | int | None, least: int
) -> tuple[list[int], list[Alert]]:
    """Codes of the labels to tell apart: those that were named, or the most frequent, or all with enough rows."""
    counts, names = design.labels.counts(), design.labels.names
    possible = [int(code) for code in np.argsort(-counts, kind="stable") if code != design.control and counts[code]]
    alerts: list[Alert] = []
    if isinstance(perturbations, int | np.integer):
        if isinstance(perturbations, bool) or perturbations < 1:
            raise InputError(
                f"perturbations must be a whole number from 1 on, or names of labels: not {perturbations}."
            )
        possible = possible[:perturbations]
    elif perturbations is not None:
        wanted = _wanted(perturbations)
        for name in wanted:
            if name not in names:
                raise not_found("The column of labels", "perturbations", name, names)
        possible = [names.index(name) for name in dict.fromkeys(wanted) if names.index(name) != design.control]
        if not possible:
            raise InputError(f"{wanted[0]!r} is the control, which others are told from: name another label.")
    rare = [names[code] for code in possible if counts[code] < least]
    if rare:
        alerts.append(
            Alert(
                "rare_labels",
                f"{len(rare)} labels have fewer than {least} rows and are not evaluated: {few(map(repr, rare[:5]))}"
                f"{' ...' if len(rare) > 5 else ''}. Lower min_rows (--min-rows) to have them.",
            )
        )
    return sorted(code for code in possible if counts[code] >= least), alerts


def _wanted(perturbations: Any) -> list[str]:
    """Names of labels; numbers are read as labels are."""
    if isinstance(perturbations, str):
        perturbations = [name.strip() for name in perturbations.split(",")]
    if not isinstance(perturbations, Sequence | np.ndarray) or not len(perturbations):
        raise InputError(
            f"perturbations takes names of labels, or how many of the most frequent: not {perturbations!r}."
        )
    return [str(as_text(name)).strip() for name in perturbations]


def contrasts(
    design: Design, codes: Sequence[int], directions: Sequence[str], folds: int, random_state: int
) -> tuple[list[Contrast], list[Alert]]:
    """The splits of each perturbation; those that no split can be made for are told and left out."""
    found: list[Contrast] = []
    single: list[str] = []
    fewer: list[str] = []
    lacking: list[str] = []
    apart: list[str] = []
    every = np.arange(design.n)
    for code in codes:
        name = design.labels.names[code]
        positive = design.labels.codes == code
        rows = every if design.control is None else np.flatnonzero(positive | (design.labels.codes == design.control))
        hit, batch = positive[rows], design.batches.codes[rows]
        held = min(len(np.unique(batch[hit])), len(np.unique(batch[~hit])))
        if held < 2:
            single.append(name)
            continue
        if "most" in directions and held < folds:
            fewer.append(f"{name!r} ({held})")
        rng = np.random.default_rng([random_state, 3, code])
        made = {}
        if "most" in directions:
            made["most"] = _most(rows, hit, batch, min(folds, held), rng)
        if "one" in directions:
            made["one"] = _one(rows, hit, batch, folds, rng)
        splits = {way: [s for s in each if _both(positive, s)] for way, each in made.items()}
        lacking += [f"{name!r} ({DIRECTIONS[way]})" for way, each in splits.items() if not each]
        if any(splits.values()):
            if not np.array_equal(np.unique(batch[hit]), np.unique(batch[~hit])):
                apart.append(name)
            found.append(Contrast(name, code, int(hit.sum()), int(len(hit) - hit.sum()), splits))
    alerts = []
    if lacking:
        alerts.append(
            Alert(
                "no_split",
                "No held-out split has the label and what it is told from on both sides, to learn from and to judge "
                f"on: {few(lacking[:5])}{' ...' if len(lacking) > 5 else ''}.",
            )
        )
    if single:
        alerts.append(
            Alert(
                "single_batch_label",
                f"{len(single)} labels (or their controls) are seen in one batch only and cannot be judged in "
                f"another: {few(map(repr, single[:5]))}{' ...' if len(single) > 5 else ''}.",
            )
        )
    if fewer:
        alerts.append(
            Alert(
                "few_batches",
                f"Labels in fewer batches than {folds} folds have as many folds as batches: {few(fewer[:10])}"
                f"{' ...' if len(fewer) > 10 else ''}.",
            )
        )
    if not found:
        said = " ".join(a.message for a in alerts) or "No label has enough rows."
        raise InputError(f"No perturbation can be judged on batches that were held out. {said}")
    if apart:
        alerts.append(
            Alert(
                "unlike_batches",
                f"{len(apart)} of {len(found)} labels are not in the same batches as what they are told from "
                f"({few(map(repr, apart[:5]))}{' ...' if len(apart) > 5 else ''}): AUROC may then tell batches, not "
                "biology, and 0.5 need not be its chance. AUROC within batches is of pairs of one batch alone.",
            )
        )
    return found, alerts


def _both(positive: np.ndarray, split: Split) -> bool:
    """Whether both classes are on both sides; else nothing can be learned, or nothing judged."""
    sides = positive[split.train], positive[split.test]
    return all(side.any() and not side.all() for side in sides)


def _most(rows: np.ndarray, hit: np.ndarray, batch: np.ndarray, folds: int, rng: np.random.Generator) -> list[Split]:
    fold = batch_folds(hit, batch, folds, rng).astype(np.int32)[batch]
    return [Split(rows, fold, k, alone=False) for k in range(folds)]


def _one(rows: np.ndarray, hit: np.ndarray, batch: np.ndarray, most: int, rng: np.random.Generator) -> list[Split]:
    """A split for each of at most so many batches that have both classes, drawn at random."""
    both = np.intersect1d(batch[hit], batch[~hit])
    taken = np.sort(rng.permutation(both)[:most])
    return [Split(rows, batch, int(b), alone=True) for b in taken]

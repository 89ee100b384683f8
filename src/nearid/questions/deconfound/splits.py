"""Which rows are classified, and which batches are held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays.names import few, not_found
from nearid.arrays.tables import as_text
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import listed
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.plan import DIRECTIONS

# Labels that are evaluated if nothing else is asked for: each takes some hundred classifiers.
MOST = 20
ALL_LABELS = "all"
# Rows that a label needs. If fewer than so many labels have them, fewer rows do, but not fewer than the last number.
ROWS, LABELS, FEWEST = 10, 5, 5


class Split(NamedTuple):
    """Training rows, and test rows of other batches.

    Splits of one perturbation share their arrays: separate copies would take many times the memory of the embedding.

    Attributes
    ----------
    rows : ndarray of int, shape (n,)
        Places of a perturbation and its controls among all rows.
    parts : ndarray of int, shape (n,)
        Fold, or batch, of each of these.
    part : int
        The part that is held out, or that is the only training part.
    alone : bool
        Whether this part is the only training part.
    """

    rows: np.ndarray
    parts: np.ndarray
    part: int
    alone: bool

    @property
    def train(self) -> np.ndarray:
        """Indices of the training rows."""
        return np.asarray(self.rows[(self.parts == self.part) == self.alone])

    @property
    def test(self) -> np.ndarray:
        """Indices of the test rows."""
        return np.asarray(self.rows[(self.parts == self.part) != self.alone])


@dataclass(frozen=True)
class Contrast:
    """A perturbation against its controls, or against all other labels.

    Attributes
    ----------
    code : int
        Of the label.
    """

    name: str
    code: int
    positives: int
    negatives: int
    splits: dict[str, list[Split]]


def batch_folds(positive: np.ndarray, batches: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Fold of each batch, by code; -1 for codes without rows.

    Batches with positive rows are assigned first, the largest share first, each to the fold with the fewest positive
    rows so far. Then the others follow, each to the fold with the fewest negative rows. Every fold has positive rows if
    enough batches have some.
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
    design: Design, perturbations: Sequence[Any] | str | int | None, least: int | None, random_state: int = 0
) -> tuple[list[int], list[Alert]]:
    """Codes of the labels to classify: the given ones, the most frequent, or "all" with enough rows.

    Parameters
    ----------
    perturbations
        If None, the most frequent ones, at most `MOST`.
    least : int, optional
        Rows that a label needs. Default: `ROWS`. If fewer than `LABELS` labels have so many, what the label in place
        `LABELS` has, but at least `FEWEST`; and what the most frequent label has if that is less.
    random_state : int
        Seed that chooses among labels of equal frequency.
    """
    counts, names = design.labels.counts(), design.labels.names
    order = np.random.default_rng([random_state, 7]).permutation(len(counts))
    order = order[np.argsort(-counts[order], kind="stable")]
    possible = [int(code) for code in order if code != design.control and counts[code]]
    every = perturbations is None or (perturbations == ALL_LABELS and ALL_LABELS not in names)
    if isinstance(perturbations, int | np.integer):
        if isinstance(perturbations, bool) or perturbations < 1:
            raise InputError(
                f"perturbations must be a whole number from 1 on, or names of labels: not {perturbations}."
            )
        possible = possible[:perturbations]
    elif not every:
        wanted = _wanted(perturbations)
        for name in wanted:
            if name not in names:
                raise not_found("The column of labels", "perturbations", name, names)
        possible = [names.index(name) for name in dict.fromkeys(wanted) if names.index(name) != design.control]
        if not possible:
            raise InputError(
                f"{wanted[0]!r} is the control, which the others are classified against. Name another label."
            )
    most = int(max(counts[possible]))
    alerts = []
    if least is None:
        enough = int(np.sum(counts[possible] >= ROWS))
        common = int(counts[possible[LABELS - 1]]) if len(possible) >= LABELS else most
        least = min(ROWS, max(common, FEWEST), max(most, 2))
        if least < ROWS:
            some = f"Only {enough} of {len(possible)} labels have" if enough else "No label has"
            few_rows = f"{some} {ROWS} rows, so labels with {least} rows or more are evaluated"
            alerts.append(Alert("few_rows_per_label", f"{few_rows}. With so few rows, single labels are uncertain."))
    if most < least:
        raise InputError(
            f"No label has {least} rows: the most frequent one, {names[possible[0]]!r}, has {most}. Lower min_rows "
            "(--min-rows)."
        )
    rare = [names[code] for code in possible if counts[code] < least]
    if rare:
        sentence = f"{len(rare)} labels have fewer than {least} rows and are not evaluated: {few(map(repr, rare))}."
        alerts.append(Alert("rare_labels", f"{sentence} Lower min_rows (--min-rows) to evaluate them."))
    taken = [code for code in possible if counts[code] >= least]
    if perturbations is None and len(taken) > MOST:
        # A label of one batch cannot be judged in another.
        cells = np.unique(np.column_stack([design.labels.codes, design.batches.codes]), axis=0)
        several = np.bincount(cells[:, 0], minlength=len(names)) > 1
        alerts.append(
            Alert(
                "many_labels",
                f"Of {len(taken)} labels, {MOST} are evaluated: the most frequent ones, chosen at random among equally "
                f"frequent ones. To evaluate all: perturbations={ALL_LABELS!r} (--perturbations {ALL_LABELS}), or give "
                "a number or names. Components and batch metrics are of all labels.",
            )
        )
        taken = sorted(taken, key=lambda code: not several[code])[:MOST]
    return sorted(taken), alerts


def _wanted(perturbations: Any) -> list[str]:
    """Names of labels; numbers are read as labels are."""
    if isinstance(perturbations, str):
        perturbations = listed(perturbations, "perturbation")
    if not isinstance(perturbations, Sequence | np.ndarray) or not len(perturbations):
        raise InputError(
            f"perturbations takes names of labels, or how many of the most frequent: not {perturbations!r}."
        )
    return [str(as_text(name)).strip() for name in perturbations]


def contrasts(
    design: Design, codes: Sequence[int], directions: Sequence[str], folds: int, random_state: int
) -> tuple[list[Contrast], list[Alert]]:
    """The splits of each perturbation; perturbations without a possible split are left out, and alerts report them."""
    made: list[Contrast] = []
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
        of_hits, of_others = np.unique(batch[hit]), np.unique(batch[~hit])
        held = min(len(of_hits), len(of_others))
        if held < 2:
            single.append(repr(name))
            continue
        rng = np.random.default_rng([random_state, 3, code])
        possible: dict[str, list[Split]] = {}
        if "most" in directions:
            if held < folds:
                fewer.append(f"{name!r} ({held})")
            fold = batch_folds(hit, batch, min(folds, held), rng).astype(np.int32)[batch]
            possible["most"] = [Split(rows, fold, k, alone=False) for k in range(min(folds, held))]
        if "one" in directions:
            # As many as folds, drawn at random from the batches that have both classes.
            taken = np.sort(rng.permutation(np.intersect1d(of_hits, of_others))[:folds])
            possible["one"] = [Split(rows, batch, int(b), alone=True) for b in taken]
        splits = {way: [s for s in each if _both(positive, s)] for way, each in possible.items()}
        lacking += [f"{name!r} ({DIRECTIONS[way]})" for way, each in splits.items() if not each]
        if any(splits.values()):
            if not np.array_equal(of_hits, of_others):
                apart.append(repr(name))
            made.append(Contrast(name, code, int(hit.sum()), int(len(hit) - hit.sum()), splits))
    sentences = {
        "no_split": (
            lacking,
            "These labels have no split with both classes in the training and in the held-out rows: {}.",
        ),
        "single_batch_label": (
            single,
            f"{len(single)} labels (or their controls) are in one batch only, so no other batch can be held out: {{}}.",
        ),
        "few_batches": (fewer, f"These labels are in fewer than {folds} batches and have one fold for each: {{}}."),
        "unlike_batches": (
            apart,
            f"{len(apart)} of {len(made)} labels are not in the same batches as the rows that they are classified "
            "against ({}). Their AUROC may show the batch rather than biology, and 0.5 need not be its chance level. "
            "AUROC within batches compares rows of one batch alone.",
        ),
    }
    alerts = [Alert(kind, sentence.replace("{}", few(names))) for kind, (names, sentence) in sentences.items() if names]
    if not made:
        why = " ".join(alert.message for alert in alerts) or "No label has enough rows."
        raise InputError(f"No perturbation can be judged in held-out batches. {why}")
    return made, alerts


def _both(positive: np.ndarray, split: Split) -> bool:
    """Whether training and test rows both have both classes."""
    sides = positive[split.train], positive[split.test]
    return all(side.any() and not side.all() for side in sides)

"""The answer in words: biology or batch, and the three or four sentences behind it.

One figure is used everywhere: AUROC within batches, of which a guess has 0.5. Only if no batch holds both kinds of rows
is it AUROC over all batches, and the sentence says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nearid.arrays.names import few
from nearid.base.estimate import Estimate
from nearid.questions.deconfound.paired import ALL, Paired
from nearid.questions.deconfound.partition import Shares
from nearid.questions.deconfound.plan import CLASSIFIERS, CONDITIONS, DIRECTIONS, KEPT
from nearid.show.view import BAD, CAREFUL, GOOD, counted, fixed

if TYPE_CHECKING:
    from nearid.questions.deconfound.result import ConditionResult, Deconfounding

LEVEL = 0.05
# A gain of AUROC that is at most this is no help.
LITTLE = 0.05
# With less than minus this for "either", the first sentence says that effects of batch and label oppose each other.
OPPOSED = 0.05
# Perturbations whose AUROC differ by this are named; so many names are.
FAR_APART, NAMED = 0.2, 3
BRIEF = {"base": "Base", "pca": "PCA", "random": "PCA + Rand", "ica": "PCA + ICA"}
BRIEF |= {kept: f"{BRIEF[name]}, cleaned" for name, kept in KEPT.items()}
# What was done to the embedding, as the subject of a sentence.
DONE = {"pca": "whitening by PCA", **dict.fromkeys(KEPT.values(), "dropping batch components")}


def brief(name: str) -> str:
    """The short name of a condition."""
    return BRIEF.get(name, CONDITIONS.get(name, name))


def headline(result: Deconfounding) -> str:
    """Biology or batch, in one sentence."""
    return _answer(result)[0]


def colour(result: Deconfounding) -> str:
    """The colour of the headline: good where biology carries over and outweighs the batch."""
    return _answer(result)[1]


def sentences(result: Deconfounding) -> list[str]:
    """What the answer rests on: the variance, new batches, technical components, and the cleaned table."""
    every = (_variance(result), _new_batches(result), _technical(result), _cleaned(result))
    return [sentence for sentence in every if sentence]


def _answer(result: Deconfounding) -> tuple[str, str]:
    direction, classifier = result.families[0]
    if not any(math.isfinite(result.mean(c).mean) for c in conditions(result, direction, classifier)):
        return f"There is no answer: {CLASSIFIERS[classifier]} could not be trained on so few rows", CAREFUL
    test = base_test(result)
    if test is None:
        return (
            "Biology and batch cannot be separated: no batch holds both perturbed rows and rows to compare them with",
            BAD,
        )
    batch, label = result.variance.adding_up()[:2]
    more, less = apart(label, batch), apart(batch, label)
    percents = result.variance.percentages[:2]
    batch_first, label_first = (" vs ".join(f"{each}%" for each in order) for order in (percents, percents[::-1]))
    single = _recognised_alone(result, test)
    auroc = test.difference.value + 0.5
    # Equal in every split, so that a t test has no variance to divide by.
    same = math.isnan(test.p) and test.difference.n > 1 and auroc > 0.5
    if math.isnan(test.p) and not same:
        return (
            "There is no clear answer: too few splits or perturbations to test whether classifiers work in new batches",
            CAREFUL,
        )
    what = _perturbations(result)
    # Few perturbations leave the test of their mean hardly any degree of freedom.
    every = len(single) == len(result.perturbations) > 1 and test.p >= LEVEL
    if every:
        what = "all perturbations are"
    if (same or every or test.p < LEVEL) and auroc > 0.5:
        if more:
            why = f"and the label explains more of the variance than the batch ({label_first})"
            return f"Mostly biology: {what} recognised in new batches, {why}", GOOD
        if less:
            why = f"but the batch explains more of the variance than the label ({batch_first})"
            return f"Biology and batch: {what} recognised in new batches, {why}", CAREFUL
        if not math.isfinite(batch.value + label.value):
            return f"Biology: {what} recognised in new batches", GOOD
        why = f"Which of label and batch explains more of the variance is not clear ({label_first})"
        return f"Biology: {what} recognised in new batches. {why}", CAREFUL
    if test.p < LEVEL:
        return "Batch: in new batches classifiers do worse than a guess", BAD
    if single:
        some = f"{len(single)} of {counted(len(result.perturbations), 'perturbation')} ({few(single, NAMED)})"
        return (
            f"Biology in part: {some} {'is' if len(single) == 1 else 'are'} recognised in new batches, but the mean "
            "over all is not clearly above a guess",
            CAREFUL,
        )
    if less and batch.low > 0:
        why = f"and the batch explains more of the variance than the label ({batch_first})"
        return f"Mostly batch: {what} not clearly recognised in new batches, {why}", BAD
    why = f", although the label explains more of the variance than the batch ({label_first})" * more
    return f"Neither is clear: {what} not clearly recognised in new batches{why}", CAREFUL


def apart(larger: Estimate, smaller: Estimate) -> bool:
    """Whether one share is larger than another by intervals that do not overlap."""
    return larger.has_interval and smaller.has_interval and larger.low > smaller.high


def _perturbations(result: Deconfounding) -> str:
    return f"{next(iter(result.perturbations))} is" if len(result.perturbations) == 1 else "perturbations are"


def _variance(result: Deconfounding) -> str:
    """How much of the variance is batch, label, either and neither, with intervals over batches."""
    if not result.variance.percentages:
        return "Variance: there are too few rows to split it between batch and label."
    batch, label, either, rest = result.variance.texts
    unclear = f" Another {either} could be either, because labels and batches occur together."
    if result.variance.either < -OPPOSED:
        unclear = " Their effects oppose each other, so these shares are parts of their sum."
    elif not result.variance.percentages[2]:
        unclear = ""
    return f"Variance of the embedding: the batch explains {batch}, the label {label}.{unclear} {rest} is neither."


def parts(shares: Shares) -> str:
    """The shares of batch and label in a component, and of either if there is some; together at most 100%."""
    batch, label, either, _ = [f"{percent}%" for percent in shares.percentages] or ["-"] * 4
    return f"batch {batch}, label {label}{f', either {either}' if either not in ('0%', '-') else ''}"


def _new_batches(result: Deconfounding) -> str:
    """Whether classifiers carry over to unseen batches, and what helps and harms."""
    direction, classifier = result.families[0]
    how = f"{CLASSIFIERS[classifier]}, {DIRECTIONS[direction]}"
    test = base_test(result)
    name = brief(conditions(result, direction, classifier)[0])
    if test is None:
        value = result.mean(conditions(result, direction, classifier)[0]).mean
        if math.isnan(value):
            return ""
        found = f"New batches ({how}): AUROC over all batches {fixed(value)} with {name}, which may show the batch."
    else:
        e = estimate_of(test)
        interval = f" {_span(e)}" if e.has_interval else f" in all {over(test)}" if test.difference.n > 1 else ""
        range_of = _range(result, test)
        found = (
            f"New batches ({how}): AUROC within batches {fixed(e.value)}{interval} with {name}; a guess has "
            f"0.5{range_of}."
        )
    return " ".join([found, *_helped(result)])


def _helped(result: Deconfounding) -> list[str]:
    """Sentences on what was done to the embedding: what helped, harmed, made no difference, or is open."""
    verdicts: dict[str, list[str]] = {}
    for test in main_tests(result):
        # A rotation at random is there for comparison, not as a remedy. Where nothing is dropped, nothing changes.
        unchanged = test.second in KEPT.values() and test.difference.low == test.difference.high == 0
        if test.second != "random" and not unchanged:
            verdict, figures = _verdict(result, test)
            verdicts.setdefault(verdict, []).append(f"{DONE.get(test.second, brief(test.second))}{figures}")
    order = ("helped", "did harm", "differed between perturbations", "did not help", "made no difference")
    found = [f"{_listed(verdicts.pop(verdict))} {verdict}" for verdict in order if verdict in verdicts]
    found += [f"{_listed(names)} {verdict}" for verdict, names in verdicts.items()]
    # Names that the user gave stay as they are.
    own = tuple(DONE.values())
    return [f"{s[0].upper() if s.startswith(own) else s[0]}{s[1:]}." for s in found]


def _verdict(result: Deconfounding, test: Paired) -> tuple[str, str]:
    """What a condition did to the classifiers, and the figures in brackets."""
    d = test.difference
    first = conditions(result, *result.families[0])[0]
    against = f" against {brief(test.first)}" if test.first != first else ""
    figures = f" ({signed(d)}{against})"
    better, worse = clear(result, test)
    if unlike(result, test):
        parts = [f"{word} for {few(names, NAMED)}" for word, names in (("better", better), ("worse", worse)) if names]
        return "differed between perturbations", f"{figures[:-1]}; {' and '.join(parts)})"
    if math.isnan(test.p):
        return "cannot be tested: there are too few splits or perturbations", figures
    if test.p_holm < LEVEL:
        return ("helped" if d.value > 0 else "did harm"), figures
    if d.low > 0 or d.high < 0:
        # Clear by itself, but not among as many tests.
        return ("may have helped" if d.low > 0 else "may have done harm"), figures
    if d.high > LITTLE:
        return "may or may not help", figures
    return ("made no difference" if d.low >= -LITTLE else "did not help"), figures


def _technical(result: Deconfounding) -> str:
    """Which components are technical, and which columns they are made of."""
    ica = result.conditions.get("ica")
    if result.cleaning is not None and result.cleaning.dropped:
        # The components that the cleaned table lacks, which are not the independent ones.
        c, first = result.cleaning, result.cleaning.dropped[0]
        if isinstance(c.drop, int):
            # So many were asked for, whatever they follow.
            asked = f"{len(c.dropped)} of {counted(c.components, 'batch component')}"
            asked += f" ({c.drop:,} were asked for)" * (len(c.dropped) < c.drop)
            return f"Dropped as asked: {asked}. Variance of the first: {parts(c.partition.of(first.component))}."
        follow = f"{'follows' if len(c.dropped) == 1 else 'follow'} the batch rather than the label"
        strongest = _strongest("Batch", first.component, c.partition.of(first.component), first.features)
        return f"Technical: {len(c.dropped)} of {counted(c.components, 'batch component')} {follow}. {strongest}"
    if ica is None:
        return "" if result.cleaning is None else "Technical: cleaning drops no combination of columns."
    a = ica.components
    if np.isnan(a.batch).all():
        return "Technical: batch and label cannot be separated, so no component is named technical."
    which = [int(k) for k in most_technical(ica) if a.technical[k]]
    if not which:
        none = f"none of {counted(ica.width, 'independent component')} clearly follows the batch on its own"
        if result.cleaning is not None:
            return f"Technical: {none}, and cleaning drops no combination of columns either."
        return f"Technical: {none}. Combinations of columns may: --dry-run shows what -o would drop."
    k = which[0]
    doubt = ""
    if any(ica.doubts) and sum(bool(ica.doubts[j]) for j in which) > len(which) / 2:
        doubt = " Other rows or starts may give other components, so read them together."
    return (
        f"Technical: {len(which)} of {counted(ica.width, 'independent component')} "
        f"{'follows' if len(which) == 1 else 'follow'} the batch rather than the label. "
        f"{_strongest('Independent', k, ica.partition.of(k), ica.features.of_each.get(k, ()))}{doubt}"
    )


def most_technical(c: ConditionResult) -> np.ndarray:
    """Components from the most technical to the most biological: by the shares of batch alone less label alone."""
    batch, label = c.partition.values[:2]
    return np.argsort(-np.nan_to_num(batch - label), kind="stable")


def _strongest(kind: str, component: int, shares: Shares, features: Sequence[tuple[str, float]]) -> str:
    made = ", ".join(f"{name} ({value:+.2f})" for name, value in features[:NAMED])
    of = f" It correlates most with the columns {made}." if made else ""
    return f"{kind} component {component} does so most ({parts(shares)}).{of}"


def _cleaned(result: Deconfounding) -> str:
    """What the cleaned table costs, on rows that it was not fitted on."""
    if result.cleaning is None or not result.cleaning.dropped:
        return ""
    c, cost = result.cleaning, result.cleaning.cost
    label = ""
    if math.isfinite(cost.label_after.value):
        label = (
            f", and the label in new batches with {fixed(cost.label_after.value)} instead of "
            f"{fixed(cost.label_before.value)} ({signed(cost.label_change)})"
        )
    these = "this component" if len(c.dropped) == 1 else "these components"
    return (
        f"Cleaned (ridge regression): without {these} the batch of other rows is predicted with AUROC "
        f"{fixed(cost.batch_after.value)} "
        f"instead of {fixed(cost.batch_before.value)}{label}."
    )


def score_of(result: Deconfounding) -> str:
    """The score of the answer: AUROC within batches, or over all batches where no batch holds both kinds of rows."""
    return "auroc_within" if base_test(result) is not None else "auroc"


def main_tests(result: Deconfounding) -> list[Paired]:
    """The tests of every condition against the one it is compared with, of all perturbations or the only one."""
    names = conditions(result, *result.families[0])
    wanted = {(*result.families[0], score_of(result), reference(names, name), name, overall(result)) for name in names}
    return [
        t for t in result.tests if (t.direction, t.classifier, t.score, t.first, t.second, t.perturbation) in wanted
    ]


def reference(names: Sequence[str], condition: str) -> str:
    """What a condition is compared with: the first one; cleaned rows with the same components of all rows."""
    return next((name for name in names if KEPT.get(name) == condition), names[0])


def base_test(result: Deconfounding, condition: str | None = None) -> Paired | None:
    """The test of a condition (by default the first) against a guess, of all perturbations or the only one."""
    names = conditions(result, *result.families[0])
    wanted = (*result.families[0], condition or names[0], overall(result))
    found = (t for t in result.recognised if (t.direction, t.classifier, t.second, t.perturbation) == wanted)
    return next(found, None)


def estimate_of(test: Paired) -> Estimate:
    """The AUROC of a test against a guess."""
    d = test.difference
    return Estimate(d.value + 0.5, d.low + 0.5, d.high + 0.5, 0.5, d.of, d.n)


def overall(result: Deconfounding) -> str:
    """All perturbations together, or the only one."""
    return next(iter(result.perturbations)) if len(result.perturbations) == 1 else ALL


def over(test: Paired) -> str:
    """How many perturbations or splits a test is over."""
    return counted(test.difference.n, "perturbation" if test.perturbation == ALL else "split")


def conditions(result: Deconfounding, direction: str, classifier: str) -> list[str]:
    """Conditions that have scores in a direction by a classifier."""
    family = (direction, classifier)
    return list(dict.fromkeys(s.condition for s in result.scores if (s.direction, s.classifier) == family))


def _single(tests: Sequence[Paired], whole: Paired) -> list[Paired]:
    """The tests of single perturbations that a test of all together is made of."""
    same = ("direction", "classifier", "score", "first", "second")
    alike = [t for t in tests if all(getattr(t, name) == getattr(whole, name) for name in same)]
    return [t for t in alike if t.perturbation != ALL] if whole.perturbation == ALL else []


def _recognised_alone(result: Deconfounding, whole: Paired) -> list[str]:
    """Perturbations that are recognised, each tested on its own."""
    known = _single(result.recognised, whole)
    return [t.perturbation for t in known if t.p_holm < LEVEL and t.difference.value > 0]


def clear(result: Deconfounding, whole: Paired) -> tuple[list[str], list[str]]:
    """Perturbations of which classifiers clearly work better, and worse, each tested on its own."""
    known = [t for t in _single(result.tests, whole) if t.p_holm < LEVEL]
    return (
        [t.perturbation for t in known if t.difference.value > 0],
        [t.perturbation for t in known if t.difference.value < 0],
    )


def unlike(result: Deconfounding, whole: Paired) -> bool:
    """Whether single perturbations clearly say something else than their mean does."""
    better, worse = clear(result, whole)
    if whole.p_holm < LEVEL:
        return bool(worse if whole.difference.value > 0 else better)
    return bool(better or worse)


def _range(result: Deconfounding, whole: Paired) -> str:
    """The least and the most recognised perturbation, where they are far apart."""
    known = sorted((t.difference.value + 0.5, t.perturbation) for t in _single(result.recognised, whole))
    if not known or known[-1][0] - known[0][0] < FAR_APART:
        return ""
    (low, least), (high, most) = known[0], known[-1]
    return f" (from {fixed(low)} for {least} to {fixed(high)} for {most})"


def signed(e: Estimate) -> str:
    """A difference with its sign and interval."""
    value = fixed(e.value)
    return f"{value if value.startswith('-') else f'+{value}'}{f' {_span(e)}' if e.has_interval else ''}"


def _span(e: Estimate) -> str:
    return f"[{fixed(e.low)}, {fixed(e.high)}]"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

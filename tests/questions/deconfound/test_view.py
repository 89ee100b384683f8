"""What a person sees of deconfounding: the headline, every table and figure."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nearid import deconfound
from nearid.arrays.memory import MemoryRows
from nearid.base.alerts import Alert
from nearid.base.estimate import Estimate
from nearid.folds import row_moments
from nearid.questions.deconfound.answer import base_test, headline, sentences
from nearid.questions.deconfound.conditions import Condition
from nearid.questions.deconfound.features import correlations
from nearid.questions.deconfound.paired import MeanScore
from nearid.questions.deconfound.partition import Shares
from nearid.questions.deconfound.view import _component_map, _component_scatter, mean_cell
from nearid.show.page import page
from nearid.show.terminal import text
from nearid.show.view import BAD, CAREFUL, GOOD


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    labels = rng.choice(["DMSO", "a", "b"], 400)
    batches = rng.integers(0, 6, 400)
    x = rng.laplace(size=(400, 6))
    x[:, 0] += 2.0 * (labels == "a")
    x[:, 1] += 2.0 * (labels == "b")
    x[:, 2] += 3.0 * batches
    x = x @ rng.normal(size=(6, 6))
    return deconfound(x, labels, batches, control="DMSO", classifiers="logistic", folds=3, drop=0.1, top=(1,))


@pytest.fixture(scope="module")
def named():
    rng = np.random.default_rng(1)
    labels, batches = rng.choice(["DMSO", "a"], 400), rng.integers(0, 6, 400)
    x = rng.laplace(size=(400, 4)) + np.outer(labels == "a", [2, 0, 0, 0]) + np.outer(batches % 3, [0, 0, 0, 6])
    table = pd.DataFrame(x, columns=["Cells_Area", "Cells_Noise", "Nuclei_Noise", "Nuclei_Plate"])
    quick = {"classifiers": "logistic", "directions": "most", "folds": 3, "conditions": "base,ica"}
    return deconfound(table, labels, batches, control="DMSO", **quick)


def test_all_parts_are_there(result):
    text = page(result.view)
    for part in (
        headline(result),
        *sentences(result),
        "Where the variance comes from",
        "Share of the variance: the embedding in its own scale, and batch components, the dropped ones first",
        "AUROC (logistic regression, train on most batches)",
        "AUROC (logistic regression, train on one batch)",
        "Sparsity (logistic",
        "Concentration, k = 1",
        "Differences of AUROC, over 2 perturbations [95% interval]",
        "Differences of sparsity, over 2 perturbations [95% interval]",
        "Differences of concentration, k = 1, over 2",
        "6 components of 400 rows, 27 for each angle of the rotation",
        "Nadeau",
        "technical",
        "chance mAP",
        "Paired differences",
        "What components follow: PCA + ICA",
        "the two most biological components, by batch",
        "the two leading components, by label",
        "Base, cleaned",
        "Batch components are the combinations of columns in which batches differ most",
    ):
        assert part in text, part


def changed(result, *, base=None, helped=None, shares=None, alone=1.0):
    """The result with another test of Base against a guess, of ICA against Base (low, value, high, p), and shares."""
    recognised, tests = list(result.recognised), list(result.tests)
    for kind, old, given in (
        (recognised, base_test(result), base),
        (tests, result.test("base", "ica", "auroc_within"), helped),
    ):
        # No perturbation is clear on its own: this is of the mean.
        kind[:] = [t if t == old else replace(t, p_holm=alone) for t in kind]
        if given is not None:
            low, value, high, p = given
            difference = replace(old.difference, low=low, value=value, high=high)
            kind[kind.index(old)] = replace(old, difference=difference, p=p, p_holm=p)
    variance = result.variance
    if shares is not None:
        variance = Shares(*(Estimate(v, v - 0.05, v + 0.05) for v in shares))
    return replace(result, recognised=tuple(recognised), tests=tuple(tests), variance=variance)


CLEAR, OPEN = (0.4, 0.45, 0.49, 0.001), (-0.1, 0.0, 0.1, 0.9)


def test_the_headline_answers_biology_or_batch(result):
    large, small = (0.1, 0.3, 0.0, 0.6), (0.3, 0.1, 0.0, 0.6)
    for base, shares, words, colour in (
        (
            CLEAR,
            large,
            "Mostly biology: perturbations are recognised in new batches, and the label explains more",
            GOOD,
        ),
        (
            CLEAR,
            small,
            "Biology and batch: perturbations are recognised in new batches, but the batch explains",
            CAREFUL,
        ),
        (OPEN, small, "Mostly batch: perturbations are not clearly recognised in new batches, and the batch", BAD),
        (OPEN, large, "Neither is clear: perturbations are not clearly recognised in new batches", CAREFUL),
        ((-0.3, -0.2, -0.1, 0.01), large, "Batch: in new batches classifiers do worse than a guess", BAD),
        # Equal in every split.
        ((np.nan, 0.4, np.nan, np.nan), large, "Mostly biology: perturbations are recognised", GOOD),
        (CLEAR, (np.nan,) * 4, "Biology: perturbations are recognised in new batches", GOOD),
        # Intervals of ±5% that overlap give no order.
        (
            CLEAR,
            (0.21, 0.3, 0.0, 0.49),
            "Biology: perturbations are recognised in new batches. Which of label and batch explains more of the "
            "variance is not clear (30% vs 21%)",
            CAREFUL,
        ),
        (OPEN, (0.3, 0.21, 0.0, 0.49), "Neither is clear", CAREFUL),
    ):
        found = changed(result, base=base, shares=shares)
        assert headline(found).startswith(words) and found.view.colour == colour
    assert headline(changed(result, base=CLEAR, shares=large)).endswith("(30% vs 10%)")
    test = base_test(result)
    single = replace(test, difference=replace(test.difference, low=np.nan, high=np.nan, n=1), p=np.nan)
    assert headline(replace(result, recognised=(single,))).startswith("There is no clear answer: too few splits")
    assert headline(replace(result, recognised=())).startswith("Biology and batch cannot be separated: no batch")


def test_the_first_sentence_splits_the_variance(result):
    shares = changed(result, shares=(0.31, 0.22, -0.02, 0.49))
    assert sentences(shares)[0] == (
        # Divided by their sum, 1.02, and rounded to 100%.
        "Variance of the embedding: the batch explains 30% [25, 35], the label 22% [17, 26]. 48% [43, 53] is neither."
    )
    opposed = changed(result, base=CLEAR, shares=(0.93, 0.82, -0.8, 0.05))
    assert sentences(opposed)[0] == (
        "Variance of the embedding: the batch explains 52% [49, 54], the label 45% [43, 48]. Their effects oppose each "
        "other, so these shares are parts of their sum. 3% [0, 6] is neither."
    )
    assert headline(opposed).endswith("(52% vs 45%)")
    both = changed(result, shares=(0.31, 0.22, 0.04, 0.43))
    assert "Another 4% [0, 9] could be either, because labels and batches occur together." in sentences(both)[0]
    unknown = replace(result, variance=Shares(*[Estimate(np.nan)] * 4))
    assert sentences(unknown)[0] == "Variance: there are too few rows to split it between batch and label."
    # The plate is one column of six, and half of the rest is a label: what was drawn.
    assert result.variance.batch > 0.2 and sum(float(e) for e in result.variance) == pytest.approx(1)


def test_the_second_sentence_says_what_helped_by_the_same_figure(result):
    test = result.test("base", "ica", "auroc_within")
    assert test.difference.value == pytest.approx(
        result.mean("ica", "auroc_within").mean - result.mean("base", "auroc_within").mean
    )
    within = base_test(result).difference.value + 0.5
    assert within == pytest.approx(result.mean("base", "auroc_within").mean)
    start = "New batches (logistic regression, train on most batches): AUROC within batches"
    assert sentences(result)[1].startswith(f"{start} {within:.3f} [")
    for helped, words in (
        ((0.01, 0.1, 0.2, 0.01), "PCA + ICA (+0.100 [0.010, 0.200]) helped."),
        ((-0.2, -0.1, -0.05, 0.01), "PCA + ICA (-0.100 [-0.200, -0.050]) did harm."),
        ((-0.2, 0.01, 0.02, 0.2), "PCA + ICA (+0.010 [-0.200, 0.020]) did not help."),
        ((-0.015, -0.005, 0.005, 0.2), "PCA + ICA (-0.005 [-0.015, 0.005]) made no difference."),
        ((-0.1, 0.043, 0.244, 0.2), "PCA + ICA (+0.043 [-0.100, 0.244]) may or may not help."),
        ((np.nan, 0.1, np.nan, np.nan), "PCA + ICA (+0.100) cannot be tested: there are too few splits"),
    ):
        found = changed(result, helped=helped)
        # Of ICA alone; conditions with the same verdict share a sentence.
        alone = replace(found, tests=tuple(t for t in found.tests if t.second == "ica"))
        assert sentences(alone)[1].split(". ", 2)[-1].startswith(words)
    assert "random" not in sentences(result)[1].lower()


def test_the_second_sentence_is_not_silent_on_what_was_dropped(result):
    """Dropping that ruins the classifiers is named, whatever ICA does: cleaned rows are compared with Base."""
    ruined = tuple(
        replace(t, difference=replace(t.difference, low=-0.4, value=-0.3, high=-0.2), p=1e-4, p_holm=1e-4)
        if (t.first, t.second, t.score) == ("base", "kept_base", "auroc_within") and t.perturbation == "(all)"
        else replace(t, p_holm=1.0)
        for t in result.tests
    )
    told = sentences(replace(result, tests=ruined))[1]
    assert "ropping batch components (-0.300 [-0.400, -0.200]) did harm." in told


def test_more_components_than_there_are_can_be_asked_for(result):
    """The sentence says so; it is silent where as many exist."""
    cleaning = result.cleaning
    n = len(cleaning.dropped)
    (many,) = [s for s in sentences(replace(result, cleaning=replace(cleaning, drop=99))) if "as asked" in s]
    assert many.startswith(f"Dropped as asked: {n} of {cleaning.components} batch components (99 were asked for).")
    (exact,) = [s for s in sentences(replace(result, cleaning=replace(cleaning, drop=n))) if "as asked" in s]
    assert exact.startswith(f"Dropped as asked: {n} of {cleaning.components} batch components. Variance")


def test_the_second_sentence_does_not_hide_perturbations_that_differ(result):
    """A mean over perturbations of which one gains and another loses is no answer for either."""

    def said(a, b, whole):
        """The sentence, where these are the difference and p of each."""
        tests = []
        for t in result.tests:
            chosen = {"a": a, "b": b, "(all)": whole}.get(t.perturbation)
            if (t.first, t.second, t.score, t.direction) == ("base", "ica", "auroc_within", "most") and chosen:
                value, p = chosen
                t = replace(t, difference=replace(t.difference, value=value, high=value + 0.01), p=p, p_holm=p)
            tests.append(t)
        return sentences(replace(result, tests=tuple(tests)))[1]

    sentence = said((0.2, 0.01), (-0.2, 0.01), (0.0, 0.9))
    assert "PCA + ICA (+0.000" in sentence and "; better for a and worse for b) differed between pert" in sentence
    assert "; better for a) differed between perturbations." in said((0.2, 0.01), (0.0, 0.9), (0.1, 0.3))
    # A mean that is clear hides the one that is clearly otherwise, but not one that is not clear.
    assert "differed between perturbations" in said((0.3, 0.01), (-0.1, 0.01), (0.1, 0.01))
    assert re.search(r"PCA \+ ICA \(\+0.100[^)]*\) helped", said((0.3, 0.01), (-0.1, 0.3), (0.1, 0.01)))


def test_the_third_sentence_names_technical_components_and_their_columns(named):
    a = named.conditions["ica"].components
    (k,) = np.flatnonzero(a.technical)
    told = sentences(named)[2]
    assert told.startswith("Technical: 1 of 4 independent components follows the batch rather than the label. ")
    batch, label, *_ = named.conditions["ica"].partition.of(int(k)).percentages
    assert batch > 50 and f"Independent component {k} does so most (batch {batch}%, label {label}%" in told
    # The plate is in one column alone.
    assert "It correlates most with the columns Nuclei_Plate (" in told
    features = named.conditions["ica"].features
    assert features.of_each[int(k)][0].name == "Nuclei_Plate" and abs(features.of_each[int(k)][0].value) > 0.95
    assert features.of_all[0].name == "Nuclei_Plate"
    figure = next(f for f in named.view.figures if f.title == "Technical components and their columns")
    assert figure.rows[0] == "Nuclei_Plate" and next(iter(figure.parts)).startswith(
        f"independent component {k} (batch "
    )
    drawn = named.to_dict()["conditions"]["ica"]["features"]
    assert drawn["of_each"][str(k)][0]["name"] == "Nuclei_Plate"


def test_the_first_figure_shows_the_components_that_the_text_speaks_of(result, named):
    """Batch components if some are dropped, otherwise independent ones; with the same shares."""
    for found, kind in ((result, "batch"), (named, "independent")):
        figure = found.view.figures[0]
        assert figure.title == "Where the variance comes from" and figure.rows[0] == "whole embedding"
        assert all(row.startswith(f"{kind} component") for row in figure.rows[1:])
        shares = np.array([figure.parts[part] for part in ("batch alone", "label alone", "either", "neither")])
        np.testing.assert_allclose(shares.sum(axis=0), 100)
        named_first = re.search(
            rf"{kind.capitalize()} component (\d+) does so most \(batch (\d+)%", sentences(found)[2]
        )
        assert figure.rows[1] == f"{kind} component {named_first[1]}" and abs(shares[0, 1] - int(named_first[2])) <= 1
        table = next(t for t in found.view.tables if t.title.startswith("Share of the variance"))
        assert [row.cells[0] for row in table.rows] == list(figure.rows)
    dropped = [d.component for d in result.cleaning.dropped]
    assert result.view.figures[0].rows[1 : 1 + len(dropped)] == [f"batch component {k}" for k in dropped]
    assert all(row.endswith(" (kept)") for row in result.view.figures[0].rows[1 + len(dropped) :])
    told = result.to_dict()["cleaning"]["partition"]
    assert len(told["batch"]["value"]) == result.cleaning.components


def test_no_interval_leaves_the_range_of_its_figure(result, named):
    for found in (result, named):
        for table in found.view.tables:
            for cell in (cell for row in table.rows for cell in row.cells if isinstance(cell, Estimate)):
                if np.isfinite(cell.low):
                    assert -1 <= cell.low <= cell.value <= cell.high <= 1, table.title
        shares = next(t for t in found.view.tables if t.title.startswith("Share of the variance"))
        for cell in (cell for row in shares.rows for cell in row.cells[1:]):
            assert 0 <= cell.low <= cell.value <= cell.high <= 1
        for gaps in next(f for f in found.view.figures if f.title == "Paired differences").groups.values():
            assert all(-1 <= e.low <= e.value <= e.high <= 1 for e in gaps if e.has_interval)
        for test in found.recognised:
            assert not test.difference.has_interval or -0.5 <= test.difference.low <= test.difference.high <= 0.5


def test_correlations_are_those_of_the_rows(named, rng):
    x = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    x[:, 2] = 7.0
    rows = MemoryRows("x", x)
    moments, _ = row_moments(rows)
    matrix = rng.normal(size=(2, 4))
    condition = Condition("ica", x.mean(axis=0), matrix, np.arange(2), np.ones(2))
    s = (x - x.mean(axis=0)) @ matrix.T
    live = [0, 1, 3]
    expected = np.corrcoef(x[:, live].T, s.T)[:3, 3:]
    found = correlations(condition, moments)
    np.testing.assert_allclose(found[live], expected, atol=1e-6)
    assert not found[2].any()


def test_the_terminal_has_at_most_40_lines_and_all_with_everything(result):
    many = {f"perturbation-{k}": result.perturbations["b"] for k in range(100)}
    alerts = [*result.alerts, *(Alert(f"odd{k}", f"Sentence {k} of many words. What to do. " * 5) for k in range(12))]
    scores = [s for s in result.scores if s.perturbation == "b"]
    copies = [replace(s, perturbation=name) for name in many for s in scores]
    large = replace(
        result,
        perturbations={**result.perturbations, **many},
        scores=(*result.scores, *copies),
        alerts=tuple(alerts),
        name="a-long-name-of-a-file-of-profiles-that-somebody-has-normalised.csv.gz",
    )
    short, whole = text(large.view, 100), text(large.view, 100, everything=True)
    assert len(short.splitlines()) <= 40 and ": --all." in short
    assert headline(large)[:60] in short and "perturbation-99" not in short
    assert "perturbation-99" in whole and "What to do." in whole and "--all" not in whole
    # A title that the frame has no room for is not cut.
    assert "normalised.csv.gz: n = 400, d = 6, 6 batches, 102 perturbations against DMSO" in " ".join(
        line.strip("│ ") for line in short.splitlines()
    )


def test_alerts_that_may_change_the_answer_come_first(result):
    codes = ("ica_gaussian", "input", "few_batches", "metadata_columns", "confounded")
    shown = replace(result, alerts=tuple(Alert(code, f"{code}.") for code in codes)).view.alerts
    assert [alert.code for alert in shown] == [*codes[:1:-1], "input", "ica_gaussian"]


def test_the_headline_names_perturbations_that_are_recognised_and_not():
    labels, batches = np.tile(["DMSO", "strong", "none", "nil"], 90), np.repeat(np.arange(6), 60)
    x = np.random.default_rng(0).normal(size=(360, 4))
    x[:, 0] += 4 * (labels == "strong")
    options = {"control": "DMSO", "classifiers": "logistic", "directions": "most", "folds": 3, "conditions": "base"}
    found = deconfound(x, labels, batches, **options)
    assert base_test(found).p > 0.05
    assert headline(found).startswith("Biology in part: 1 of 3 perturbations (strong) is recognised in new batches")
    assert re.search(r"\(from 0\.\d+ for (none|nil) to (0\.99\d|1\.000) for strong\)", sentences(found)[1])


def test_the_headline_says_where_every_perturbation_is_recognised():
    labels, batches = np.tile(["DMSO", "a", "b"], 80), np.repeat(np.arange(6), 40)
    x = np.random.default_rng(0).normal(size=(240, 3))
    x[:, 0] += 1.2 * (labels == "a") + 5 * (labels == "b")
    options = {"control": "DMSO", "classifiers": "logistic", "directions": "most", "folds": 6, "conditions": "base"}
    found = deconfound(x, labels, batches, **options)
    # The mean of two has one degree of freedom, but each is clear on its own.
    assert base_test(found).p > 0.05
    assert "all perturbations are recognised in new batches" in headline(found)


def test_trees_that_could_not_be_grown_are_no_tie():
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    labels, batches = np.tile(["DMSO", "a", "b"], 20), np.repeat(np.arange(4), 15)
    x = np.random.default_rng(0).normal(size=(60, 4))
    x[:, 0] += 4 * (labels == "a")
    options = {"control": "DMSO", "directions": "most", "folds": 2, "conditions": "base,ica"}
    alone = deconfound(x, labels, batches, classifiers="boost", **options)
    assert np.isnan(alone.mean("base").mean) and not alone.tests and not alone.recognised
    assert headline(alone) == "There is no answer: LightGBM could not be trained on so few rows"
    assert all(np.isnan(row.cells[1]) and row.cells[2] == "-" for row in alone.view.tables[0].rows)
    assert not any(sentence.startswith("New batches") for sentence in sentences(alone))
    assert (
        any(
            "so that classifiers have no scores: 8 of 8 (train on most batches)" in alert.message
            for alert in alone.alerts
        )
        and alone.view.colour == CAREFUL
    )
    # Beside it, logistic regression is what the headline is of.
    both = deconfound(x, labels, batches, classifiers="boost,logistic", **options)
    assert both.families == [("most", "logistic"), ("most", "boost")] and "logistic regression" in both.view.reason
    page(alone.view), page(both.view)


def test_noise_is_not_called_recognised(rng):
    labels, batches = np.tile(["DMSO", "a", "b", "c"], 60), np.repeat(np.arange(6), 40)
    x = rng.normal(size=(240, 4))
    noise = deconfound(x, labels, batches, control="DMSO", classifiers="logistic", directions="most", folds=3)
    x[:, 0] += 3 * (labels != "DMSO")
    clear = deconfound(x, labels, batches, control="DMSO", classifiers="logistic", directions="most", folds=3)
    assert base_test(clear).p < 1e-3 < base_test(noise).p
    assert "perturbations are recognised in new batches" in headline(clear)


def test_figures_of_every_row(result):
    figures = {f.title: f for f in result.view.figures}
    gaps = figures["Paired differences"]
    assert list(gaps.groups) == [f"{n} less Base" for n in ("Base, cleaned", "PCA", "PCA + Rand", "PCA + ICA")]
    assert gaps.rows[-1] == "all" and all(len(g) == 3 and None not in g for g in gaps.groups.values())
    assert np.shape(figures["What components follow: PCA + ICA"].panels[""]) == (2, 6)
    planes = [f for title, f in figures.items() if "the two" in title]
    assert len(planes) == 4 and all(sum(len(x) for x, _ in f.points.values()) == 400 for f in planes)


def test_what_is_not_defined_is_not_drawn_as_zero(result):
    c = result.conditions["ica"]
    gone = replace(c, components=replace(c.components, batch=np.where(np.arange(6) == 2, np.nan, c.components.batch)))
    heat = _component_map(gone).draw()["data"][0]
    assert heat["z"][0][heat["x"].index("2")] is None and heat["z"][1].count(None) == 0
    assert sum(len(x) for x, _ in _component_scatter(gone).points.values()) == 5


def test_means_of_unlike_splits_say_so():
    key = ("most", "logistic", "auroc", "ica", "a")
    assert mean_cell(MeanScore.of(key, [0.5, np.nan, 0.7])) == "0.600 ±0.100 (2 of 3 splits)"
    assert mean_cell(MeanScore.of(key, [0.5, 0.7])) == "0.600 ±0.100"


def test_components_that_cannot_be_trusted_are_marked(result):
    ica, every = result.conditions["ica"], result.provenance["ica"]["trusted_components"]
    assert len(ica.doubts) == 6 and ica.doubts.count("") == every
    assert f"{every} of the components can be interpreted one by one." in result.view.facts["ICA"]
    assert result.to_dict()["conditions"]["ica"]["components"]["doubts"] == list(ica.doubts)
    assert result.conditions["pca"].doubts == () and "doubts" not in result.to_dict()["conditions"]["pca"]["components"]
    # Cleaned components are no longer those that ICA found.
    assert result.conditions["kept_base"].doubts == ()
    unchecked = replace(result, conditions={**result.conditions, "ica": replace(ica, doubts=("not checked",) * 6)})
    assert "was not checked: nearid unmix --stability 5" in unchecked.view.facts["ICA"]
    doubtful = replace(ica, doubts=("depends on the start", *[""] * 5))
    place = list(ica.components.ranked).index(0)
    (hover,) = _component_map(doubtful).hover.values()
    assert hover[0][place].endswith(" (not to be interpreted on its own: depends on the start)")
    assert sum("on its own" in text for text in hover[0]) == 1
    names = [name for names in _component_scatter(doubtful).names.values() for name in names]
    assert [name for name in names if "(" in name] == [
        "independent component 0 (not to be interpreted on its own: depends on the start)"
    ]

"""What a person sees of deconfounding: the headline, every table and figure."""

from dataclasses import replace

import numpy as np
import pytest

from nearid import deconfound
from nearid.questions.deconfound.paired import MeanScore
from nearid.questions.deconfound.view import _component_map, _component_scatter, base_test, headline, mean_cell
from nearid.show.page import page
from nearid.show.view import BAD, CAREFUL


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
    return deconfound(x, labels, batches, control="DMSO", classifiers="logistic", folds=3, drop=0.1)


def test_all_parts_are_there(result):
    text = page(result.view)
    for part in (
        headline(result),
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
        "technical dropped",
    ):
        assert part in text, part


def test_the_headline_answers_the_question(result):
    test = result.test("base", "ica")
    second, first = result.mean("ica").mean, result.mean("base").mean
    new = "in new batches classifiers work"
    for low, value, high, p, words in (
        (0.01, 0.1, 0.2, 0.01, f"PCA + ICA helped: {new} better with PCA + ICA than with Base"),
        (-0.2, -0.1, -0.05, 0.01, f"PCA + ICA did harm: {new} worse with PCA + ICA than with Base"),
        (-0.015, -0.005, 0.005, 0.2, f"PCA + ICA did not help: {new} equally well with PCA + ICA and with Base"),
        (-0.2, 0.01, 0.02, 0.2, f"PCA + ICA did not help: {new} no better with PCA + ICA than with Base"),
        (-0.1, 0.043, 0.244, 0.2, "2 perturbations do not show whether PCA + ICA helps"),
    ):
        difference = replace(test.difference, low=low, value=value, high=high)
        changed = replace(test, difference=difference, p=p, p_holm=p)
        # No perturbation is clear on its own: this is of the mean.
        tests = tuple(changed if t == test else replace(t, p_holm=1.0) for t in result.tests)
        figures = f"AUROC {second:.3f} vs {first:.3f}, difference {value:+.3f} [{low:.3f}, {high:.3f}]"
        assert headline(replace(result, tests=tests)).endswith(f". {words} ({figures})")
    unknown = tuple(replace(t, p=np.nan, p_holm=np.nan) for t in result.tests)
    assert headline(replace(result, tests=unknown)).endswith(
        ". PCA + ICA and Base cannot be compared: there are too few splits or perturbations for a test"
    )
    assert "Paired test of PCA + ICA against Base over 2 perturbations: p = " in result.view.reason


def test_the_headline_says_first_whether_anything_is_recognised(result):
    test = base_test(result)
    # The test is that of AUROC within batches, of which a guess has 0.5; its mean is the one in the table.
    assert (test.first, test.second) == ("chance", "base")
    assert test.difference.value + 0.5 == pytest.approx(result.mean("base", "auroc_within").mean)
    for low, value, high, p, words in (
        (
            0.4,
            0.45,
            0.49,
            0.001,
            "Perturbations are recognised in new batches (AUROC within batches 0.950 [0.900, 0.990], a",
        ),
        (
            -0.1,
            0.0,
            0.1,
            0.9,
            "Perturbations are not clearly recognised in new batches (AUROC within batches 0.500 [0.4",
        ),
        (-0.3, -0.2, -0.1, 0.01, "In new batches classifiers do worse than a guess (AUROC within batches 0.300"),
        (
            np.nan,
            0.4,
            np.nan,
            np.nan,
            "Perturbations are recognised in new batches (AUROC within batches 0.900 in all 2 perturbations, a guess",
        ),
    ):
        changed = replace(test, difference=replace(test.difference, low=low, value=value, high=high), p=p)
        tests = tuple(changed if t == test else replace(t, p_holm=1.0) for t in result.recognised)
        assert headline(replace(result, recognised=tests)).startswith(words)
    single = replace(test, difference=replace(test.difference, low=np.nan, high=np.nan, n=1), p=np.nan)
    few = "There are too few splits or perturbations to test whether classifiers"
    assert headline(replace(result, recognised=(single,))).startswith(few)
    assert headline(replace(result, recognised=())).startswith("Biology and batch cannot be separated: no batch")


def test_the_headline_does_not_hide_perturbations_that_differ(result):
    """A mean over perturbations of which one gains and another loses is no answer for either."""

    def said(a, b, whole):
        """The end of the headline, where these are the difference and p of each."""
        tests = []
        for t in result.tests:
            chosen = {"a": a, "b": b, "(all)": whole}.get(t.perturbation)
            if (t.first, t.second, t.score, t.direction) == ("base", "ica", "auroc", "most") and chosen:
                value, p = chosen
                t = replace(t, difference=replace(t.difference, value=value, high=value + 0.01), p=p, p_holm=p)
            tests.append(t)
        changed = replace(result, tests=tuple(tests))
        return headline(changed).partition("). ")[2], changed.view.colour

    differ = "The 2 perturbations differ: compared with Base, classifiers with PCA + ICA work better for 1 (a)"
    both = f"{differ} and worse for 1 (b) of them (mean AUROC "
    sentence, colour = said((0.2, 0.01), (-0.2, 0.01), (0.0, 0.9))
    assert sentence.startswith(both) and "difference +0.000" in sentence and colour == CAREFUL
    assert said((0.2, 0.01), (0.0, 0.9), (0.1, 0.3))[0].startswith(f"{differ} of them")
    # A mean that is clear hides the one that is clearly otherwise, but not one that is not clear.
    assert said((0.3, 0.01), (-0.1, 0.01), (0.1, 0.01))[0].startswith(both)
    assert said((0.3, 0.01), (-0.1, 0.3), (0.1, 0.01))[0].startswith("PCA + ICA helped")
    sentence, colour = said((-0.3, 0.01), (-0.1, 0.3), (-0.2, 0.01))
    assert sentence.startswith("PCA + ICA did harm: in new batches classifiers work worse") and colour == BAD


def test_the_headline_names_perturbations_that_are_recognised_and_not():
    labels, batches = np.tile(["DMSO", "strong", "none", "nil"], 90), np.repeat(np.arange(6), 60)
    x = np.random.default_rng(0).normal(size=(360, 4))
    x[:, 0] += 4 * (labels == "strong")
    options = {"control": "DMSO", "classifiers": "logistic", "directions": "most", "folds": 3, "conditions": "base"}
    found = deconfound(x, labels, batches, **options)
    assert base_test(found).p > 0.05
    assert headline(found).startswith(
        "1 of 3 perturbations (strong) is recognised in new batches, but the mean over all perturbations is "
    )
    assert "to 0.99" in headline(found) or "to 1.000 (strong)" in headline(found)


def test_trees_that_could_not_be_grown_are_no_tie():
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    labels, batches = np.tile(["DMSO", "a", "b"], 20), np.repeat(np.arange(4), 15)
    x = np.random.default_rng(0).normal(size=(60, 4))
    x[:, 0] += 4 * (labels == "a")
    options = {"control": "DMSO", "directions": "most", "folds": 2, "conditions": "base,ica"}
    alone = deconfound(x, labels, batches, classifiers="boost", **options)
    assert np.isnan(alone.mean("base").mean) and not alone.tests and not alone.recognised
    assert headline(alone) == "There is no answer: LightGBM could not be trained on so few rows"
    assert {cell for row in alone.view.tables[0].rows for cell in row.cells[1:]} == {"-"}
    assert (
        any("these classifiers have no scores" in alert.message for alert in alone.alerts)
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
    assert headline(clear).startswith("Perturbations are recognised in new batches")


def test_many_perturbations_are_shown_in_part_and_folded_in_full(result):
    scores = [s for s in result.scores if s.perturbation == "b"]
    more = {f"p{k}": result.perturbations["b"] for k in range(40)}
    copies = [replace(s, perturbation=name) for name in more for s in scores]
    many = replace(result, perturbations={**result.perturbations, **more}, scores=(*result.scores, *copies))
    short = next(t for t in many.view.tables if t.title.startswith("AUROC"))
    whole = next(t for t in many.view.tables if t.folded and t.title == short.title)
    assert len(short.rows) == 27 and short.rows[25].cells[0] == "... 17 more" and len(whole.rows) == 43


def test_figures_of_every_row(result):
    figures = {f.title: f for f in result.view.figures}
    gaps = figures["Paired differences"]
    assert list(gaps.groups) == [f"{n} less Base" for n in ("PCA", "PCA + Rand", "PCA + ICA", "technical dropped")]
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
    assert result.conditions["kept"].doubts == ()
    unchecked = replace(result, conditions={**result.conditions, "ica": replace(ica, doubts=("not checked",) * 6)})
    assert "was not checked: nearid unmix --stability 5" in unchecked.view.facts["ICA"]
    doubtful = replace(ica, doubts=("depends on the start", *[""] * 5))
    place = list(ica.components.ranked).index(0)
    (hover,) = _component_map(doubtful).hover.values()
    assert hover[0][place].endswith(" (not to be interpreted on its own: depends on the start)")
    assert sum("on its own" in text for text in hover[0]) == 1
    names = [name for names in _component_scatter(doubtful).names.values() for name in names]
    assert [name for name in names if "(" in name] == [
        "component 0 (not to be interpreted on its own: depends on the start)"
    ]

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from deconfound_plans import plan_of
from nearid.arrays import open_rows
from nearid.base.errors import InputError
from nearid.questions.deconfound.classifiers import hoyer
from nearid.questions.deconfound.conditions import ComponentRows, Condition
from nearid.questions.deconfound.design import open_design
from nearid.questions.deconfound.evaluate import Key, Timer, _Cleaners, _top, score_tasks, summarise, tasks_of
from nearid.questions.deconfound.splits import Split, contrasts


@pytest.fixture(scope="module")
def plan_and_view():
    """Component 0 tells the label in all batches; component 1 in each batch with another sign; 2 is the batch."""
    rng = np.random.default_rng(0)
    n = 400
    label, batch = rng.integers(0, 2, n), rng.integers(0, 4, n)
    x = rng.normal(size=(n, 4))
    x[:, 0] += 3 * label
    x[:, 1] += 6 * (label - 0.5) * np.where(batch % 2, 1, -1)
    x[:, 2] += 4 * batch
    d = open_design(x, np.array(["DMSO", "drug"])[label], batch, control="DMSO")
    against, _ = contrasts(d, [1], ("most", "one"), 4, 0)
    view = ComponentRows(open_rows(x), Condition("pca", np.zeros(4), np.eye(4), np.arange(4), np.ones(4)))
    return plan_of(conditions=("ica",), top=(1,), drop=0.1), d, against, view


def run(plan, design, against, view, dropping=False):
    tasks = tasks_of(against, dropping)
    return score_tasks(plan, design, view, tasks, _Cleaners(plan, design) if dropping else None, lambda: None)


def test_every_split_is_scored(plan_and_view):
    found = run(*plan_and_view)
    assert {k.direction: len(v) for k, v in found.items()} == {"most": 4, "one": 4}
    most, one = found[Key("most", "logistic", "drug")], found[Key("one", "logistic", "drug")]
    most, one = ([s.scores for s in each] for each in (most, one))
    assert all(s["auroc"] > 0.9 and 0 < s["sparsity"] <= 1 for s in most)
    assert all("concentration@1" in s for s in most) and not any("concentration@1" in s for s in one)
    # One batch alone teaches the component that means something else elsewhere.
    assert np.mean([s["auroc"] for s in one]) < np.mean([s["auroc"] for s in most]) - 0.1


def test_scores_without_a_batch_are_those_of_the_other_rows(plan_and_view):
    plan, d, against, view = plan_and_view
    found = run(*plan_and_view)
    for direction in ("most", "one"):
        for split, scored in zip(against[0].splits[direction], found[Key(direction, "logistic", "drug")], strict=True):
            for batch in range(4):
                left = scored.without["auroc"][batch]
                trained, judged = (batch in d.batches.codes[side] for side in (split.train, split.test))
                if direction == "one" and trained:
                    assert all(np.isnan(values[batch]) for values in scored.without.values())
                elif not judged:
                    assert left == pytest.approx(scored.scores["auroc"])
                elif direction == "one":
                    # The classifier stays, the rows go.
                    rows = split.rows[d.batches.codes[split.rows] != batch]
                    parts = d.batches.codes[rows]
                    less = replace(against[0], splits={"one": [Split(rows, parts, split.part, alone=True)]})
                    (again,) = run(plan, d, [less], view).values()
                    assert left == pytest.approx(again[0].scores["auroc"])
                    assert scored.without["sparsity"][batch] == scored.scores["sparsity"]


def test_rotations_are_averaged_and_their_spread_is_told(plan_and_view):
    plan, d, against, view = plan_and_view
    turned = [np.linalg.qr(np.random.default_rng(k).normal(size=(4, 4)))[0] for k in range(3)]
    views = [ComponentRows(view.rows, replace(view.condition, matrix=turn)) for turn in turned]
    turns = [run(plan, d, against, each) for each in views]
    means, *_ = summarise(plan, against, {"random": turns})
    key = Key("most", "logistic", "drug")
    by_turn = [np.mean([s.scores["sparsity"] for s in turn[key]]) for turn in turns]
    (found,) = (m for m in means if (m.direction, m.score, m.perturbation) == ("most", "sparsity", "drug"))
    assert found.mean == pytest.approx(np.mean(by_turn)) and found.spread == pytest.approx(np.std(by_turn, ddof=1))
    assert len(found.values) == len(turns[0][key]) and found.spread > 0
    alone, *_ = summarise(plan, against, {"random": turns[:1]})
    assert all(np.isnan(m.spread) for m in alone)


def test_concentration_is_high_where_one_component_tells_all(plan_and_view):
    most = run(*plan_and_view)[Key("most", "logistic", "drug")]
    assert np.mean([s.scores["concentration@1"] for s in most]) > 0.3


def test_technical_components_are_dropped_on_training_rows_alone(plan_and_view):
    plan, d, against, view = plan_and_view
    found = run(*plan_and_view, dropping=True)
    assert {k.direction for k in found} == {"most"}
    kept = [task for task in tasks_of(against, False) if task[0] == "most"]
    assert len(kept) == 4 and [str(task) for task in tasks_of(against, True)] == [str(task) for task in kept]
    # What held-out batches look like makes no difference.
    split = against[0].splits["most"][0]
    spoilt = np.array(view.rows.read(0, 400))
    spoilt[split.test, 0] = 50.0 * d.batches.codes[split.test]
    other = ComponentRows(open_rows(spoilt), view.condition)
    first = run(plan, replace(d, rows=other.rows), against, other, dropping=True)[Key("most", "logistic", "drug")][0]
    assert first.scores["sparsity"] == pytest.approx(found[Key("most", "logistic", "drug")][0].scores["sparsity"])
    assert hoyer(np.ones(3)) == pytest.approx(0, abs=1e-12)


def test_a_stage_adds_up():
    timer = Timer()
    for _ in range(2):
        with timer.stage("nap"):
            time.sleep(0.02)
    with timer.stage("work"):
        began = time.process_time()
        while time.process_time() - began < 0.02:
            pass
    assert timer.seconds["nap"] >= 0.04 and timer.core_seconds["nap"] < 0.04
    assert timer.core_seconds["work"] >= 0.02 and list(timer.seconds) == ["nap", "work"]


def test_top_is_at_most_half_of_the_components():
    fitted = SimpleNamespace(conditions={"ica": SimpleNamespace(width=12), "base": SimpleNamespace(width=60)})
    assert _top((5, 6), fitted) == (5, 6) and _top((), fitted) == _top((0,), fitted) == ()
    with pytest.raises(InputError, match="half of the 12 components"):
        _top((5, 7), fitted)


def test_classifiers_of_a_split_share_what_is_fitted_before(plan_and_view, monkeypatch):
    plan, d, against, view = plan_and_view
    fits = []
    monkeypatch.setattr(ComponentRows, "trained", lambda self, train: fits.append(len(train)) or self)
    both = run(replace(plan, classifiers=("boost", "logistic"), top=()), d, against, view)
    assert len(fits) == 8 and {k.classifier: len(v) for k, v in both.items()} == {"boost": 4, "logistic": 4}
    alone = run(replace(plan, top=()), d, against, view)
    for key, each in alone.items():
        assert [s.scores for s in both[key]] == [s.scores for s in each]


def test_trees_without_a_split_have_no_scores(plan_and_view):
    plan, d, against, view = plan_and_view
    rare = replace(plan, classifiers=("boost",), boosting={"trees": 2, "min_data_in_leaf": 500})
    for each in run(rare, d, against, view).values():
        for found in each:
            assert found.scores.pop("unused") == 1 and set(found.scores) == set(found.without)
            assert np.isnan(list(found.scores.values())).all() and np.isnan(list(found.without.values())).all()

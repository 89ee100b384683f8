"""Folds over batches: no batch on both sides, positive rows in every fold, nothing promised that cannot be kept."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nearid import InputError
from nearid.questions.deconfound.design import open_design
from nearid.questions.deconfound.splits import batch_folds, chosen, contrasts


def design(labels, batches, control=None):
    return open_design(np.zeros((len(labels), 2)) + np.arange(2), np.array(labels), np.array(batches), control=control)


def labels_of(d):
    return list(d.labels.names)


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_every_fold_has_positive_rows_where_batches_suffice(seed, folds):
    rng = np.random.default_rng(seed)
    batches = rng.integers(0, 12, 200)
    positive = (rng.random(200) < 0.2) & (batches < 8)
    fold = batch_folds(positive, batches, folds, rng)
    assert set(fold[np.unique(batches)]) <= set(range(folds))
    hits = np.bincount(fold[batches], weights=positive, minlength=folds)
    if len(np.unique(batches[positive])) >= folds:
        assert (hits > 0).all()
        # Never further apart than the largest batch.
        assert hits.max() - hits.min() <= np.bincount(batches, weights=positive).max()


def test_batches_without_positive_rows_balance_the_sizes():
    batches = np.repeat(np.arange(8), 10)
    positive = batches < 4
    fold = batch_folds(positive, batches, 4, np.random.default_rng(0))
    assert sorted(fold[:4]) == sorted(fold[4:]) == [0, 1, 2, 3]


def test_no_batch_is_on_both_sides():
    rng = np.random.default_rng(0)
    d = design(rng.choice(["DMSO", "a", "b"], 300), rng.integers(0, 9, 300), "DMSO")
    found, alerts = contrasts(d, [1, 2], ("most", "one"), 4, 0)
    assert [p.name for p in found] == ["a", "b"] and not alerts
    for p in found:
        assert len(p.splits["most"]) == 4 and len(p.splits["one"]) == 4
        seen = np.concatenate([s.test for s in p.splits["most"]])
        mine = np.flatnonzero(np.isin(d.labels.codes, [0, p.code]))
        assert np.array_equal(np.sort(seen), mine)
        for direction in ("most", "one"):
            for train, test in ((s.train, s.test) for s in p.splits[direction]):
                assert not set(d.batches.codes[train]) & set(d.batches.codes[test])
                assert np.array_equal(np.sort(np.concatenate([train, test])), mine)
        assert all(len(np.unique(d.batches.codes[s.train])) == 1 for s in p.splits["one"])


def test_without_a_control_all_other_labels_are_negative():
    d = design(list("aabbcc") * 4, np.repeat(np.arange(4), 6))
    (p,), _ = contrasts(d, [1], ("most",), 2, 0)
    assert (p.positives, p.negatives) == (8, 16)


def test_what_cannot_be_held_out_is_told():
    labels = ["DMSO", "a", "b"] * 4 + ["DMSO", "b", "c"] * 2
    batches = [0] * 6 + [1] * 6 + [2] * 6
    d = design(labels, batches, "DMSO")
    found, alerts = contrasts(d, [1, 2, 3], ("most",), 5, 0)
    assert [p.name for p in found] == ["a", "b"]
    assert [len(p.splits["most"]) for p in found] == [2, 3]
    assert [a.code for a in alerts] == ["single_batch_label", "few_batches", "unlike_batches"]
    assert "1 of 2 labels" in alerts[-1].message and "('a')" in alerts[-1].message and "'c'" in alerts[0].message
    with pytest.raises(InputError, match="'c'"):
        contrasts(d, [3], ("most",), 5, 0)


def test_splits_without_both_classes_on_both_sides_are_left_out_and_told():
    # Controls are on plates of their own, one of them large: no single batch has both classes.
    labels = ["a", "b"] * 20 + ["a", "b"] * 2 + ["DMSO", "c"] * 3 + ["DMSO", "c"] * 3
    d = design(labels, [0] * 40 + [1] * 4 + [2] * 6 + [3] * 6, "DMSO")
    (p,), alerts = contrasts(d, [labels_of(d).index("a")], ("most", "one"), 2, 0)
    assert len(p.splits["most"]) == 2 and p.splits["one"] == []
    for split in p.splits["most"]:
        for side in (split.train, split.test):
            assert set(np.array(labels)[side]) == {"a", "DMSO"}
    assert [a.code for a in alerts] == ["no_split", "unlike_batches"]
    assert "'a' (train on one batch)" in alerts[0].message
    with pytest.raises(InputError, match="no split with both classes"):
        contrasts(d, [labels_of(d).index("a")], ("one",), 2, 0)


@given(st.integers(0, 10_000))
def test_every_split_has_both_classes_on_both_sides(seed):
    rng = np.random.default_rng(seed)
    labels = np.array(["a", "DMSO"] * 2 + list(rng.choice(["a", "DMSO"], 20)))
    batches = np.array([0, 0, 1, 1, *rng.integers(0, 6, 20)])
    (p,), _ = contrasts(design(labels, batches, "DMSO"), [1], ("most", "one"), 4, seed)
    for split in (s for each in p.splits.values() for s in each):
        assert all(len(set(labels[side])) == 2 for side in (split.train, split.test))


def test_labels_are_chosen_by_name_or_number():
    d = design(["x"] * 9 + ["y"] * 6 + ["z"] * 3, list("pqr") * 6, "y")
    assert chosen(d, None, 2)[0] == [0, 2]
    assert chosen(d, 1, 2)[0] == [0]
    assert chosen(d, "z", 2)[0] == [2]
    few, alerts = chosen(d, None, 5)
    assert few == [0] and alerts[0].code == "rare_labels"
    with pytest.raises(InputError, match="nothing named 'w'"):
        chosen(d, ["w"], 2)


def test_of_many_labels_the_most_frequent_that_several_batches_have(monkeypatch):
    from nearid.questions.deconfound import splits

    monkeypatch.setattr(splits, "MOST", 2)
    # 'a' is the most frequent, but in one batch; 'e' is the control.
    labels = ["a"] * 9 + list("bbbbccccddd") * 2 + ["e"] * 6
    batches = ["p"] * 9 + ["p"] * 11 + ["q"] * 11 + ["p", "q"] * 3
    d = design(labels, batches, "e")
    codes, alerts = chosen(d, None, 3)
    assert [d.labels.names[code] for code in codes] == ["b", "c"]
    assert [alert.code for alert in alerts] == ["many_labels"] and "--perturbations all" in alerts[0].message
    assert len(chosen(d, "all", 3)[0]) == 4 and not chosen(d, "all", 3)[1]


def test_labels_of_equal_frequency_are_drawn_by_the_seed(monkeypatch):
    from nearid.questions.deconfound import splits

    monkeypatch.setattr(splits, "MOST", 3)
    d = design([f"l{k:02d}" for k in range(30)] * 4, np.repeat([0, 1, 2, 3], 30))
    drawn = [tuple(chosen(d, None, 2, seed)[0]) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_few_rows_are_enough_where_no_label_has_more():
    d = design(list("aabbccc") * 2, np.repeat([0, 1], 7))
    codes, alerts = chosen(d, None, None)
    assert [d.labels.names[code] for code in codes] == ["c"]
    assert [alert.code for alert in alerts] == ["few_rows_per_label", "rare_labels"]
    with pytest.raises(InputError, match=r"No label has 10 rows: the most frequent one, .c., has 6\. Lower min_rows"):
        chosen(d, None, 10)


def test_one_frequent_label_does_not_leave_out_all_others():
    """Ten rows of one label, six of five others and three of the last: the fifth most frequent one has six."""
    labels = ["often"] * 10 + [name for name in "abcde" for _ in range(6)] + ["rare"] * 3
    d = design(labels, np.arange(len(labels)) % 3)
    codes, alerts = chosen(d, None, None)
    assert [d.labels.names[code] for code in codes] == ["a", "b", "c", "d", "e", "often"]
    assert [alert.code for alert in alerts] == ["few_rows_per_label", "rare_labels"]
    assert alerts[0].message.startswith("Only 1 of 7 labels have 10 rows, so labels with 6 rows or more are evaluated.")
    # Never fewer than five rows, as long as some label has them.
    few = design(["often"] * 10 + [name for name in "abcde" for _ in range(4)], np.arange(30) % 3)
    assert [few.labels.names[code] for code in chosen(few, None, None)[0]] == ["often"]
    # With four labels nothing changes.
    four = design(["x"] * 12 + ["y"] * 12 + ["z"] * 7, np.arange(31) % 3)
    assert [four.labels.names[code] for code in chosen(four, None, None)[0]] == ["x", "y"]

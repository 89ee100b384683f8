"""Claims are decided by intervals; what the seeds do not decide is not claimed."""

import pytest

from nearid.experiments.claims import Outcome, Status, all_of, at_least, at_most, exceeds
from nearid.experiments.estimate import Estimate

YES, NO, OPEN = Status.REPRODUCED, Status.NOT_REPRODUCED, Status.NOT_TESTABLE


class Found:
    """A result with one column."""

    def __init__(self, failed=(), **rows):
        self.rows, self.failed = rows, failed

    def failed_seeds(self, row):
        return [seed for name, seed in self.failed if name == row]

    def scores(self, row, column):
        return dict(enumerate(self.rows.get(row, ())))

    def estimate(self, row, column):
        return Estimate.over(self.scores(row, column).values())

    def label(self, row, column):
        return f"{column} of {row}"


@pytest.mark.parametrize(
    ("values", "above", "below"),
    [
        ((0.95, 0.96, 0.97), YES, NO),
        ((0.5, 0.51, 0.52), NO, YES),
        ((0.85, 0.95, 1.0), OPEN, NO),
        ((0.8, 0.85, 1.0), NO, OPEN),
        ((0.99,), OPEN, OPEN),
        ((), OPEN, OPEN),
        ((0.9, 0.9), YES, YES),
    ],
)
def test_thresholds(values, above, below):
    found = Found(a=values)
    assert at_least(found, "a", "r2", 0.9).status == above
    assert at_most(found, "a", "r2", 0.9).status == below


def test_a_cell_that_failed_leaves_the_claim_open():
    found = Found(failed=[("b", 2)], a=(0.95, 0.96, 0.97), b=(0.1, 0.1))
    told = at_most(found, "b", "r2", 0.5)
    assert told.status == OPEN and "there is no result of seed 2" in told.sentence
    assert exceeds(found, ("a", "r2"), ("b", "r2")).status == OPEN
    assert at_least(found, "a", "r2", 0.9).status == YES


def test_the_sentence_has_the_figures_that_decided():
    said = at_least(Found(a=(0.95, 0.96, 0.97)), "a", "r2", 0.9).sentence
    assert said == "r2 of a is 0.96, 95% interval [0.9352, 0.9848] of 3 seeds: at least 0.9, as claimed."
    assert "one seed gives no interval" in at_most(Found(a=(0.95,)), "a", "r2", 0.9).sentence
    assert at_most(Found(), "a", "r2", 0.9).sentence == "r2 of a: there is no result."


def test_differences_are_paired_by_seed():
    # The levels of the seeds vary more than the rows differ.
    found = Found(a=(0.21, 0.52, 0.93), b=(0.1, 0.4, 0.8))
    assert exceeds(found, ("a", "r2"), ("b", "r2"), 0.08).status == YES
    assert exceeds(found, ("b", "r2"), ("a", "r2")).status == NO
    assert exceeds(Found(a=(1.0, 1.0)), ("a", "r2"), ("b", "r2")).status == OPEN


def test_all_of_is_the_worst():
    parts = {s: Outcome(s, f"{s}.") for s in Status}
    assert all_of(parts[YES], parts[OPEN]) == Outcome(OPEN, "reproduced. not testable here.")
    assert all_of(parts[OPEN], parts[NO], parts[YES]).status == NO
    assert all_of(parts[YES]).status == YES

"""Alerts of several results: what is told once, as a range, and what is not."""

import pytest

from nearid.base.alerts import Alert
from nearid.show.alerts import joined


def results(**messages):
    """Results of pairs of one-letter runs, with an alert each."""
    return [(tuple(pair), [Alert("code", message)] if message else []) for pair, message in messages.items()]


def told(given):
    return [alert.message for alert in joined(given)]


def test_figures_become_a_range():
    given = results(ab="About 9 of 1,296 rows repeat others.", ac="About 525 of 1,296 rows repeat others.", bc="")
    assert told(given) == ["a -> b, a -> c: about 9 to 525 of 1,296 rows repeat others."]


@pytest.mark.parametrize(
    ("low", "high"), [("9", "10"), ("0.09", "0.1"), ("2e-05", "1e-04"), ("999", "1,000"), ("1.5e+03", "2e+03")]
)
def test_figures_are_ordered_as_numbers(low, high):
    for first, second in ((low, high), (high, low)):
        given = results(ab=f"It is {first}.", ac=f"It is {second}.")
        assert told(given) == [f"All 2 pairs: it is {low} to {high}."]


def test_many_pairs_are_counted():
    given = results(ab="R2 is 1", ac="R2 is 2", ad="R2 is 3", ae="R2 is 4", bc="")
    assert told(given) == ["a -> b, a -> c, a -> d and 1 more: R2 is 1 to 4"]


def test_names_of_both_runs_become_source_and_target():
    given = results(ab="Up to 3 in a and a bit in b.", bc="Up to 5 in b and a bit in c.", ac="")
    # The article is no run, though it is called like one.
    assert told(given) == ["a -> b, b -> c: up to 3 to 5 in the source and a bit in the target."]
    given = results(ab="a and b agree.", ac="a and c agree.")
    assert told(given) == ["All 2 pairs: a and the target agree."]


def test_alerts_about_runs_name_the_runs():
    given = [
        (("Run", "y"), [Alert("code", "Run has rank 3."), Alert("code", "y has rank 4.")]),
        (("Run", "z"), [Alert("code", "Run has rank 3.")]),
        (("y", "z"), [Alert("code", "y has rank 4.")]),
    ]
    assert told(given) == ["Run and y: each run has rank 3 to 4."]
    more = [
        ((name, "other"), [Alert("code", f"{name} has rank 8.")]) for name in ("seed 0", "seed 1", "seed 2", "seed 3")
    ]
    assert told(more[:3]) == ["seed 0, seed 1 and seed 2: each run has rank 8."]
    assert told(more) == ["seed 0, seed 1, seed 2 and 1 more: each run has rank 8."]


def test_what_differs_in_words_is_told_apart():
    for first, second in (("It has 3 rows.", "It has 3 columns."), ("Leave out x='3'.", "Leave out x='4'.")):
        assert len(told(results(ab=first, ac=second))) == 2
    codes = [(("a", "b"), [Alert("one", "It is 3.")]), (("a", "c"), [Alert("two", "It is 4.")])]
    assert [alert.code for alert in joined(codes)] == ["one", "two"]


def test_quoted_names_are_listed():
    columns = {"x": "'0'", "y": "'4'", "z": '"it\'s"', "u": "'5'", "v": "'0'"}
    given = [((run, "other"), [Alert("code", f"Column {name} of {run} is constant.")]) for run, name in columns.items()]
    assert told(given[:3]) == ["x, y and z: column '0' or '4' or \"it's\" of each run is constant."]
    assert told(given) == [
        "x, y, z and 2 more: column '0' or '4' or \"it's\" or 1 more of each run is constant.",
    ]
    given = results(ab="It has 1 pair, such as '0' and '1'.", ac="It has 2 pairs, such as '0' and '1'.", bc="")
    assert len(told(given)) == 2
    given = results(ab="It has 1 copy, such as '0' and '1'.", ac="It has 1 copy, such as '2' and '3'.", bc="")
    assert told(given) == ["a -> b, a -> c: it has 1 copy, such as '0' and '1' or '2' and '3'."]
    # A name and a figure are not the same.
    assert len(told(results(ab="It is 3.", ac="It is '3'."))) == 2


def test_names_may_be_anything():
    given = [((name, "7"), [Alert("code", f"{name} has 3 of 7 rows")]) for name in ("x (1)", "x (1) 2", "")]
    assert len(told(given)) >= 1
    assert told(given[:2]) == ["All 2 pairs: the source has 3 of 7 rows"]


def test_what_all_results_share_needs_no_names():
    assert told(results(ab="It is 3.", ac="It is 3.")) == ["It is 3."]
    assert told(results(ab="It is 3.", ac="")) == ["a -> b: it is 3."]
    assert told(results(ab="a has 3.", ac="a has 3.", bc="")) == ["a has 3."]
    assert told(results(ab="b as a target has 3.", ac="", bc="")) == ["b as a target has 3."]
    assert told(results(ab="It is a 3.", ac="")) == ["a -> b: it is a 3."]


def test_figures_keep_their_sign():
    """-0.50 and -0.20 became -0.20 to 0.50."""
    alerts = [Alert("low", f"The value is {value} here.") for value in ("-0.50", "-0.20", "0.10")]
    (found,) = joined([(("a", name), [alert]) for name, alert in zip("bcd", alerts, strict=True)])
    assert found.message == "All 3 pairs: the value is -0.50 to 0.10 here."

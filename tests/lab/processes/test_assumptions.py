"""Assumptions that fail are found."""

from nearid.lab.processes.assumptions import Assumption, violated


def test_violated_are_those_that_do_not_hold():
    good, bad = Assumption("a", "x", True, ""), Assumption("b", "y", False, "z")
    assert violated([good, bad]) == (bad,) and violated([good]) == ()

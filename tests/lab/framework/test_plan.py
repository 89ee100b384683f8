"""Plans: a place for each that is its own, and names that any file system takes."""

from nearid.lab.framework.plan import LONGEST, plan


def test_the_usual_table_has_the_folder_itself(toy, tmp_path):
    experiment, _ = toy
    for options in ({}, {"seeds": 3}, {"changes": {"noise": "0.01"}}, {"rows": ["high", "low"]}):
        asked = plan(experiment, tmp_path, **options)
        assert asked.variant == "" and asked.place == tmp_path and asked.only == ()


def test_other_runs_are_named_after_what_was_asked_for(toy, tmp_path):
    experiment, _ = toy
    changes = {"sizes": "3,4", "noise": "0.5", "high": "yes"}
    asked = plan(experiment, tmp_path, preset="smoke", seeds=5, rows=["low"], changes=changes)
    assert asked.variant == "smoke,seeds=5,noise=0.5,sizes=3+4,row=low" and asked.place == tmp_path / asked.variant
    # The order in which it was typed is no difference.
    again = plan(experiment, tmp_path, preset="smoke", seeds=5, rows=["low"], changes=dict(reversed(changes.items())))
    assert again.place == asked.place and [c.name for c in again.cells] == [c.name for c in asked.cells]


def test_names_stay_within_the_folder_and_apart(toy, tmp_path):
    experiment, _ = toy
    kinds = ["../../elsewhere", "..\\elsewhere", "a b", "a/b", "x" * 300, "x" * 301]
    places = [plan(experiment, tmp_path, changes={"kind": kind}).place for kind in kinds]
    assert len(set(places)) == len(kinds)
    for place in places:
        assert place.parent == tmp_path and len(place.name) <= LONGEST + 9
        place.mkdir()

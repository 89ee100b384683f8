"""Rows of the cross-entropy tables, and their figures."""

from types import SimpleNamespace

import pytest

from nearid.lab.framework.figures import HeatMaps, ScatterMatrix
from nearid.lab.framework.settings import changed
from nearid.lab.papers.reizinger.cross_entropy import Parameters
from nearid.lab.papers.reizinger.cross_entropy_table import Setting, columns, figures, rows_of, shared_settings


def test_every_setting_has_both_heads():
    rows = rows_of([Setting("a", "A", {"d": 7}, unit=(1.0, 2.0), free=(3.0,))], Parameters(), "note")
    assert [(r.key, r.changes["normalise"], r.changes["d"]) for r in rows] == [
        ("a-unit", True, 7),
        ("a-free", False, 7),
    ]
    assert {k: v.value for k, v in rows[0].published.items()} == {"r2_z": 1.0, "r2_w": 2.0}
    assert {k: v.value for k, v in rows[1].published.items()} == {"r2_z": 3.0}
    assert not any(v.verified for r in rows for v in r.published.values())


@pytest.mark.parametrize("change", [{"d": 4}, {"kappa": 9.0}, {"noise": 0.1}, {"classes": 50}])
def test_nothing_published_stands_beside_another_process(change):
    assert not any(r.published for r in rows_of([Setting("a", "A", {}, (1.0,), (1.0,))], Parameters(**change), ""))


def test_settings_are_those_of_the_paper():
    by_key = {s.key: s.changes for s in shared_settings(Parameters())}
    assert by_key["double-d"] == {"d": 10} and by_key["quadruple-d"] == {"d": 20}
    assert by_key["few-classes-quadruple-d"] == {"classes": 10, "d": 20}
    assert by_key["many-classes"]["classes"] == 1000 and by_key["high-kappa"] == {"kappa": 50}
    assert [by_key[f"noise-{s}"]["noise"] for s in (20, 50, 80, 100)] == [0.2, 0.5, 0.8, 1.0]


@pytest.mark.parametrize("classes", [2, 15, 100])
def test_all_rows_have_possible_parameters(classes):
    p = Parameters(classes=classes)
    for row in rows_of(shared_settings(p), p, ""):
        assert changed(p, row.changes).instances >= changed(p, row.changes).classes


def test_only_instances_have_equals_within_a_class():
    assert {c.key for c in columns(instances=True)} - {c.key for c in columns(instances=False)} == {
        "within",
        "r2_unseen",
    }


def test_figures_of_some_rows():
    views = {
        "true": [[1.0, 2.0]] * 3,
        "recovered": [[1.1, 2.1]] * 3,
        "before": [[0.1] * 2] * 2,
        "after": [[1.0] * 2] * 2,
    }
    rows = rows_of(shared_settings(Parameters()), Parameters(), "")
    found = SimpleNamespace(rows=rows, of_row=lambda key: [SimpleNamespace(data={"views": views})] * 2)
    slots = figures(found)
    assert [type(s) for s in slots] == [ScatterMatrix, HeatMaps] * 8
    assert slots[0].title.startswith("base, normalised W") and slots[0].across["recovered z1"] == [1.1] * 3
    assert slots[1].panels["after"] == [[1.0] * 2] * 2 and slots[1].columns == ["z1", "z2"]

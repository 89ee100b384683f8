"""Rows of the cross-entropy tables, and their figures."""

from types import SimpleNamespace

import pytest

from nearid.base.estimate import Estimate
from nearid.lab.framework.claims import Status
from nearid.lab.framework.experiment import Column
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.reizinger.cross_entropy import Parameters
from nearid.lab.papers.reizinger.cross_entropy_tables import (
    DIET,
    ROBUSTNESS,
    SUPERVISED,
    TABLE_2,
    TABLE_3,
    Setting,
    columns,
    diet_rows,
    figures,
    near_published,
    rows_of,
    shared_settings,
    supervised_rows,
)
from nearid.show.figures import HeatMap, Panels

CLAIMS = [near_published(((98.6, 99.9), (99.0, 99.9))), *ROBUSTNESS]
# R2 z~->z as the paper has them, with values for what its text alone tells.
R2 = {
    "base": 98.8, "double-d": 92.5, "quadruple-d": 75.0, "high-kappa": 55.0, "few-classes-double-d": 60.0,
    "few-classes-quadruple-d": 40.0, "enough-double-d": 85.0, "enough-quadruple-d": 60.0, "normal": 98.5,
    "noise-20": 98.0, "noise-50": 97.0, "noise-80-more": 96.0, "noise-100": 30.0,
}  # fmt: skip


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
    assert [type(s) for s in slots] == [Panels, HeatMap] * 8
    assert slots[0].title.startswith("base, normalised W") and slots[0].panels[-2].x == "recovered z1"
    assert slots[1].panels["after"] == [[1.0] * 2] * 2 and slots[1].columns == ["z1", "z2"]


class Found:
    """A result of three seeds."""

    def __init__(self, **changes):
        self.ran = {f"{setting}-{head}" for setting in R2 for head in ("unit", "free")}
        self.r2 = R2 | {name.replace("_", "-"): value for name, value in changes.items()}

    def scores(self, row, column):
        setting, _ = row.rsplit("-", 1)
        value = self.r2[setting] if column == "r2_z" else 0.0 if setting == "noise-100" else 99.9
        return {seed: value + 0.01 * seed for seed in range(3)}

    def estimate(self, row, column):
        return Estimate.over(self.scores(row, column).values())

    def failed_seeds(self, row):
        return []

    def label(self, row, column):
        return f"{column} of {row}"

    def column(self, key):
        return Column(key, key)


def not_reproduced(found):
    return [k for k, claim in enumerate(CLAIMS) if claim.test(found).status is not Status.REPRODUCED]


def test_the_published_table_bears_every_claim_out():
    assert not_reproduced(Found()) == []


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"base": 96.0, "noise_100": 0.0}, [0]),
        ({"double_d": 70.0}, [1]),
        ({"enough_double_d": 65.0}, [3]),
        ({"high_kappa": 90.0}, [2]),
        ({"few_classes_quadruple_d": 70.0}, [3]),
        ({"normal": 90.0}, [4]),
        ({"noise_50": 93.0}, [5]),
        ({"noise_80_more": 93.0}, [5]),
        ({"noise_100": 95.0}, [6]),
    ],
)
def test_each_claim_can_fail(changes, broken):
    assert not_reproduced(Found(**changes)) == broken


def test_every_value_of_table_2_value_has_its_row():
    found = {r.key: {k: v.value for k, v in r.published.items()} for r in diet_rows(parameters_for(DIET, "paper"))}
    for key, heads in TABLE_2.items():
        for head, (z, w) in zip(("unit", "free"), heads, strict=True):
            assert found.pop(f"{key}-{head}") == {"r2_z": z, "r2_w": w}
    assert not any(found.values())


def test_fewer_instances_have_no_published_value():
    by_key = {r.key: r for r in diet_rows(parameters_for(DIET, "cpu"))}
    assert by_key["base-unit"].published and not by_key["many-instances-unit"].published


def test_every_value_of_table_3_value_has_its_row():
    found = {
        r.key: {k: v.value for k, v in r.published.items()} for r in supervised_rows(parameters_for(SUPERVISED, "cpu"))
    }
    for key, z in TABLE_3.items():
        assert found.pop(f"{key}-free") == {"r2_z": z}
    assert not any(found.values())

"""Rows of the cross-entropy tables, and their figures."""

from types import SimpleNamespace

import pytest

from nearid.base.estimate import Estimate
from nearid.lab.framework.claims import Outcome, Status
from nearid.lab.framework.experiment import Column
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.reizinger.cross_entropy import Parameters
from nearid.lab.papers.reizinger.cross_entropy_tables import (
    DIET,
    ROBUSTNESS,
    STANDS_FOR,
    SUPERVISED,
    TABLE_2,
    TABLE_3,
    Setting,
    all_but_one,
    columns,
    diet_rows,
    figures,
    near,
    near_published,
    row_claims,
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
    assert all(v.verified for r in rows for v in r.published.values())
    [only] = rows_of([Setting("b", "B", {}, heads=("free",))], Parameters(), "")
    assert only.key == "b-free" and not only.changes["normalise"]


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
    for key, heads in (TABLE_2 | {key: TABLE_2[published] for key, published in STANDS_FOR.items()}).items():
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
    for key, z in (TABLE_3 | {key: TABLE_3[published] for key, published in STANDS_FOR.items()}).items():
        assert found.pop(f"{key}-free") == {"r2_z": z}
    assert not any(found.values())


def told(status):
    return lambda result: Outcome(status, f"{status}.")


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        (["REPRODUCED"] * 3 + ["NOT_REPRODUCED"], "REPRODUCED"),
        (["REPRODUCED"] * 3 + ["UNDECIDED"], "REPRODUCED"),
        (["REPRODUCED"] * 2 + ["NOT_REPRODUCED", "UNDECIDED"], "UNDECIDED"),
        (["REPRODUCED", "REPRODUCED", "NOT_REPRODUCED", "NOT_REPRODUCED"], "NOT_REPRODUCED"),
    ],
)
def test_all_but_one(statuses, status):
    assert all_but_one(*(told(Status[s]) for s in statuses))(None).status is Status[status]


def test_all_but_one_needs_its_rows():
    missing = Outcome(Status.NOT_TESTABLE, "Needs the row a, which was not run.", needs=("a",))
    outcome = all_but_one(lambda result: missing, lambda result: missing)(None)
    assert outcome.status is Status.NOT_TESTABLE and outcome.needs == ("a",)


@pytest.mark.parametrize(
    ("setting", "published", "measured", "status"),
    [
        ("base", 98.8, 96.9, "REPRODUCED"),
        ("base", 98.8, 99.9, "REPRODUCED"),
        ("base", 98.8, 96.7, "NOT_REPRODUCED"),
        # Of a limit both sides count, unless its published value is nearly that of the theorem.
        ("high-kappa", 60.0, 55.1, "REPRODUCED"),
        ("high-kappa", 60.0, 64.9, "REPRODUCED"),
        ("high-kappa", 60.0, 54.0, "NOT_REPRODUCED"),
        ("high-kappa", 60.0, 66.0, "NOT_REPRODUCED"),
        ("high-kappa", 96.0, 99.0, "REPRODUCED"),
        ("high-kappa", 96.0, 93.0, "NOT_REPRODUCED"),
    ],
)
def test_near_is_below_alone_where_the_theorem_holds(setting, published, measured, status):
    found = Found(**{setting.replace("-", "_"): measured})
    assert near(setting, "unit", (published,))(found).status is Status[status]


def test_every_line_of_the_tables_has_a_claim():
    texts = [claim.text for claim in row_claims(TABLE_2)]
    # The base has one of its own, two lines are judged where they were trained longer, and two have two readings.
    assert len(texts) == len(TABLE_2) - 1 + 2 and len(set(texts)) == len(texts)
    found = Found()
    found.ran, found.parameters, found.scores = set(), DIET.defaults, lambda row, column: {}
    assert all(c.test(found).status is Status.NOT_TESTABLE for c in (*DIET.claims, *SUPERVISED.claims))

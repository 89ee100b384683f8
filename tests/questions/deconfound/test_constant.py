"""Columns that are constant within batches, labels, or combinations of the metadata such as a compound and its dose."""

import numpy as np
import pandas as pd
import pytest

from nearid import open_rows
from nearid.questions.deconfound.also import open_also
from nearid.questions.deconfound.constant import MOST_ROWS, constant_columns
from nearid.questions.deconfound.design import open_design

KEPT = ("normal", "rounded", "sparse", "count", "binary", "clipped")


@pytest.fixture
def wells(rng):
    """24 compounds of 6 mechanisms at 4 doses and 2 times, each once on 5 plates; features that repeat often."""
    at = pd.MultiIndex.from_product([range(24), range(4), range(2), range(5)]).to_frame(index=False)
    compound, dose, time, plate = at.to_numpy().T
    n = len(at)
    return pd.DataFrame(
        {
            "moa": [f"m{c // 4}" for c in compound],
            "compound": [f"c{c}" for c in compound],
            "Metadata_uM": np.array([0.1, 0.5, 2.5, 10.0])[dose],
            "hours": [f"{24 * (t + 1)} h" for t in time],
            "plate": [f"P{p}" for p in plate],
            "normal": rng.normal(size=n),
            "rounded": rng.normal(size=n).round(1),
            "sparse": rng.normal(size=n) * (rng.random(n) < 0.1),
            "count": 30.5 + rng.poisson(3, n),
            "binary": 0.5 + (rng.random(n) < 0.5),
            "clipped": np.clip(rng.normal(size=n) + 2.0 * compound, None, 3.0),
            "p_value": rng.random((24, 4))[compound, dose].round(3),
            "kinetics": rng.random((24, 4, 2))[compound, dose, time],
            "weight": rng.normal(size=24)[compound],
        }
    ).sample(frac=1, random_state=0, ignore_index=True)


def _alert(design):
    return next(alert.message for alert in design.alerts if alert.code == "metadata_columns")


def test_statistics_of_a_compound_and_dose_are_left_out_and_named(wells):
    design = open_design(wells, "moa", "plate")
    assert design.rows.columns == KEPT
    alert = _alert(design)
    assert "'p_value' (constant within each 'compound' x 'Metadata_uM')" in alert
    assert "'kinetics' (constant within each 'compound' x 'hours' x 'Metadata_uM')" in alert
    assert "'weight' (constant within each 'compound')" in alert and "--features '*'" in alert
    design = open_design(wells, "compound", "plate")
    assert "'p_value' (constant within each label x 'Metadata_uM')" in _alert(design)


def test_they_are_used_if_they_are_named(wells):
    assert open_design(wells, "moa", "plate", features="p_value,normal").rows.columns == ("normal", "p_value")


def test_the_metadata_may_be_a_table_of_its_own(wells):
    about = wells[["moa", "compound", "Metadata_uM", "hours", "plate"]]
    design = open_design(wells.drop(columns=about.columns), "moa", "plate", meta=about)
    assert design.rows.columns == KEPT


def test_some_rows_may_be_exceptions(wells):
    """Two results of a few compounds, as a join of tables makes them."""
    wells.loc[wells.index[:3], "p_value"] += 0.1
    assert open_design(wells, "moa", "plate").rows.columns == KEPT


def test_rows_that_are_repeated_keep_their_features(wells):
    """A join with the targets of each compound: measurements are then constant within each well."""
    wells["Metadata_Well"] = [f"W{k}" for k in range(len(wells))]
    both = pd.concat([wells.assign(target="a"), wells.assign(target="b")], ignore_index=True)
    assert open_design(both, "moa", "plate").rows.columns == KEPT


def test_labels_alone_do(rng):
    """Without any other column, a statistic of the label, and two constant within batches and blocks."""
    labels, batches = np.repeat(np.arange(8), 20), np.tile(np.arange(4), 40)
    blocks = np.arange(160) % 80
    x = pd.DataFrame({"a": rng.normal(size=160), "b": rng.normal(size=8)[labels], "c": rng.normal(size=4)[batches]})
    x["d"] = rng.normal(size=80)[blocks]
    assert constant_columns(open_rows(x), batches, blocks, {"label": labels}) == {
        "b": "constant within each label",
        "c": "constant within each batch",
        "d": "constant within each block",
    }


def test_large_tables_are_judged_by_some_labels(rng):
    n = 3 * MOST_ROWS
    compound, dose, plate = rng.integers(0, 500, n), rng.integers(0, 5, n), rng.integers(0, 40, n)
    frame = pd.DataFrame({"x": rng.normal(size=n), "y": rng.normal(size=n), "p": rng.random((500, 5))[compound, dose]})
    frame = frame.assign(compound=compound.astype(str), dose=dose.astype(str), plate=plate.astype(str))
    design = open_design(frame, "compound", "plate")
    assert design.rows.columns == ("x", "y")


@pytest.mark.parametrize(("labels", "n"), [(2, 3 * MOST_ROWS), (5, 100_000)])
def test_few_large_labels_are_compared(rng, labels, n):
    """Each label has more rows than are looked at."""
    codes, plate = np.arange(n) % labels, rng.integers(0, 4, n)
    frame = pd.DataFrame({"x": rng.normal(size=n), "y": rng.normal(size=n), "p": rng.normal(size=labels)[codes]})
    expected = {"p": "constant within each label"}
    assert constant_columns(open_rows(frame), plate, groups={"label": codes}) == expected
    design = open_design(frame.assign(drug=codes.astype(str), plate=plate.astype(str)), "drug", "plate")
    assert design.rows.columns == ("x", "y")
    also, alerts = open_also({"mine": frame}, frame, design, None, ())
    assert also["mine"].rows.columns == ("x", "y") and "'p'" in "".join(alert.message for alert in alerts)


def test_measurements_with_few_values_may_determine_each_other(rng):
    """Shares of cells add up to one; a statistic of a drug and dose is left out, though the dose is not marked."""
    n = 2000
    drug, dose, share = rng.integers(0, 5, n), rng.integers(0, 6, n), rng.integers(0, 9, n) / 8
    frame = pd.DataFrame({"x": rng.normal(size=n), "frac_G1": share, "frac_G2": 1 - share, "uM": dose / 8})
    frame["p_value"] = rng.random((5, 6))[drug, dose]
    frame = frame.assign(drug=drug.astype(str), plate=rng.integers(0, 4, n).astype(str), note=rng.choice(["a", "b"], n))
    design = open_design(frame, "drug", "plate")
    assert design.rows.columns == ("x", "frac_G1", "frac_G2", "uM")
    assert "'p_value' (constant within each label x 'uM')" in _alert(design)


def test_features_are_not_lost_by_chance(rng):
    """Features with few values, in tables of many small groups, over many draws."""
    lost = 0
    for _ in range(20):
        n = 200
        frame = pd.DataFrame(rng.normal(size=(n, 40)) * (rng.random((n, 40)) < rng.random(40)))
        frame.columns = [f"f{name}" for name in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"]
        for name in ("drug", "dose", "time", "person"):
            frame[name] = rng.integers(0, 6, n).astype(str)
        frame["plate"] = rng.integers(0, 5, n).astype(str)
        lost += 40 - open_design(frame, "drug", "plate").rows.shape[1]
    assert lost == 0

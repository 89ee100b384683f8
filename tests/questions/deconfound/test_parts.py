"""Labels, batches and blocks that are part of the text of a column."""

import numpy as np
import pandas as pd
import pytest

from nearid import InputError
from nearid.questions.deconfound.design import open_design
from nearid.questions.deconfound.parts import possible_names


@pytest.fixture
def wells(rng):
    n = 120
    weeks, drugs = rng.integers(1, 5, n), rng.choice(["a", "b", "EMPTY"], n)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x", "y", "z"])
    frame["Plate"] = [f"Week{w}_{2000 + k % 7}" for k, w in enumerate(weeks)]
    frame["guide"] = [drug if drug == "EMPTY" else f"{drug}-{k % 3}" for k, drug in enumerate(drugs)]
    return frame, weeks, drugs


def test_the_week_of_a_plate_and_the_gene_of_a_guide(wells, tmp_path):
    frame, weeks, drugs = wells
    path = tmp_path / "wells.csv"
    frame.to_csv(path, index=False)
    for source in (frame, path):
        design = open_design(source, r"guide:^([^-]+)", r"Plate:Week\d+")
        assert np.array(design.batches.names)[design.batches.codes].tolist() == [f"Week{w}" for w in weeks]
        assert np.array(design.labels.names)[design.labels.codes].tolist() == drugs.tolist()
        assert design.rows.columns == ("x", "y", "z")
        notes = " ".join(alert.message for alert in design.alerts)
        assert "guide" not in notes and "Plate" not in notes
    apart = open_design(frame[["x", "y", "z"]], "guide:^[^-]+", r"Plate:Week(\d+)", meta=frame[["guide", "Plate"]])
    assert apart.batches.names == ("1", "2", "3", "4")


def test_rows_that_do_not_match_are_left_out_by_name(wells):
    frame, _, drugs = wells
    design = open_design(frame, r"guide:(\w+)-\d", r"Plate:Week\d+")
    assert design.n == int(np.sum(drugs != "EMPTY")) and design.labels.names == ("a", "b")
    message = next(alert.message for alert in design.alerts if "does not match" in alert.message)
    assert f"'EMPTY' in the column 'guide', so {np.sum(drugs == 'EMPTY')} rows" in message


def test_missing_numbers_have_no_class(wells, tmp_path):
    frame, weeks, _ = wells
    frame["plate"] = 100.0 * weeks
    frame.loc[[3, 9], "plate"] = np.nan
    frame.loc[5, "plate"] = 7.0
    frame.to_csv(tmp_path / "wells.csv", index=False)
    for source in (frame, tmp_path / "wells.csv"):
        design = open_design(source, "guide:^[^-]+", r"plate:^(\d)00")
        kept = np.delete(weeks, [3, 5, 9])
        assert np.array(design.batches.names)[design.batches.codes].tolist() == [str(week) for week in kept]
        messages = " ".join(alert.message for alert in design.alerts)
        assert "does not match '7' in the column 'plate', so 1 rows" in messages and "3 of 120 rows" in messages


def test_a_column_of_that_very_name_comes_first(wells):
    frame, weeks, _ = wells
    frame[r"Plate:Week\d+"] = np.where(weeks > 2, "late", "early")
    assert open_design(frame, "guide:^[^-]+", r"Plate:Week\d+").batches.names == ("early", "late")
    assert possible_names(["a:b:c", None, 3, "d"]) == ["a:b:c", "a", "a:b", "d"]


@pytest.mark.parametrize(
    ("batches", "sentence"),
    [
        (r"Plate:Weak\d+", r"matches no value of the column 'Plate', which holds 'Week"),
        ("Plate:Week(", r"'Week\(' is no regular expression"),
        (r"Plat:Week\d+", r"nothing named 'Plat' .*Did you mean 'Plate'"),
        ("Plate:", "matches no value"),
    ],
)
def test_patterns_that_are_wrong(wells, batches, sentence):
    with pytest.raises(InputError, match=sentence):
        open_design(wells[0], "guide", batches)

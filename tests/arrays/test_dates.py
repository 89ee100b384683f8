"""Dates and times: the same text in every format, as labels, batches, blocks, ids and classes."""

import datetime

import numpy as np
import pandas as pd
import pytest

from nearid.arrays import open_columns, open_rows
from nearid.arrays.dates import date_texts
from nearid.base.errors import InputError
from nearid.measures.factors import open_factors
from nearid.questions.deconfound.design import open_design

DAYS = ["2024-01-05", "2024-01-06", "2024-01-05", "2024-01-07"]
TIMES = [f"{day} 10:30:0{at}" for at, day in enumerate(DAYS)]

SPELT = {
    "days": (np.array(DAYS, "M8[D]"), DAYS),
    "days in nanoseconds": (np.array(DAYS, "M8[ns]"), DAYS),
    "months": (np.array(["2024-01", "2024-02"], "M8[M]"), ["2024-01-01", "2024-02-01"]),
    "seconds": (np.array(TIMES, "M8[ns]"), TIMES),
    "a midnight among times": (np.array([DAYS[0], TIMES[1]], "M8[us]"), [f"{DAYS[0]} 00:00:00", TIMES[1]]),
    "fractions": (np.array(["2024-01-05T10:30:00.25"], "M8[ns]"), ["2024-01-05 10:30:00.250"]),
    "missing": (np.array([DAYS[0], "NaT"], "M8[D]"), [DAYS[0], None]),
    "date objects": (np.array([datetime.date(2024, 1, 5), None], object), [DAYS[0], None]),
    "timestamps": (np.array([pd.Timestamp(TIMES[1]), pd.NaT], object), [TIMES[1], None]),
    "a time zone": (np.array([pd.Timestamp(TIMES[1], tz="Etc/GMT-2")], object), ["2024-01-06 08:30:01"]),
    "a zone of datetime": (
        np.array([datetime.datetime(2024, 1, 5, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))], object),
        ["2024-01-04 23:00:00"],
    ),
    "times of day": (np.array([datetime.time(10, 30)], object), ["10:30:00"]),
}


@pytest.mark.parametrize(("values", "texts"), SPELT.values(), ids=list(SPELT))
def test_the_text_of_dates(values, texts):
    assert date_texts(values).tolist() == texts


@pytest.mark.parametrize(
    "values", [np.array(["2024-01-05"]), np.arange(3), np.array([None, None]), np.array([datetime.date.min, 3], object)]
)
def test_other_values_are_no_dates(values):
    assert date_texts(values) is None


@pytest.fixture(params=["csv", "parquet", "frame", "dict", "npz", "category"])
def table(request, tmp_path):
    """Two columns of dates beside a label and a number, in every form that a table may have; 40 rows."""
    frame = pd.DataFrame(
        {"day": pd.to_datetime(DAYS * 10), "at": pd.to_datetime(TIMES * 10), "drug": list("abbaa") * 8, "size": 1.5}
    )
    frame["size"] += np.arange(40)
    path = tmp_path / f"dates.{request.param}"
    if request.param == "csv":
        frame.to_csv(path, index=False)
    elif request.param == "parquet":
        frame.to_parquet(path)
    elif request.param == "npz":
        np.savez(path, **{name: np.asarray(frame[name]) for name in ("day", "at", "size")}, drug=list("abbaa") * 8)
    elif request.param == "dict":
        return {name: frame[name].to_numpy() for name in frame}
    else:
        kind = {"day": "category", "at": "category"} if request.param == "category" else {}
        return frame.astype(kind)
    return path


def test_dates_are_batches_and_blocks_by_their_names(rng, table):
    for name, texts in (("day", sorted(set(DAYS))), ("at", TIMES)):
        design = open_design(rng.normal(size=(40, 3)), "drug", name, meta=table)
        assert set(design.batches.names) == set(texts)
    design = open_design(rng.normal(size=(40, 3)), "day", "drug", "at", meta=table, control=pd.Timestamp(DAYS[1]))
    assert design.labels.names[design.control] == DAYS[1]
    assert len(np.unique(design.blocks)) == 8


def test_dates_are_factors_where_they_are_given_as_categorical(table):
    given = open_factors(table, kinds={"day": "categorical"})
    (day,) = (factor for factor in given.items if factor.name == "day")
    assert day.labels.tolist() == sorted(set(DAYS))


def test_dates_of_no_kind_are_left_out_with_a_sentence(table):
    columns = open_columns(table)
    if columns.values["day"].dtype.kind == "O":
        pytest.skip("a pandas category is categorical by its type")
    found = open_factors(table)
    assert set(found.names) == {"drug", "size"}
    (alert,) = found.alerts
    assert "'day', 'at'" in alert.message and "--kinds day=categorical" in alert.message
    with pytest.raises(InputError, match=r"only if they are given as categorical: 'day'.*convert them"):
        open_factors(table, periods={"day": 365})
    with pytest.raises(InputError, match=r"only if they are given as categorical: '0'"):
        open_factors(columns.values["day"])


@pytest.mark.parametrize("form", [np.asarray, list, pd.Series])
def test_dates_are_blocks_and_ids(rng, form):
    rows = open_rows(rng.normal(size=(4, 2)), blocks=form(pd.to_datetime(DAYS)), ids=form(pd.to_datetime(TIMES)))
    assert rows.blocks.tolist() == DAYS
    assert rows.ids.tolist() == TIMES


def test_a_column_of_dates_serves_as_blocks_of_its_table(rng, tmp_path):
    frame = pd.DataFrame({"emb": rng.normal(size=4), "day": pd.to_datetime(DAYS)})
    frame.to_parquet(tmp_path / "x.parquet")
    frame.to_csv(tmp_path / "x.csv")
    for source in (frame, tmp_path / "x.parquet", tmp_path / "x.csv"):
        assert open_rows(source, blocks="day").blocks.tolist() == DAYS
    np.save(tmp_path / "x.npy", rng.normal(size=(4, 2)))
    assert open_rows(tmp_path / "x.npy", blocks=f"{tmp_path}/x.parquet:day").blocks.tolist() == DAYS


def test_missing_dates_are_no_blocks_and_dates_no_features(rng):
    with pytest.raises(InputError, match="block of row 1 of array is None"):
        open_rows(rng.normal(size=(2, 2)), blocks=np.array([DAYS[0], "NaT"], "M8[D]"))
    with pytest.raises(InputError, match=r"Convert the dates first.*timedelta64\(1, 'D'\)"):
        open_rows(np.array([DAYS, DAYS], "M8[D]"))

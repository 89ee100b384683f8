"""Position on the plate: names of wells, and what row and column explain against least squares."""

import numpy as np
import pandas as pd
import pytest

import nearid
from nearid import InputError
from nearid.questions.deconfound.conditions import ComponentRows, Condition
from nearid.questions.deconfound.design import Categories, open_design
from nearid.questions.deconfound.position import position_shares
from nearid.questions.deconfound.wells import split_position, well_places
from nearid.show.terminal import text


def test_names_of_wells():
    names = Categories.of(np.array(["B07", "b7", "AA1", "r02c07", "Z-24", None], dtype=object))
    assert well_places({"position": names}).tolist() == [[2, 7], [2, 7], [27, 1], [2, 7], [26, 24], [-1, -1]]
    assert well_places({}) is None
    with pytest.raises(InputError, match="the value 'edge', which is not the name of a well"):
        well_places({"position": Categories.of(np.array(["A01", "edge"]))})
    assert list(split_position("row, column").values()) == ["row", "column"]
    with pytest.raises(InputError, match="takes one column"):
        split_position("a,b,c")


def wells(rng, edge, batches=8):
    """Plates of 6 x 8 wells; the outer wells of every plate are shifted in the first column."""
    rows, columns = (a.ravel() for a in np.meshgrid(np.arange(6), np.arange(8), indexing="ij"))
    plate = np.repeat(np.arange(batches), 48)
    r, c = np.tile(rows, batches), np.tile(columns, batches)
    labels = rng.choice(["DMSO", "DMSO", "a", "b"], len(plate))
    x = rng.normal(size=(len(plate), 3)) + rng.normal(size=(batches, 3))[plate]
    x[:, 0] += edge * ((r == 0) | (r == 5))
    return x, labels, plate, r, c


def shares(x, labels, plate, position, control="DMSO"):
    design = open_design(x, labels, plate, control=control, position=position)
    whole = Condition("base", np.zeros(3), None, np.arange(3), np.ones(3))
    return position_shares(ComponentRows(design.rows, whole), design, design.position)


def test_shares_are_those_of_least_squares(rng):
    x, labels, plate, r, c = wells(rng, 2.0)
    found = shares(x, labels, plate, np.column_stack([r, c]))
    mine = labels == "DMSO"
    before = pd.get_dummies(plate[mine]).to_numpy(float)
    after = np.hstack([before, *(pd.get_dummies(v[mine]).to_numpy(float) for v in (r, c))])

    def left(design):
        fit, *_ = np.linalg.lstsq(design, x[mine], rcond=None)
        return np.sum((x[mine] - design @ fit) ** 2, axis=0) / (mine.sum() - np.linalg.matrix_rank(design))

    assert found.share == pytest.approx(1 - left(after) / left(before), abs=1e-5)
    assert found.of_controls and found.wells == mine.sum()
    assert found.share[0] > 0.3 and found.p[0] < 1e-6 and np.abs(found.share[1:]).max() < 0.15
    every = shares(x, labels, plate, np.column_stack([r, c]), control=None)
    assert not every.of_controls and every.share[0] > 0.3


def test_rows_of_a_well_count_once(rng):
    x, labels, plate, r, c = wells(rng, 0.0)
    four = [np.repeat(a, 4, axis=0) for a in (x, labels, plate, r, c)]
    once, again = shares(x, labels, plate, np.column_stack([r, c])), shares(*four[:3], np.column_stack(four[3:]))
    assert again.share == pytest.approx(once.share, abs=1e-5) and again.wells == once.wells


def test_labels_that_have_their_places_cannot_be_separated(rng):
    x, _, plate, r, c = wells(rng, 1.0)
    layout = np.array([f"{a}-{b}" for a, b in zip(r, c, strict=True)])
    assert np.isnan(shares(x, layout, plate, np.column_stack([r, c]), control=None).share).all()


def test_edges_are_reported_by_the_whole(rng):
    x, labels, plate, r, c = wells(rng, 3.0)
    table = pd.DataFrame(x, columns=["f0", "f1", "f2"]).assign(drug=labels, plate=plate, row=r, col=c)
    table["well"] = [f"{chr(65 + a)}{b + 1:02d}" for a, b in zip(r, c, strict=True)]
    quick = {"control": "DMSO", "folds": 2, "classifiers": "logistic", "top": (), "directions": "most"}
    by_name = nearid.deconfound(table, "drug", "plate", position="well", conditions="base", **quick)
    by_two = nearid.deconfound(table, "drug", "plate", position="row,col", conditions="base", **quick)
    assert by_two.width == by_name.width == 3
    position = by_name.conditions["base"].position
    assert position.share == pytest.approx(by_two.conditions["base"].position.share)
    told = next(a.message for a in by_name.alerts if a.code == "position")
    assert "of component 0" in told and "position on the plate explains" in text(by_name.view, everything=True)
    assert by_name.to_dict()["conditions"]["base"]["components"]["position"][0] == pytest.approx(position.share[0])
    with pytest.raises(InputError, match="Did you mean 'well'"):
        nearid.deconfound(table, "drug", "plate", position="wel", conditions="base", **quick)

"""Deconfounding as an experiment: a cell of the drawn screen, its rows, its figure."""

import json

import pytest

from nearid.errors import InputError
from nearid.experiments.cells import Finished, cells_of
from nearid.experiments.deconfounding import CONDITIONS, DECONFOUNDING, Parameters, cell, figures, rows
from nearid.experiments.result import Result
from nearid.experiments.settings import settle

E = DECONFOUNDING


@pytest.fixture(scope="module")
def small():
    return settle(E, "smoke", {"classifier": "logistic", "size": 2000})


@pytest.fixture(scope="module")
def done(small, tmp_path_factory):
    return cell(small, 0, tmp_path_factory.mktemp("cell"))


def test_a_cell_of_the_drawn_screen(done):
    scores = done["scores"]
    assert {f"auroc_{c}" for c in CONDITIONS} | {f"concentration_{c}" for c in CONDITIONS} <= set(scores)
    assert scores["auroc_base"] > 0.7 and scores["technical"] > 0.9
    assert scores["sparsity_ica"] > scores["sparsity_random"]
    assert {c.key for c in E.columns} >= set(scores)
    json.dumps(done, allow_nan=False)


def test_rows():
    keys = [row.key for row in rows(Parameters())]
    assert keys == ["screen", "bbbc021", "bbbc021-weeks", "cell-health", "lincs"]
    mine = rows(Parameters(embedding="emb.npy"))[-1]
    assert (
        mine.key == "file" and mine.published["auroc_ica"].value == 0.733 and not mine.published["auroc_ica"].verified
    )


def test_a_missing_path_is_told(tmp_path):
    with pytest.raises(InputError, match="embedding="):
        cell(Parameters(source="file"), 0, tmp_path)


def results(changes):
    """A result whose every row has ICA ahead, unless it is told otherwise."""
    p = settle(E, "cpu")
    ahead = {"base": 0.6, "pca": 0.65, "random": 0.62, "ica": 0.7}
    scores = {f"{s}_{c}": v for s in ("auroc", "sparsity", "concentration") for c, v in ahead.items()}
    views = {"each": {c: {"x": v, "y": None} for c, v in ahead.items()}}
    told = [
        Finished(c, {"scores": scores | {"technical": 0.95} | changes.get(c.row.key, {}), "views": views}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    return Result(E, "cpu", p, range(3), told, (), {})


def test_claims_decide():
    def statuses(**changes):
        return [str(o.status) for _, o in results(changes).outcomes]

    assert statuses() == ["reproduced"] * 5
    assert statuses(screen={"auroc_ica": 0.63, "technical": 0.8}) == [
        "not reproduced",
        "reproduced",
        "reproduced",
        "not reproduced",
        "reproduced",
    ]
    assert statuses(lincs={"auroc_ica": 0.5})[-1] == "not reproduced"
    assert statuses(screen={"sparsity_random": 0.9})[1] == "not reproduced"


def test_the_figure():
    (plane,) = figures(results({}))
    assert len(plane.points) == 5 and all(p == ([0.6], [0.7]) for p in plane.points.values())

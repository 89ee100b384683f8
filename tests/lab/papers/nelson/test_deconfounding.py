"""Deconfounding as an experiment: a cell of the drawn screen, its rows, its figure."""

import json

import numpy as np
import pandas as pd
import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.nelson.deconfounding import CONDITIONS, DECONFOUNDING, Parameters, cell, figures, rows
from nearid.show.figures import Text

E = DECONFOUNDING


@pytest.fixture(scope="module")
def small():
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    return parameters_for(E, "smoke", {"size": 2000, "effect": 2.0})


@pytest.fixture(scope="module")
def done(small, tmp_path_factory):
    return cell(small, 0, tmp_path_factory.mktemp("cell"))


def test_a_cell_of_the_drawn_screen(done, small):
    scores = done["scores"]
    assert {f"auroc_{c}" for c in CONDITIONS} | {f"concentration_{c}" for c in CONDITIONS} <= set(scores)
    assert scores["auroc_base"] > 0.7 and scores["technical"] > 0.8
    assert {c.key for c in E.columns} == set(scores) and scores["rows_per_angle"] == pytest.approx(2000 / 45)
    views = done["views"]
    # Which condition is sparser such a small screen does not show (tests/questions/deconfound/test_run.py does).
    means = {
        (r["score"], r["condition"]): r["mean"]
        for r in views["table"]
        if (r["direction"], r["classifier"], r["perturbation"]) == ("most", small.classifier, "(all)")
    }
    for c in CONDITIONS:
        assert scores[f"sparsity_{c}"] == means["sparsity", c] and 0 < scores[f"sparsity_{c}"] < 1
        assert scores[f"concentration_{c}"] == means[f"concentration@{small.ks[0]}", c]
        assert scores[f"auroc_{c}"] == means["auroc", c]
    # Everything is kept: standard errors over folds, both directions and classifiers, all tests.
    assert {r["direction"] for r in views["table"]} == {"most", "one"}
    assert {(t["score"], t["perturbation"]) for t in views["tests"]} >= {("auroc", "(all)"), ("sparsity", "p1")}
    assert "Differences of sparsity" in views["text"]
    assert {"ICA", "classifiers, ica"} <= set(views["provenance"]["core_seconds"])
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
    with pytest.raises(InputError, match="top=5,10,20"):
        Parameters(top="five")
    with pytest.raises(InputError, match="top=5,10,20"):
        Parameters(top="²")


def test_an_embedding_of_ones_own(tmp_path):
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    rng = np.random.default_rng(0)
    labels = rng.choice(["EMPTY", "MTOR"], 300)
    np.save(tmp_path / "emb.npy", rng.laplace(size=(300, 4)) + np.outer(labels == "MTOR", [4, 0, 0, 0]))
    pd.DataFrame({"label": labels, "batch": rng.integers(0, 6, 300)}).to_parquet(tmp_path / "meta.parquet")
    given = {"embedding": str(tmp_path / "emb.npy"), "meta": str(tmp_path / "meta.parquet"), "control": "EMPTY"}
    p = parameters_for(E, "smoke", {**given, "source": "file", "top": "1"})
    found = cell(p, 0, tmp_path)
    assert list(found["views"]["perturbations"]) == ["MTOR"] and found["scores"]["auroc_base"] > 0.7
    assert "technical" not in found["scores"]


def results(changes):
    """A result whose every row has ICA ahead, unless it is told otherwise."""
    p = parameters_for(E, "cpu")
    ahead = {"base": 0.6, "pca": 0.65, "random": 0.62, "ica": 0.7}
    scores = {f"{s}_{c}": v for s in ("auroc", "sparsity", "concentration") for c, v in ahead.items()}
    views = {"each": {c: {"x": v, "y": None} for c, v in ahead.items()}, "text": "tables"}
    told = [
        Finished(c, {"scores": scores | {"technical": 0.95} | changes.get(c.row.key, {}), "views": views}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    return ExperimentResult(E, "cpu", p, range(3), told, (), {})


def test_claims_decide():
    def statuses(**changes):
        return [str(o.status) for _, o in results(changes).outcomes]

    yes, no = "reproduced", "not reproduced"
    assert statuses() == [yes] * 6
    assert statuses(screen={"auroc_ica": 0.63, "technical": 0.8}) == [no, yes, yes, no, yes, yes]
    assert statuses(screen={"sparsity_base": 0.9})[1] == no
    # As sparse as that by a rotation that knows nothing.
    assert statuses(screen={"sparsity_random": 0.68})[2] == no
    assert statuses(lincs={"auroc_ica": 0.5})[4:] == [no, yes]
    assert statuses(bbbc021={"concentration_ica": 0.5})[4:] == [yes, no]


def test_the_figure():
    plane, *texts = figures(results({}))
    assert [type(t) for t in texts] == [Text] * 5 and texts[0].text == "tables"
    assert len(plane.points) == 5 and all(p == ([0.6], [0.7]) for p in plane.points.values())

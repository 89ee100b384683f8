"""Deconfounding as an experiment: a cell of the drawn screen, its rows, its figure."""

import json

import numpy as np
import pandas as pd
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.base import Profiles
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.nelson.deconfounding import (
    CONDITIONS,
    DECONFOUNDING,
    EFFECTS,
    SCORES,
    Parameters,
    cell,
    figures,
    planted,
    rows,
)
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
        assert scores[f"count_{c}"] == means[f"concentration@{small.ks[0]}", c]
        # Of ten columns a quarter, a tenth and a half.
        for score, k in (("concentration", 2), ("second", 1), ("third", 5)):
            assert scores[f"{score}_{c}"] == means[f"concentration@{k}", c]
        assert scores[f"auroc_{c}"] == means["auroc", c]
    # Everything is kept: standard errors over folds, both directions and classifiers, all tests.
    assert {r["direction"] for r in views["table"]} == {"most", "one"}
    assert {(t["score"], t["perturbation"]) for t in views["tests"]} >= {("auroc", "(all)"), ("sparsity", "p1")}
    assert "Differences of sparsity" in views["text"]
    assert {"ICA", "classifiers, ica"} <= set(views["provenance"]["core_seconds"])
    json.dumps(done, allow_nan=False)


def test_rows():
    keys = [row.key for row in rows(Parameters())]
    planted = [f"planted-{source}-{way}" for source in ("lincs", "bbbc021") for way in ("independent", "entangled")]
    assert keys == ["bbbc021", "bbbc021-weeks", "cell-health", "lincs", *planted, "screen"]
    assert "positive control" in rows(Parameters())[-1].title
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
    scores = {f"{s}_{c}": v for s in SCORES for c, v in ahead.items()}
    views = {"each": {c: {"x": v, "y": None} for c, v in ahead.items()}, "text": "tables"}
    told = [
        Finished(
            c,
            {
                "scores": scores
                | {"technical": 0.95}
                | ({"auroc_random": 0.69} if "entangled" in c.row.key else {})
                | changes.get(c.row.key.replace("-", "_"), {}),
                "views": views,
            },
            1.0,
            1.0,
            {},
        )
        for c in cells_of(E, p, range(3))
    ]
    return ExperimentResult(E, "cpu", p, range(3), told, (), {})


def test_claims_decide():
    def statuses(*, late=False, **changes):
        return [str(o.status) for claim, o in results(changes).outcomes if claim.late == late]

    yes, no = "reproduced", "not reproduced"
    assert statuses() == [yes] * 8
    assert statuses(screen={"auroc_ica": 0.63, "technical": 0.8}) == [yes] * 4 + [no, yes, yes, no]
    assert statuses(screen={"sparsity_base": 0.9})[5] == no
    assert statuses(screen={"third_pca": 0.9})[5] == no
    # As sparse as that by a rotation that knows nothing.
    assert statuses(screen={"sparsity_random": 0.68})[6] == no
    assert statuses(lincs={"auroc_ica": 0.5})[:2] == [no, yes]
    assert statuses(bbbc021={"concentration_ica": 0.5})[:2] == [yes, no]
    assert statuses(bbbc021={"second_ica": 0.5})[:2] == [yes, no]
    assert statuses(planted_lincs_independent={"auroc_ica": 0.6})[2:4] == [no, yes]
    # More than a rotation that knows nothing, where there is nothing to find.
    assert statuses(planted_bbbc021_entangled={"auroc_ica": 0.75})[2:4] == [yes, no]
    assert statuses(late=True) == [yes] * 4
    assert statuses(late=True, lincs={"auroc_ica": 0.64}) == [no, yes, yes, yes]
    assert statuses(late=True, lincs={"sparsity_base": 0.66}) == [yes, no, yes, yes]
    assert statuses(late=True, lincs={"second_random": 0.66}) == [yes, yes, no, yes]
    # Three real sets of four are more than half, two are not.
    easy = {"auroc_base": 0.66}
    assert statuses(late=True, lincs=easy)[3] == yes
    assert statuses(late=True, lincs=easy, bbbc021=easy)[3] == no


def test_the_figure():
    plane, *texts = figures(results({}))
    assert [type(t) for t in texts] == [Text] * 9 and texts[0].text == "tables"
    assert len(plane.points) == 9 and all(p == ([0.6], [0.7]) for p in plane.points.values())


def test_effects_are_planted_in_some_wells_of_every_plate_alone(rng):
    """Independent factors that are mixed: planted effects move one of them, or all."""
    factors = rng.laplace(size=(2000, 4))
    mixing = rng.normal(size=(4, 4))
    plates = np.array([f"p{k % 20:02}" for k in range(2000)], dtype=object)
    labels = np.where(np.arange(2000) % 40 < 20, "real", "DMSO").astype(object)
    profiles = Profiles(factors @ mixing.T, labels, {"plate": plates}, "DMSO")
    for way in ("independent", "entangled"):
        x, codes, batches = planted(Parameters(planted=way, strength=2.0, wells=10_000), profiles, 0)
        # Controls of half of the plates, each of which has all effects.
        assert len(x) == 500 and len(set(batches)) == 10
        assert {(plate, code) for plate, code in zip(batches, codes, strict=True)} == {
            (plate, code) for plate in set(batches) for code in ("control", "e1", "e2", "e3")
        }
        kept = np.isin(plates, list(set(batches))) & (labels == "DMSO")
        moved = (x - profiles.values[kept]) @ np.linalg.inv(mixing).T
        assert np.allclose(moved[codes == "control"], 0)
        sizes = np.abs([moved[codes == f"e{k + 1}"][0] for k in range(EFFECTS)]) / factors.std(axis=0)
        # Two deviations of the bulk: those of a Laplace distribution are .73 of its standard deviation.
        lengths = np.linalg.norm(sizes, axis=1)
        assert (lengths > 1.2).all() and (lengths < 2.2).all()
        if way == "independent":
            assert (sizes.max(axis=1) > 0.9 * lengths).all() and len(set(sizes.argmax(axis=1))) == EFFECTS
        else:
            assert (np.sort(sizes, axis=1)[:, -2] > 0.3).all()


def test_the_share_of_base_is_one_of_its_own_columns(monkeypatch, tmp_path, rng):
    """Where fewer components are kept than there are columns, Base is judged by a share of all its columns."""
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    labels = np.where(rng.random(400) < 0.5, "drug", "DMSO").astype(object)
    x = rng.laplace(size=(400, 12))
    x[labels == "drug", 0] += 3
    profiles = Profiles(x, labels, {"plate": rng.integers(0, 8, 400).astype(object)}, "DMSO")
    monkeypatch.setattr("nearid.lab.data.load.load_profiles", lambda name: profiles)
    p = parameters_for(E, "smoke", {"source": "bbbc021", "components": 4, "top": "1", "trees": 20})
    s = cell(p, 0, tmp_path)["scores"]
    # Three of twelve columns hold the effect, as does the first of them.
    assert s["concentration_base"] > 0.2 and s["second_base"] > 0.2 and "concentration_ica" in s

"""Word vectors of two runs: gaps, cells that repeat themselves, claims and the picture."""

import numpy as np
import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.roeder.words import WORDS, _views, cell, gaps

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

E = WORDS
SMALL = {"vocabulary": 110, "frequent": 100}


def test_words_around_a_gap(rng):
    stream = np.arange(10, 30, dtype=np.int32)
    around, inside = gaps(stream, 500, rng)
    np.testing.assert_array_equal(around, inside[:, None] + [-2, -1, 1, 2])
    assert set(inside) == set(range(12, 28))


def test_early_scores_are_those_of_the_curve(corpora, tmp_path):
    p = parameters_for(E, "smoke", SMALL)
    first = cell(p, 0, tmp_path)
    assert first["scores"]["early_f"] == first["curves"]["cca_f"]["y"][0]


@pytest.mark.parametrize("steps, looks, step", [(40, 20, 4), (30, 10, 3), (12, 20, 1)])
def test_early_is_a_tenth_of_the_steps(corpora, tmp_path, steps, looks, step):
    found = cell(parameters_for(E, "smoke", SMALL | {"steps": steps, "looks": looks}), 0, tmp_path)
    for name in ("f", "q"):
        curve = found["curves"][f"cca_{name}"]
        assert found["scores"][f"early_{name}"] == curve["y"][curve["x"].index(step)]
        assert len(set(curve["y"])) == len(curve["y"])


def test_training_brings_runs_nearer(corpora, tmp_path):
    small = SMALL | {"dimensions": 4, "held_out": 1000}
    p = parameters_for(E, "smoke", small | {"steps": 200, "batch": 512})
    trained = cell(p, 0, tmp_path / "a")["scores"]
    untrained = cell(parameters_for(E, "smoke", small | {"trained": False}), 0, tmp_path / "b")
    assert trained["cca_f"] > untrained["scores"]["cca_f"] + 0.1 and trained["r2_f"] > untrained["scores"]["r2_f"] + 0.1
    assert trained["cca_q"] > untrained["scores"]["cca_q"] + 0.15
    assert not untrained["curves"] and "early_f" not in untrained["scores"]
    assert trained["loss"] < untrained["scores"]["loss"] - 0.2 and abs(trained["log_sum"]) < 0.3


def test_the_picture_maps_the_first_run_to_the_second(rng):
    first = rng.normal(size=(400, 2))
    second = first @ [[2.0, 1.0], [0.0, -1.0]] + [3.0, 4.0]
    words = [f"w{k}" for k in range(402)]
    v = _views({"q": (first, second), "f": (first, second)}, words, np.tile(np.arange(4), (400, 1)))
    np.testing.assert_allclose(v["q"]["mapped"], v["q"]["second"], atol=1e-3)
    assert np.abs(np.subtract(v["q"]["first"], v["q"]["second"])).max() > 1
    assert v["q"]["names"][0] == "w2" and v["f"]["names"][0] == "w0 w1 _ w2 w3" and len(v["f"]["first"]) == 300


def statuses(**changes):
    p = parameters_for(E, "cpu")
    usual = {"cca_f": 0.9, "cca_q": 0.9, "early_f": 0.3, "early_q": 0.3}
    low = {"cca_f": 0.2, "cca_q": 0.0, "early_f": None, "early_q": None}
    like = {"plane-untrained": low, "more-untrained": low}
    told = [
        Finished(c, {"scores": usual | like.get(c.row.key, {}) | changes.get(c.row.key, {})}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    return [str(o.status) for _, o in ExperimentResult(E, "cpu", p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    yes, no = "reproduced", "not reproduced"
    assert statuses() == [yes] * 4
    assert statuses(plane={"cca_q": 0.7}) == [no, yes, yes, yes]
    assert statuses(more={"cca_f": 0.6}) == [yes, no, yes, yes]
    assert statuses(more={"early_q": 0.95}) == [yes, yes, no, yes]
    assert statuses(**{"plane-untrained": {"cca_f": 0.6}}) == [yes, yes, yes, no]

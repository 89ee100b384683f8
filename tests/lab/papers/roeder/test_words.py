"""Word vectors of two runs: gaps, cells that repeat themselves, claims and the picture."""

import json

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import Result
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import settle
from nearid.lab.papers.roeder.words import WORDS, Parameters, _views, cell, gaps

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

E = WORDS
SMALL = {"vocabulary": 110, "frequent": 100}


def test_words_around_a_gap(rng):
    stream = np.arange(10, 30, dtype=np.int32)
    around, inside = gaps(stream, 500, rng)
    np.testing.assert_array_equal(around, inside[:, None] + [-2, -1, 1, 2])
    assert set(inside) == set(range(12, 28))


def test_a_cell_depends_on_its_parameters_and_seed_alone(corpora, tmp_path):
    p = settle(E, "smoke", SMALL)
    first, again, other = (cell(p, seed, tmp_path / str(k)) for k, seed in enumerate((0, 0, 1)))
    assert first == again and first["scores"]["cca_f"] != other["scores"]["cca_f"]
    assert first["scores"]["early_f"] == first["curves"]["cca_f"]["y"][0]
    json.dumps(first, allow_nan=False)


@pytest.mark.parametrize("steps, looks, step", [(40, 20, 4), (30, 10, 3), (12, 20, 1)])
def test_early_is_a_tenth_of_the_steps(corpora, tmp_path, steps, looks, step):
    found = cell(settle(E, "smoke", SMALL | {"steps": steps, "looks": looks}), 0, tmp_path)
    for name in ("f", "q"):
        curve = found["curves"][f"cca_{name}"]
        assert found["scores"][f"early_{name}"] == curve["y"][curve["x"].index(step)]
        assert len(set(curve["y"])) == len(curve["y"])


def test_training_brings_runs_nearer(corpora, tmp_path):
    small = SMALL | {"dimensions": 4, "held_out": 1000}
    p = settle(E, "smoke", small | {"steps": 200, "batch": 512})
    trained = cell(p, 0, tmp_path / "a")["scores"]
    untrained = cell(settle(E, "smoke", small | {"trained": False}), 0, tmp_path / "b")
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
    p = settle(E, "cpu")
    usual = {"cca_f": 0.9, "cca_q": 0.9, "early_f": 0.3, "early_q": 0.3}
    low = {"cca_f": 0.2, "cca_q": 0.0, "early_f": None, "early_q": None}
    like = {"plane-untrained": low, "more-untrained": low}
    told = [
        Finished(c, {"scores": usual | like.get(c.row.key, {}) | changes.get(c.row.key, {})}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    return [str(o.status) for _, o in Result(E, "cpu", p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    yes, no = "reproduced", "not reproduced"
    assert statuses() == [yes] * 4
    assert statuses(plane={"cca_q": 0.7}) == [no, yes, yes, yes]
    assert statuses(more={"cca_f": 0.6}) == [yes, no, yes, yes]
    assert statuses(more={"early_q": 0.95}) == [yes, yes, no, yes]
    assert statuses(**{"plane-untrained": {"cca_f": 0.6}}) == [yes, yes, yes, no]


@pytest.mark.parametrize(
    "wrong",
    [{"dimensions": 1}, {"frequent": 9000}, {"text": "test"}, {"rate": 0.0}, {"looks": 2}, {"looks": 15}, {"steps": 9}],
)
def test_impossible_parameters_get_a_sentence(wrong):
    with pytest.raises(InputError, match=r"must be .*, not"):
        Parameters(**wrong)


def test_without_the_text_the_run_is_refused(home, tmp_path):
    with pytest.raises(InputError, match="needs WikiText-2, which is not here: get it from"):
        reproduce(E, tmp_path / "out", preset="smoke")


def test_the_smoke_preset_runs_with_figures(corpora, tmp_path, inline):
    found = reproduce(E, tmp_path / "out", preset="smoke", seeds=1, changes=SMALL)
    assert len(found.cells) == 4 and not found.failures
    slots = E.figures(found)
    assert [s.title for s in slots][::2] == [
        "Two runs: words before the linear map",
        "Two runs: contexts before the linear map",
    ]
    assert all(len(slots[0].names[group]) == len(x) for group, (x, _) in slots[0].points.items())

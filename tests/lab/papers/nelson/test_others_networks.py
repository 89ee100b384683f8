"""Networks that others trained: pairs and controls, bases whose agreement is known, claims over networks."""

from dataclasses import replace

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.ensembles import Ensemble
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.nelson.others_networks import (
    MAKERS,
    OTHERS_NETWORKS as E,
    Parameters,
    _of_folds,
    cell,
    efficiency,
    fold_numbers,
    matched,
    networks,
    networks_of,
    rows,
    told_directions,
)


@pytest.fixture
def held(monkeypatch, rng):
    """Networks whose units are independent sources in another order, and noise in weak directions of their own."""
    sources = rng.laplace(size=(600, 4))
    blocks = np.repeat(np.arange(60), 10)

    def run():
        return np.hstack([sources[:, rng.permutation(4)], 0.01 * rng.laplace(size=(600, 4))])

    names = [f"ani1{kind}_{k}" for kind in ("x", "ccx") for k in range(3)]
    hypotheses = [
        f"position-{p}-velocity-none-direction-{d}" for p in ("original", "shuffle") for d in ("none", "shuffle")
    ]
    sets = {
        "ani": {part: Ensemble({name: run() for name in names}, blocks) for part in "HC"},
        "silero-vad": {part: Ensemble({f"{part}_{v}": run() for v in range(3)}, blocks) for part in "hc"},
        "cebra": {part: Ensemble({name: run() for name in hypotheses}, blocks) for part in "38"},
    }
    monkeypatch.setattr("nearid.lab.papers.nelson.others_networks.load_ensembles", sets.get)
    return sets


def test_pairs_of_a_row(held):
    made = {row.key: networks(replace(Parameters(), **row.changes))[1] for row in rows(Parameters())}
    assert made["ani-h"] == [("ani1x_0", "ani1x_1"), ("ani1x_0", "ani1x_2"), ("ani1x_1", "ani1x_2")]
    assert made["ani-c-tuned"] == [(f"ani1x_{k}", f"ani1ccx_{k}") for k in range(3)]
    assert len(made["silero-h"]) == 3
    # One hypothesis is informed by true labels alone, two are not informed at all.
    assert made["cebra-3"] == [] and len(made["cebra-8-shuffled"]) == 1


def test_whole_blocks_are_held_out():
    folds = fold_numbers(np.array(["a", "b", "a", "c", "b", "d"]), 0)
    assert folds[0] == folds[2] and folds[1] == folds[4] and len(set(folds)) == 4


def test_weak_directions_drown_components_and_fewer_directions_help(held):
    """Units match; ICA of all directions also finds components of noise, which no other run has."""
    runs, blocks = held["ani"]["H"]
    folds = fold_numbers(blocks, 0)
    found = {
        name: matched(*(_of_folds(make, runs[f"ani1x_{k}"], folds, 0) for k in (0, 1)), folds)
        for name, make in MAKERS.items()
    }
    assert found["units"] == pytest.approx(0.5, abs=0.05) and found["all_whitened"] < 0.55
    assert found["above_whitened"] > 0.9 and found["turned"] < found["above_whitened"]
    told = told_directions(runs["ani1x_0"], runs["ani1x_1"], folds)
    assert np.allclose(told["r2"][:4], 1, atol=0.01) and max(told["r2"][4:]) < 0.1
    assert sum(told["share"]) == pytest.approx(1) and told["share"] == sorted(told["share"], reverse=True)


def test_a_cell_has_the_scores_of_all_pairs(held, tmp_path):
    found = cell(Parameters(), 0, tmp_path)
    # Matching units is all that a rigid motion can do here: there may be no efficiency.
    assert {c.key for c in E.columns} - {"efficiency", "efficiency_in"} <= set(found["scores"])
    pairs = found["views"]["pairs"]
    assert [pair["pair"] for pair in pairs] == [list(p) for p in networks(Parameters())[1]]
    assert found["scores"]["units"] == pytest.approx(np.mean([pair["units"] for pair in pairs]))
    assert found["scores"]["shared"] == 4 and found["scores"]["told"] > 0.99


def test_efficiency_of_mean_errors():
    assert efficiency({"permutation": 0.3, "ica": 0.25, "rigid": 0.2}) == pytest.approx(50)
    assert np.isnan(efficiency({"permutation": 0.2, "ica": 0.25, "rigid": 0.2}))


def test_the_jackknife_leaves_out_networks_and_of_disjoint_pairs_one():
    assert networks_of({("a", "b"): {}, ("a", "c"): {}, ("b", "c"): {}}) == ["a", "b", "c"]
    assert networks_of({("a", "x"): {}, ("b", "y"): {}}) == ["a", "b"]


GOOD = {"permutation": 0.24, "ica": 0.21, "rigid": 0.16, "linear": 0.14, "told": 0.6, "units": 0.4}
GOOD |= {f"{name}_in": value for name, value in GOOD.items()}
GOOD |= {"all_whitened": 0.1, "above_whitened": 0.4}


def statuses(**changes):
    """Where all is as published but for some scores of some rows (dashes of whose keys are underscores)."""
    p = parameters_for(E, "cpu")
    told = []
    for c in cells_of(E, p, range(1)):
        key, noise = c.row.key, np.random.default_rng(1)
        scores = GOOD | ({"told": 0.9, "units": 0.7, "ica": 0.3} if "tuned" in key else {})
        scores |= ({"told": 0.1} if "shuffled" in key else {}) | changes.get(key.replace("-", "_"), {})
        if "tuned" in key:
            names = [(f"ani1x_{k}", f"ani1ccx_{k}") for k in range(8)]
        else:
            names = [(f"ani1x_{j}", f"ani1x_{k}") for k in range(8) for j in range(k)]
        pairs = [{"pair": n, **{k: v + 1e-4 * noise.normal() for k, v in scores.items()}} for n in names]
        told.append(Finished(c, {"scores": {}, "views": {"pairs": pairs}}, 1.0, 1.0, {}))
    return [str(o.status) for _, o in ExperimentResult(E, "cpu", p, range(1), told, (), {}).outcomes]


def test_claims_decide_by_networks():
    yes, no = "reproduced", "not reproduced"
    assert statuses() == [yes] * 11
    for at, changes in enumerate(
        (
            {"ani_h": {"ica_in": 0.3}},
            {"ani_c": {"linear": 0.2}},
            {"ani_c": {"ica_in": 0.17}},
            {"ani_h": {"ica": 0.3}},
            {"silero_h": {"linear_in": 0.2}},
            {"silero_c": {"ica_in": 0.23}},
            {"ani_c_tuned": {"told": 0.2}},
            {"cebra_8": {"told": 0.05}},
            {"ani_h": {"all_whitened": 0.5, "above_whitened": 0.9}},
            {"ani_c": {"above_whitened": 0.1}},
            {"ani_h_tuned": {"ica": 0.2}},
        )
    ):
        assert statuses(**changes)[at] == no, changes


def test_own_features(tmp_path, rng):
    sources = rng.laplace(size=(300, 3))
    for k in range(3):
        np.save(tmp_path / f"{k}.npy", sources @ rng.normal(size=(3, 3)))
    (tmp_path / "blocks.csv").write_text("block\n" + "\n".join(f"b{k // 10}" for k in range(300)) + "\n")
    files = ",".join(str(tmp_path / f"{k}.npy") for k in range(3))
    p = Parameters(own=files, own_blocks=str(tmp_path / "blocks.csv"))
    row = rows(p)[-1]
    assert row.key == "own"
    held, pairs = networks(replace(p, **row.changes))
    assert pairs == [("1", "2"), ("1", "3"), ("2", "3")] and len(set(held.blocks)) == 30
    assert cell(replace(p, **row.changes), 0, tmp_path)["scores"]["linear"] < 1e-6
    # Other features under the same name are another row.
    np.save(tmp_path / "0.npy", sources)
    assert rows(p)[-1].changes != row.changes
    with pytest.raises(InputError, match="two files of features or more"):
        E.ready(Parameters(own=str(tmp_path / "0.npy")))
    np.save(tmp_path / "0.npy", sources[:7])
    with pytest.raises(InputError, match="must have the same"):
        networks(replace(p, **row.changes))


def test_the_smoke_preset_runs_with_figures(held, tmp_path, inline, monkeypatch):
    monkeypatch.setattr("nearid.lab.framework.run.check_machine", lambda plan, engine: None)
    found = reproduce(E, tmp_path / "out", preset="smoke", seeds=1, rows=["ani-h", "ani-h-tuned", "silero-c"])
    assert not found.failures and len(found.cells) == 3
    errors, correlations, directions = E.figures(found)
    assert len(errors.rows) == 3 and "units" in correlations.groups and len(directions.points) == 3
    # The page has intervals over networks where pairs are stored, and means over seeds where they are not.
    assert "jackknife" in E.section.figure(found).caption
    bare = [replace(f, data={**f.data, "views": {}}) for f in found.cells]
    assert "One seed" in E.section.figure(replace(found, cells=bare)).caption

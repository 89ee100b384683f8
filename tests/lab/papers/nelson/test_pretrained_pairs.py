"""Pairs of trained networks: published values that agree with each other, scores of known pairs, claims that decide."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.cifar10_resnets import CIFAR10_RESNETS
from nearid.lab.data.registry import find
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.nelson.pair_features import resnet_features
from nearid.lab.papers.nelson.pretrained_pairs import (
    ALIKE,
    DEPTHS,
    HALF,
    HALVES,
    PRETRAINED_PAIRS,
    TRAINED,
    Parameters,
    cell,
    keys,
    rows,
)

E = PRETRAINED_PAIRS


def test_every_pair_has_a_row():
    made = {row.key: row for row in rows(Parameters())}
    assert set(keys((*ALIKE, *DEPTHS, *HALVES))) <= set(made)
    assert len(ALIKE) == 7 and all(pair.count(HALF) == 1 for pair in HALVES)
    named = {
        name for row in made.values() if row.changes["kind"] == "resnet" for name in row.changes["pair"].split(",")
    }
    assert named == set(CIFAR10_RESNETS.networks)
    # That networks of one person share a recipe is told, of others it is not so.
    assert "one recipe" in made["akamaster-20-akamaster-56"].note and not made["zhengjiakun-20-akamaster-56"].note
    assert len(rows(Parameters(every=False))) < len(made)


@pytest.mark.parametrize("key", ["pythia", "mae-vit", "chexpert", "resnet18"])
def test_published_efficiencies_follow_from_published_errors(key):
    [row] = [row for row in rows(Parameters()) if row.key == key]
    error = {name: row.published[f"{name}_in"].value for name in ("permutation", "ica", "rigid", "linear")}
    assert error["permutation"] > error["ica"] > error["rigid"] > error["linear"]
    share = (error["permutation"] - error["ica"]) / (error["permutation"] - error["rigid"])
    assert 100 * share == pytest.approx(row.published["efficiency_in"].value, abs=0.6)


def test_published_pairs_are_measured_where_features_are_given(tmp_path, rng):
    """Independent components, rotated: a rigid motion leaves nothing, and ICA of each side alone nearly nothing."""
    sources = rng.laplace(size=(1500, 3)) * [1.0, 2.0, 3.0]
    turned = [sources @ np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2)]
    for name, z in zip(("a", "b"), turned, strict=True):
        np.save(tmp_path / f"{name}.npy", z)
    p = Parameters(mae_vit=f"{tmp_path}/a.npy,{tmp_path}/b.npy")
    [row] = [row for row in rows(p) if row.key == "mae-vit"]
    assert not row.note
    found = cell(replace(p, **row.changes), 0, tmp_path)
    json.dumps(found, allow_nan=False)
    s = found["scores"]
    assert set(s) == {c.key for c in E.columns}
    assert max(s["rigid"], s["linear"], s["rigid_in"]) < 1e-6 and s["r2"] > 0.999
    assert s["permutation"] > 0.02 and s["efficiency"] > 80 and s["efficiency_low"] <= s["efficiency"]
    share = (s["permutation_in"] - s["ica_in"]) / (s["permutation_in"] - s["rigid_in"])
    assert s["efficiency_in"] == pytest.approx(100 * share)
    value, low, high = found["views"]["held_out"]["permutation"]
    assert low < value < high and value == s["permutation"]


def test_without_features_a_published_pair_says_what_it_needs(tmp_path):
    [row] = [row for row in rows(Parameters()) if row.key == "pythia"]
    assert "--row pythia --set pythia=FIRST.npy,SECOND.npy" in row.note and "EleutherAI/pythia-160m-seed1" in row.note
    # Twelve blocks: the state after the final norm, which is the one that is mapped linearly to the loss.
    assert "after the final norm" in row.note and "--layers hidden_states.12 " in row.note
    assert cell(Parameters(**row.changes), 0, tmp_path) == {"scores": {}}


def test_one_file_is_no_pair():
    with pytest.raises(InputError, match="Two files"):
        Parameters(chexpert="one.npy")


GOOD = {
    "permutation": 0.24,
    "ica": 0.21,
    "rigid": 0.16,
    "linear": 0.14,
    "efficiency": 35.0,
    "efficiency_low": 33.0,
}
GOOD |= {f"{name}_in": value for name, value in GOOD.items()}


def result(*, late=False, **changes):
    """Outcomes where all is as published but for some scores of some rows (dashes of whose keys are underscores)."""
    p = parameters_for(E, "cpu")
    told = []
    for c in cells_of(E, p, range(3)):
        scores = GOOD | ({"linear": 0.2} if c.row.key.startswith(HALF) else {})
        scores |= changes.get(c.row.key.replace("-", "_"), {})
        told.append(Finished(c, {"scores": scores}, 1.0, 1.0, {}))
    outcomes = ExperimentResult(E, "cpu", p, range(3), told, (), {}).outcomes
    return [str(o.status) for claim, o in outcomes if claim.late == late]


def test_claims_decide():
    yes, no = "reproduced", "not reproduced"
    assert result() == [yes] * 5
    one, deep = "_".join(keys([ALIKE[3]])).replace("-", "_"), "akamaster_20_akamaster_56"
    assert result(**{one: {"ica_in": 0.25}}) == [no] + [yes] * 4
    # Not by enough.
    assert result(**{one: {"linear_in": 0.159}}) == [no] + [yes] * 4
    assert result(**{deep: {"rigid_in": 0.3}}) == [yes, no] + [yes] * 3
    assert result(**{deep: {"linear": 0.3}}) == [yes] * 2 + [no] + [yes] * 2
    assert result(**{one: {"efficiency_low": -1.0}}) == [yes] * 3 + [no, yes]
    # Where a rigid motion gains nothing, there is no efficiency to speak of.
    assert result(**{one: {"efficiency_low": None}}) == [yes] * 3 + ["not testable here", yes]
    assert result(late=True) == [yes] * 3
    assert result(late=True, **{one: {"efficiency_in": 20.0}}) == [no, yes, yes]
    assert result(late=True, **{deep: {"efficiency_in": 60.0}}) == [yes, no, yes]
    assert result(late=True, **{one: {"rigid_in": 0.21}}) == [yes, yes, no]
    assert result(chelcacs_20_dansun18_20={"linear": 0.14}) == [yes] * 4 + [no]


def test_the_control_is_compared_with_every_pair_of_one_target():
    [outcome] = [c.test(ExperimentResult(E, "cpu", parameters_for(E, "cpu"), (0,), (), (), {})) for c in E.claims[-1:]]
    assert len(outcome.parts or (outcome,)) == len(TRAINED) * (len(TRAINED) - 1) // 2


def test_the_smoke_preset_runs_with_figures(home, rng, tmp_path, inline, monkeypatch):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    sources = rng.laplace(size=(4000, 6))

    def representations(p, seed):
        made = np.random.default_rng(seed)
        return [sources @ made.normal(size=(6, 6)) + 0.01 * made.normal(size=(4000, 6)) for _ in range(2)]

    monkeypatch.setattr("nearid.lab.papers.nelson.pretrained_pairs.representations", representations)
    monkeypatch.setattr("nearid.lab.framework.run.check_machine", lambda plan, engine: None)
    found = reproduce(E, tmp_path / "out", preset="smoke", seeds=1)
    assert len(found.cells) == 6 and not found.failures
    slots = E.figures(found)
    # Errors held out and in sample; correlations of the first pair and of the half-trained one.
    assert [type(s).__name__ for s in slots] == ["Dots"] * 2 + ["HeatMap"] * 2
    assert len(slots[0].rows) == 2 and {len(v) for v in slots[0].groups.values()} == {2}
    # What ICA finds matches better than columns as they are.
    before, after = (np.diag(m).mean() for m in slots[2].panels.values())
    assert after > before and after > 0.9


def test_other_features_under_the_same_name_are_another_cell(tmp_path, rng):
    def pair():
        [row] = [row for row in rows(Parameters(pythia=f"{tmp_path}/a.npy,{tmp_path}/b.npy")) if row.key == "pythia"]
        return row.changes["pair"]

    for name in "ab":
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(400, 2)))
    before = pair()
    assert before == pair()
    np.save(tmp_path / "b.npy", rng.normal(size=(400, 2)))
    assert before != pair()
    (tmp_path / "b.npy").unlink()
    # Before the first cell begins.
    with pytest.raises(InputError, match=r"There is no file named 'b\.npy'"):
        reproduce(E, tmp_path / "out", parameters={"pythia": f"{tmp_path}/a.npy,{tmp_path}/b.npy"}, rows=["pythia"])


def test_features_of_a_downloaded_network_are_kept_and_read_again(home, monkeypatch, tmp_path):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    if find(CIFAR10_RESNETS) is None:
        pytest.skip("the data set cifar10-resnets is not here")
    monkeypatch.setattr("nearid.lab.data.registry.cache_folder", lambda: tmp_path)
    pixels = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    found = resnet_features("akamaster-20", pixels)
    [kept] = tmp_path.rglob("features-*.npy")
    assert found.shape == (4, 64) and (resnet_features("akamaster-20", pixels) == found).all()
    kept.write_bytes(kept.read_bytes()[:200])
    assert (resnet_features("akamaster-20", pixels) == found).all()

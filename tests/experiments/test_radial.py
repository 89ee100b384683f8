"""The radial experiment: its data, its determinism, and that a little training already relates the runs."""

import json
import math

import numpy as np
import pytest

from nearid.errors import InputError
from nearid.experiments.radial import RADIAL, Parameters, cell, draw, figures, look_steps, rows
from nearid.experiments.run import reproduce
from nearid.experiments.settings import settle

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_classes_are_equal_sectors():
    p = Parameters()
    x, y = draw(p, 20_000, torch.Generator().manual_seed(0))
    assert abs(float(x.std()) - 3) < 0.05 and y.min() == 0 and y.max() == 17
    degrees = np.degrees(np.arctan2(x[:, 1].numpy(), x[:, 0].numpy())) % 360
    np.testing.assert_array_equal(y.numpy(), degrees // 20)
    assert np.bincount(y.numpy()).min() > 900


def test_a_turn_that_rounds_to_a_whole_one_stays_a_class(monkeypatch):
    monkeypatch.setattr(torch, "randn", lambda *_, **__: torch.tensor([[1.0, -1e-30], [-1.0, 0.0]]))
    assert draw(Parameters(), 2, None)[1].tolist() in ([17, 9], [0, 9])


def test_looks_from_start_to_end():
    assert look_steps(Parameters(steps=10, looks=4)) == [0, 2, 5, 8, 10]
    assert look_steps(Parameters(steps=2, looks=40)) == [0, 1, 2]


def test_the_same_seed_gives_the_same_and_another_another(tmp_path):
    p = settle(RADIAL, "smoke", {"steps": 5})
    first, again, other = (cell(p, seed, tmp_path) for seed in (0, 0, 1))
    assert first == again and first["scores"]["cca"] != other["scores"]["cca"]
    json.dumps(first, allow_nan=False)


def test_runs_become_alike_while_they_learn(tmp_path):
    p = settle(RADIAL, "smoke", {"steps": 500, "rate": 5e-3})
    found = cell(p, 0, tmp_path)
    assert found["scores"]["cca"] > 0.97 and found["scores"]["accuracy"] > 70
    assert found["curves"]["loss"]["y"][0] == pytest.approx(math.log(18)) and found["curves"]["loss"]["y"][-1] < 1
    v = found["views"]
    after = np.asarray(v["after"])
    assert np.diag(after).min() > 0.95
    # The linear map is a fit: it leaves less of the second run unexplained than the first run's own features.
    second, mapped = np.asarray(v["second"]), np.asarray(v["mapped"])
    assert np.var(second - mapped) < 0.1 * np.var(second)


def test_the_control_has_too_few_classes():
    by_key = {r.key: r for r in rows(Parameters(features=3))}
    assert by_key["control"].changes == {"classes": 3} and "head" in by_key["random-head"].changes


@pytest.mark.parametrize(
    "wrong", [{"classes": 1}, {"features": 1}, {"rate": 0.0}, {"spread": -1.0}, {"activation": "gelu"}]
)
def test_impossible_parameters_get_a_sentence(wrong):
    with pytest.raises(InputError, match=r"must be .*, not"):
        Parameters(**wrong)


def test_the_smoke_preset_runs_with_figures(tmp_path, monkeypatch):
    # One process that loads torch is enough.
    monkeypatch.setattr("nearid.engines.local.cores", lambda: 1)
    found = reproduce(RADIAL, tmp_path / "out", preset="smoke", changes={"steps": 20})
    assert len(found.cells) == 2 * len(found.rows) and not found.failures
    # In a process of its own a cell gives what it gives here.
    here = cell(found.cells[0].cell.parameters, 0, tmp_path)
    assert found.cells[0].data == json.loads(json.dumps(here))
    assert len(figures(found)) == 2 * len(found.rows)

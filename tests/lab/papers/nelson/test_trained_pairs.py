"""Pairs trained here: different starts, constants of layers that are known, claims that decide."""

from dataclasses import replace

import numpy as np
import pytest

from nearid.lab.data.registry import dataset, find
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.nelson.pair_features import Trained, following_constants
from nearid.lab.papers.nelson.trained_pairs import TRAINED_PAIRS, above_noise, trained_pair

E = TRAINED_PAIRS
GOOD = {"permutation": 0.24, "ica": 0.21, "rigid": 0.16, "linear": 0.14}
GOOD |= {f"{name}_in": value for name, value in GOOD.items()}
GOOD |= {"efficiency": 35.0, "efficiency_low": 33.0, "efficiency_above_low": 20.0, "efficiency_above": 25.0}
GOOD |= {"efficiency_in": 30.0}
LAYERS = {"rigid": [0.3, 0.25, 0.2, 0.15], "lipschitz": [3.0, 2.0, 1.5, 1.0]}


def result(layers=LAYERS, *, late=False, **changes):
    """Outcomes where all is as published but for some scores of some rows."""
    p = parameters_for(E, "cpu")
    told = [
        Finished(c, {"scores": GOOD | changes.get(c.row.key, {}), "views": {"layers": layers}}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    outcomes = ExperimentResult(E, "cpu", p, range(3), told, (), {}).outcomes
    return [str(o.status) for claim, o in outcomes if claim.late == late]


def test_claims_decide():
    yes, no = "reproduced", "not reproduced"
    assert result() == [yes] * 7
    assert result(gpt={"linear_in": 0.3}) == [no] + [yes] * 6
    assert result(mae={"ica_in": 0.3}) == [yes, no] + [yes] * 5
    assert result(mae={"linear": 0.3}) == [yes] * 2 + [no] + [yes] * 4
    assert result(gpt={"efficiency_low": -1.0}) == [yes] * 3 + [no] + [yes] * 3
    assert result(mae={"efficiency_low": -1.0}) == [yes] * 4 + [no] + [yes] * 2
    assert result(mae={"efficiency_above_low": -1.0}) == [yes] * 5 + [no, yes]
    # Where a rigid motion gains nothing, there is no efficiency to speak of.
    assert result(mae={"efficiency_low": None}) == [yes] * 4 + ["not testable here"] + [yes] * 2
    assert result(late=True) == [yes, yes]
    assert result(late=True, gpt={"efficiency_in": 110.0}) == [no, yes]
    assert result(late=True, mae={"efficiency_in": 20.0}) == [yes, no]
    assert result(layers={**LAYERS, "lipschitz": LAYERS["lipschitz"][::-1]}) == [yes] * 6 + [no]


def test_weak_directions_that_runs_do_not_share_are_left_out(rng):
    """Three strong directions that both runs share, five weak ones of their own."""
    shared = rng.laplace(size=(3000, 3)) * [1.4, 1.2, 1.0]
    runs = []
    for _ in range(2):
        turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
        runs.append(np.hstack([shared, 0.02 * rng.normal(size=(3000, 5))]) @ turn)
    told = above_noise(*runs, seed=0)
    assert told["directions"] == 3
    assert told["rigid_above"] < 0.01 and told["ica_above"] < 0.02 and told["efficiency_above"] > 80


def test_constants_of_what_follows_a_layer():
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    from nearid.lab.models.gpt import GPT
    from nearid.lab.models.trainer import seeded

    with seeded(0):
        model = GPT(tokens=11, width=8, depth=2, heads=2, context=6).eval()
    rows = np.random.default_rng(0).integers(0, 11, (5, 6))
    constants = following_constants(model, rows)
    assert len(constants) == 3 and constants[-1] == 1.0 and np.isfinite(constants).all()
    # Blocks that add nothing leave the norm alone, whose stretches are equal in all directions that it keeps.
    for block in model.blocks:
        for name, p in block.named_parameters():
            if "merge" in name or "perceptron.2" in name:
                torch.nn.init.zeros_(p)
    with torch.no_grad():
        model.tokens.weight.copy_(
            torch.nn.functional.normalize(model.tokens.weight - model.tokens.weight.mean(1, True))
        )
        model.places.weight.zero_()
    assert following_constants(model, rows) == pytest.approx([1.0] * 3, abs=1e-4)


@pytest.mark.parametrize("kind", ["mae", "gpt"])
def test_networks_of_a_pair_are_trained_here_from_different_starts(kind, tmp_path):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    p = replace(parameters_for(E, "smoke"), kind=kind)
    for name in E.datasets(p):
        if find(dataset(name)) is None:
            pytest.skip(f"the data set {name} is not here")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, second = trained_pair(p, 0, tmp_path / "one")
    width = p.mae_width if kind == "mae" else p.gpt_width
    assert first.features.shape == second.features.shape == (320, width) and np.isfinite(first.features).all()
    assert not np.allclose(first.features, second.features, atol=1e-3)
    assert first.curves["loss"]["x"][-1] == 3
    assert len(first.layers) == len(first.constants) == (0 if kind == "mae" else p.gpt_depth + 1)
    again, _ = trained_pair(p, 0, tmp_path / "two")
    assert (again.features == first.features).all()


def test_the_smoke_preset_runs_with_figures(rng, tmp_path, inline, monkeypatch):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    sources = rng.laplace(size=(4000, 6))

    def trained(p, seed, folder):
        made = np.random.default_rng(seed)
        both = [sources @ made.normal(size=(6, 6)) + 0.01 * made.normal(size=(4000, 6)) for _ in range(2)]
        of_layers = p.kind == "gpt"
        return tuple(
            Trained(z, {"loss": {"x": [1.0], "y": [2.0]}}, [2 * z, z] * of_layers, [2.0, 1.0] * of_layers) for z in both
        )

    monkeypatch.setattr("nearid.lab.papers.nelson.trained_pairs.trained_pair", trained)
    monkeypatch.setattr("nearid.lab.framework.run.check_machine", lambda plan, engine: None)
    found = reproduce(E, tmp_path / "out", preset="smoke", seeds=1)
    assert len(found.cells) == 2 and not found.failures
    slots = E.figures(found)
    assert [type(s).__name__ for s in slots] == ["Dots"] * 2 + ["HeatMap"] * 2 + ["Scatter"]
    assert list(slots[-1].points) == ["layer 0", "layer 1"] and slots[-1].points["layer 0"][0] == [2.0]
    # What ICA finds matches better than columns as they are.
    before, after = (np.diag(m).mean() for m in slots[2].panels.values())
    assert after > before and after > 0.9
